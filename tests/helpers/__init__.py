"""Batches, values and gradients in eager mode, graphs and XLA, and programs in processes of their own."""

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import documents
from tfr_smooth import _keras, data, losses


def a_batch(seed=0, batch=5, length=9, dtype=np.float32):
    """Returns labels from 0 to 3, with a relevant document in every list, and normal scores, [batch, length] each."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, (batch, length)).astype(dtype)
    labels[:, 0] = 2.0
    return labels, random.randn(batch, length).astype(dtype)


def step(loss):
    """Returns a function that computes value and gradient from labels, scores and optionally weights."""

    def of_batch(labels, scores, *weights):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = loss(labels, scores, *weights)
        return value, tape.gradient(value, scores, unconnected_gradients="zero")

    return of_batch


def value_and_gradient(loss, labels, scores, *weights):
    """Returns the loss and its gradient with respect to the scores, as arrays."""
    arguments = (tf.convert_to_tensor(array) for array in (labels, scores, *weights) if array is not None)
    return tuple(tensor.numpy() for tensor in step(loss)(*arguments))


def in_graph(loss, labels, scores, *weights, **options):
    """Returns the same from a `tf.function` with these options."""
    function = tf.function(lambda *batch: step(loss)(*batch, *weights), **options)
    return tuple(tensor.numpy() for tensor in function(tf.convert_to_tensor(labels), tf.convert_to_tensor(scores)))


def metric_value(metric, *batch):
    """Returns the value of a metric for one batch."""
    metric.reset_state()
    metric.update_state(*batch)
    return float(metric.result())


def assert_same(found, expected, rtol=0.0, **options):
    """Asserts that the arrays of two sequences are the same in pairs, by default exactly."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, **options)


def each(name, **arguments):
    """Returns a loss of the library with one value per list."""
    return losses.get(name, reduction="none", **arguments)


@contextlib.contextmanager
def precision(policy):
    """Sets Keras's policy of data types."""
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(policy)
    try:
        yield policy
    finally:
        tf.keras.mixed_precision.set_global_policy(before)


def _of_process(environment):
    """Returns the options of a process on the sources of this checkout, without a GPU; None removes a variable."""
    path = os.pathsep.join([str(documents.ROOT), *filter(None, sys.path)])
    variables = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1", **environment}
    variables = {name: value for name, value in variables.items() if value is not None}
    pipe = subprocess.PIPE
    return {"env": variables, "cwd": documents.ROOT, "stdout": pipe, "stderr": pipe, "text": True}


def start_python(*arguments, log=None, **environment):
    """Starts Python with these arguments in a process group, which Ctrl-C interrupts; `log` is a file of its output."""
    # A shell that starts the tests in the background makes them and their children ignore Ctrl-C.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, *map(str, arguments)]
    output = {} if log is None else {"stdout": log, "stderr": log}
    return subprocess.Popen(command, start_new_session=True, preexec_fn=heed, **_of_process(environment) | output)


def wait_until(condition, process):
    """Waits until the condition is met, while the process runs."""
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run_python(*arguments, **environment):
    """Runs Python with these arguments to its end."""
    return subprocess.run([sys.executable, *map(str, arguments)], timeout=900, **_of_process(environment))


def check_run(*arguments, **environment):
    """Does the same, checks that the program succeeded, and returns what it printed."""
    done = run_python(*arguments, **environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def error_of(*arguments):
    """Runs a program that must fail and write only one line, also without settings of TensorFlow, and returns it."""
    done = run_python(*arguments, TF_CPP_MIN_LOG_LEVEL=None)
    assert done.returncode == 1, done.stdout
    (line,) = done.stderr.splitlines()
    return line


def assert_error(message, function, *arguments, **options):
    """Asserts that a call is refused with an error that contains the message."""
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments, **options)


def assert_refused(cases):
    """Asserts that each call raises an error of a value that contains the message."""
    for call, message in cases:
        assert_error(message, call)


def write_folds(folder, **sizes):
    """Writes LETOR files of two folds with 16 features, and returns the folder."""
    for fold in (1, 2):
        data.write_synthetic_letor(folder / f"Fold{fold}", seed=fold, num_features=16, **sizes)
    return folder


def pad(array, columns, value):
    """Appends columns that contain the value."""
    return np.pad(array, [(0, 0), (0, columns)], constant_values=value)


def tf_ranking(*, module=False):
    """Returns TF-Ranking; skips the test or the module if Keras 3 is active."""
    if _keras.IS_KERAS_3:
        pytest.skip("TF-Ranking needs Keras 2", allow_module_level=module)
    from tfr_smooth.tf_ranking import tfr

    return tfr
