"""The exclusive product and its derivatives, as part of the cascade metrics."""

import numpy as np
import tensorflow as tf

from tfr_smooth.rankings.steps import exclusive_product


def cascade(probabilities):
    """Computes the sum over ranks of p_r / r times the probability of no stop at earlier ranks."""
    ranks = tf.cast(tf.range(1, tf.shape(probabilities)[1] + 1), probabilities.dtype)
    return tf.reduce_sum(probabilities / ranks * exclusive_product(probabilities), axis=1)


def test_later_ranks_after_a_certain_stop_have_no_gradient():
    probabilities = tf.constant([[0.0, 1.0, 0.5, 1.0]])
    np.testing.assert_array_equal(exclusive_product(probabilities), [[1.0, 1.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(probabilities)
        value = cascade(probabilities)
    # A stop at rank 1 gains 1 instead of 1/2; a stop at rank 2 gains 1/2 instead of the sum of later ranks.
    expected = [[0.5, 0.5 - (0.5 / 3.0 + 0.5 / 4.0), 0.0, 0.0]]
    np.testing.assert_allclose(tape.gradient(value, probabilities), expected, atol=1e-7)
