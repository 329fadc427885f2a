"""What the scripts share: a start without TensorFlow's log lines, and the end on Ctrl-C."""

import os
import runpy
import signal
import subprocess
import sys

import pytest
import tensorflow as tf

from tests import documents
from tfr_smooth import data

EXAMPLES = documents.ROOT / "examples"
errors_in_one_line = runpy.run_path(str(EXAMPLES / "command_line.py"))["errors_in_one_line"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return data.write_synthetic_letor(tmp_path_factory.mktemp("letor"), num_queries=(20, 8, 8), num_features=16)


def start(script, files, *arguments, level=None):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TF_CPP_MIN_LOG_LEVEL": level}
    return subprocess.Popen(
        [sys.executable, EXAMPLES / script, *(f"--{part}={path}" for part, path in files.items()), *arguments],
        env={name: value for name, value in environment.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that starts the tests in the background makes them and their children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", [None, "2"])
def test_tensorflow_logs_nothing_when_it_starts(files, level):
    process = start("compare_losses.py", files, "stray", level=level)
    _, errors = process.communicate(timeout=300)
    # The usage.
    assert errors.startswith("Compares losses ") and errors.endswith("\nUnknown argument 'stray'.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "flags", "until", "hint"),
    [
        (
            "train_letor.py",
            ["--epochs=500"],
            ("stdout", "Compiling the first step ..."),
            "The same command resumes after the last finished epoch.",
        ),
        (
            "compare_losses.py",
            ["--rankers=smoothi_ndcg", "--workers=1"],
            ("stderr", "search:"),
            "The same command runs the jobs that have no result yet.",
        ),
    ],
)
def test_ctrl_c_ends_a_script_with_one_line_that_says_how_to_resume(files, tmp_path, script, flags, until, hint):
    process = start(script, files, *flags, f"--output_dir={tmp_path}")
    stream, text = until
    shown = ""
    while text not in shown:
        shown += getattr(process, stream).read(1)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # like a terminal, to all processes
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    lines = [line for line in errors.splitlines() if line and "search:" not in line and "job/s]" not in line]
    assert lines == [f"Interrupted. {hint}"]


def test_an_interruption_inside_a_dataset_is_not_an_error():
    with pytest.raises(KeyboardInterrupt), errors_in_one_line():
        raise tf.errors.UnknownError(None, None, "KeyboardInterrupt: \nTraceback (most recent call last): ...")
