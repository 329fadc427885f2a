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


def start(script, files, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.Popen(
        [sys.executable, EXAMPLES / script, *(f"--{part}={path}" for part, path in files.items()), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that starts the tests in the background makes them and their children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.slow
def test_tensorflow_logs_nothing_when_it_starts(files):
    _, errors = start("train_letor.py", files, "stray").communicate(timeout=300)
    assert errors == "error: Unknown argument 'stray'. Flags start with --.\n"


@pytest.mark.slow
def test_ctrl_c_ends_a_script_with_one_line_that_says_how_to_resume(files, tmp_path):
    process = start("train_letor.py", files, "--epochs=500", f"--output_dir={tmp_path}")
    shown = ""
    while "Compiling the first step ..." not in shown:
        shown += process.stdout.read(1)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # like a terminal, to all processes
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "Interrupted. The same command resumes after the last finished epoch.\n"


def test_an_interruption_inside_a_dataset_is_not_an_error():
    with pytest.raises(KeyboardInterrupt), errors_in_one_line():
        raise tf.errors.UnknownError(None, None, "KeyboardInterrupt: \nTraceback (most recent call last): ...")
