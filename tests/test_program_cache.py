"""Programs that XLA compiled are loaded by later processes, with the same results."""

import json
import os
import time

import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers

SCRIPT = """
import json
import sys
import tensorflow as tf
import tfr_smooth

tfr_smooth.cache_programs(sys.argv[1])
scores = tf.random.stateless_normal([3, 9], [1, 2])
with tf.GradientTape() as tape:
    tape.watch(scores)
    value = tfr_smooth.losses.SmoothINDCGLoss()(tf.cast(scores > 0.5, tf.float32), scores)
print(json.dumps([value.numpy().tolist(), tape.gradient(value, scores).numpy().tolist()]))
"""
needs_loading = pytest.mark.skipif(
    tuple(map(int, tf.__version__.split(".")[:2])) < (2, 20), reason="TensorFlow before 2.20 cannot load programs"
)


def start(folder):
    return helpers.start_python("-c", SCRIPT, folder, TF_XLA_FLAGS=None, TFR_SMOOTH_PROGRAMS=None)


def result(process):
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(printed)


def files(folder):
    """Returns the programs with their times."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("*/*")}


@pytest.mark.slow
@needs_loading
def test_later_processes_load_the_programs_and_replace_damaged_ones(tmp_path):
    folder = tmp_path / "with a space"
    first, at_once = map(result, [start(folder), start(folder)])
    compiled = files(folder)
    assert compiled
    assert result(start(folder)) == first == at_once
    assert files(folder) == compiled  # Nothing was compiled.
    one, *_ = compiled
    content = one.read_bytes()
    one.write_bytes(content[: len(content) // 2])
    assert result(start(folder)) == first
    assert len(one.read_bytes()) > len(content) // 2 and files(folder).keys() == compiled.keys()


@pytest.fixture
def environment(monkeypatch):
    """Unsets the variables, which tests may set: TensorFlow has read its flags before."""
    for name in ("TF_XLA_FLAGS", "TFR_SMOOTH_PROGRAMS", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")
    return monkeypatch


@needs_loading
def test_the_folder_is_the_argument_or_the_variable_or_in_the_users_cache_folder(environment, tmp_path):
    def parent(*arguments):
        environment.setenv("TF_XLA_FLAGS", "")
        return tfr_smooth.cache_programs(*arguments).parent

    environment.setenv("HOME", str(tmp_path / "home"))
    assert parent() == tmp_path / "home/.cache/tfr_smooth/programs"
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert parent() == tmp_path / "cache/tfr_smooth/programs"
    environment.setenv("TFR_SMOOTH_PROGRAMS", str(tmp_path / "variable"))
    assert parent() == tmp_path / "variable"
    assert parent(tmp_path / "argument") == tmp_path / "argument"


@needs_loading
def test_programs_of_other_flags_are_apart_and_the_flags_are_kept(environment, tmp_path):
    folders = set()
    for flags, others in (("", ""), ("--tf_xla_auto_jit=0", ""), ("", "--xla_cpu_enable_fast_math=false")):
        environment.setenv("TF_XLA_FLAGS", flags)
        environment.setenv("XLA_FLAGS", others)
        folders.add(tfr_smooth.cache_programs(tmp_path))
        assert os.environ["TF_XLA_FLAGS"].startswith(f"{flags} --tf_xla_persistent_cache_directory=".strip())
    assert len(folders) == 3 and {folder.parent for folder in folders} == {tmp_path}


def test_settings_of_the_user_and_a_folder_that_is_not_writable_turn_it_off(environment, tmp_path):
    (tmp_path / "file").touch()
    assert tfr_smooth.cache_programs(tmp_path / "file") is None
    environment.setenv("TFR_SMOOTH_PROGRAMS", "off")
    assert tfr_smooth.cache_programs(tmp_path) is None and os.environ["TF_XLA_FLAGS"] == ""
    environment.setenv("TFR_SMOOTH_PROGRAMS", "")
    for flags in ("--tf_xla_persistent_cache_directory=/mine", "file_with_flags"):
        environment.setenv("TF_XLA_FLAGS", flags)
        assert tfr_smooth.cache_programs(tmp_path) is None and os.environ["TF_XLA_FLAGS"] == flags
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@needs_loading
def test_old_and_damaged_programs_are_removed(environment, tmp_path):
    folder = tfr_smooth.cache_programs(tmp_path)
    (tmp_path / "other_version").mkdir()
    contents = {"good": b"\x08\x01", "old": b"\x08\x01", "empty": b"", "cut": b"\x08", "../other_version/old": b"\x08"}
    for name, content in contents.items():
        path = folder / f"{name}.pb"
        path.write_bytes(content)
        os.utime(path, (time.time() - 24 * 3600 * (31 if path.stem == "old" else 29),) * 2)
    environment.setenv("TF_XLA_FLAGS", "")
    tfr_smooth.cache_programs(tmp_path)
    assert list(files(tmp_path)) == [folder / "good.pb"]
