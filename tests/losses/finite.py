"""Runs all losses and metrics under TensorFlow's check that no operation returns NaN or infinity.

Prints one line per failing case of the losses and metrics that its arguments name. test_numerics.py runs it in
another process, because the check is global.
"""

import sys

import numpy as np
import tensorflow as tf

from tests.helpers import modes
from tfr_smooth import losses, metrics

# The lists are: ordinary, short, tied, without relevant documents, one document, only padding, with huge scores, with
# huge labels, with both.
LABELS = np.float32(
    [
        *([0, 1, 2, 0, 3, 1], [1, 0, 2, -1, -1, -1], [2, 0, 1, 0, 1, 0], [0, 0, 0, 0, -1, -1], [1, -1, -1, -1, -1, -1]),
        *([-1] * 6, [0, 1, 0, 2, 1, -1], [0, 1e9, 127, 200, 3, -1], [0, 1e9, 3e38, 127, 3, 1]),
    ]
)
SCORES = np.random.RandomState(0).randn(*LABELS.shape).astype(np.float32)
SCORES[2] = 0.5
SCORES[[6, 8]] = [1e30, -1e30, 1e30, 0.0, -3e38, 7.0]


def cases(name):
    """Yields the name of each case and the function to call."""
    if name not in {*losses.NAMES, *metrics.NAMES}:
        raise ValueError(f"`name` must be the name of a loss or metric, got {name!r}.")
    labels, scores = tf.constant(LABELS), tf.constant(SCORES)
    if name in losses.NAMES:
        step = modes.step(losses.get(name))
        yield "eager", lambda: step(labels, scores)
    if name in modes.SAMPLE:
        yield "float64", lambda: step(labels, tf.cast(scores, tf.float64))
    if name in modes.FEW:
        yield "graph", lambda: tf.function(step, input_signature=modes.UNKNOWN)(labels, scores)
    if name in metrics.NAMES:
        metric = metrics.get(name)

        def update():
            metric.update_state(labels[:7], scores[:7])  # without the labels that only losses bound
            return [metric.result()]

        yield "metric", update


def failures(name):
    """Yields a message for each failing case of this loss or metric."""
    for case, run in cases(name):
        try:
            if not all(np.isfinite(result).all() for result in run()):
                yield f"{name} {case}: not finite"
        except tf.errors.InvalidArgumentError as error:
            lines = [line for line in str(error).splitlines() if "Detected" in line or "/tfr_smooth/" in line]
            yield f"{name} {case}: {' | '.join(lines)}"


if __name__ == "__main__":
    tf.debugging.enable_check_numerics()
    for name in sys.argv[1:]:
        for failure in failures(name):
            print(failure, flush=True)
