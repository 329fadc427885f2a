"""ExactRanking: order, ties, padding."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rankings import evaluate
from tfr_smooth import rankings
from tfr_smooth.rankings import exact


@pytest.mark.parametrize("jit", [False, True])
def test_minus_zero_ties_with_zero(jit):
    order = tf.function(exact.descending_order, jit_compile=jit)
    found = order(tf.constant([[0.0, -0.0, 0.0, -0.0]]), tf.ones([1, 4], tf.bool))
    np.testing.assert_array_equal(found, [[3, 2, 1, 0]])


def test_indicators_are_the_permutation_matrix():
    rows = [np.array([2.0, 0.0, 1.0, 1.0]), np.array([5.0, 7.0])]
    scores, mask = evaluate.padded(rows)
    found = rankings.ExactRanking().indicators(tf.constant(scores), tf.constant(mask), 3)
    expected = [[[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]]
    np.testing.assert_array_equal(found, expected)
