"""The cascade and its gradient, against the sum as it is written."""

import numpy as np
import pytest
import tensorflow as tf
from tfr_smooth.functional.cascade import stopped

from tests import references


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 100, 1000])
@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_value_and_gradient(ranks, mode):
    random = np.random.RandomState(ranks)
    chances = np.where(random.rand(3, ranks) < 0.1, 1.0, random.rand(3, ranks) / 2.0)
    chances[0, 0] = 0.0

    def run(chances):
        with tf.GradientTape() as tape:
            tape.watch(chances)
            value = stopped(chances, 1.0 / tf.cast(tf.range(1, tf.shape(chances)[1] + 1), tf.float64))
        return value, tape.gradient(value, chances)

    if mode != "eager":
        run = tf.function(run, jit_compile=mode == "xla", input_signature=[tf.TensorSpec([None, None], tf.float64)])
    value, gradient = run(tf.constant(chances))
    for row in range(3):
        np.testing.assert_allclose(value[row], references.cascade(chances[row]), rtol=1e-12)
        # It is linear in each chance: a difference of any size is exact.
        expected = np.zeros(ranks)
        for rank in range(min(ranks, 100)):
            ends = [np.concatenate([chances[row, :rank], [end], chances[row, rank + 1 :]]) for end in (0.0, 1.0)]
            expected[rank] = references.cascade(ends[1]) - references.cascade(ends[0])
        np.testing.assert_allclose(gradient[row][:100], expected[:100], atol=1e-12)


def test_a_certain_stop_leaves_nothing_to_what_comes_after():
    chances = tf.constant([[0.0, 1.0, 0.5, 1.0]])
    with tf.GradientTape() as tape:
        tape.watch(chances)
        value = stopped(chances, tf.constant([1.0, 0.5, 0.25, 0.125]))
    np.testing.assert_array_equal(value, [0.5])
    # At rank 2 it is 1/2 or what comes after, 1/4 * 1/2 + 1/8 * 1/2.
    np.testing.assert_allclose(tape.gradient(value, chances), [[0.5, 0.5 - 0.1875, 0.0, 0.0]])
