"""The exclusive product and its derivatives, as part of the cascade metrics."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references
from tfr_smooth.rankings.steps import exclusive_product


def cascade(probabilities):
    """Computes the sum over ranks of p_r / r times the probability of no stop at earlier ranks."""
    ranks = tf.cast(tf.range(1, tf.shape(probabilities)[1] + 1), probabilities.dtype)
    return tf.reduce_sum(probabilities / ranks * exclusive_product(probabilities), axis=1)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 100, 1000])
def test_value_and_gradient_of_the_cascade_equal_the_reference(ranks):
    random = np.random.RandomState(ranks)
    probabilities = np.where(random.rand(3, ranks) < 0.1, 1.0, random.rand(3, ranks) / 2.0)
    probabilities[0, 0] = 0.0
    tensor = tf.constant(probabilities)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        value = cascade(tensor)
    gradient = tape.gradient(value, tensor)
    for row in range(3):
        np.testing.assert_allclose(value[row], references.cascade(probabilities[row]), rtol=1e-12)
        # The cascade is linear in each probability, so differences of any size are exact.
        expected = np.zeros(min(ranks, 50))
        for rank in range(len(expected)):
            ends = [
                np.concatenate([probabilities[row, :rank], [end], probabilities[row, rank + 1 :]]) for end in (0, 1)
            ]
            expected[rank] = references.cascade(ends[1]) - references.cascade(ends[0])
        np.testing.assert_allclose(gradient[row][:50], expected, atol=1e-12)


def test_later_ranks_after_a_certain_stop_have_no_gradient():
    probabilities = tf.constant([[0.0, 1.0, 0.5, 1.0]])
    np.testing.assert_array_equal(exclusive_product(probabilities), [[1.0, 1.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(probabilities)
        value = cascade(probabilities)
    # A stop at rank 1 gains 1 instead of 1/2; a stop at rank 2 gains 1/2 instead of the sum of later ranks.
    expected = [[0.5, 0.5 - (0.5 / 3.0 + 0.5 / 4.0), 0.0, 0.0]]
    np.testing.assert_allclose(tape.gradient(value, probabilities), expected, atol=1e-7)
