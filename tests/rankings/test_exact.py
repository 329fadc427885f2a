"""ExactRanking: order, ties, padding."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references
from tests.rankings import evaluate
from tfr_smooth import rankings
from tfr_smooth.rankings import exact


def rank_relevance(scores, relevance, mask=None, topn=None):
    scores = tf.constant(scores)
    mask = tf.ones_like(scores, tf.bool) if mask is None else tf.constant(mask)
    return rankings.ExactRanking().rank_relevance(scores, tf.constant(relevance), mask, topn).numpy()


def test_the_order_equals_a_sort_with_ties_like_trec_eval():
    random = np.random.RandomState(0)
    scores = random.randint(0, 4, (30, 11)).astype(np.float32)
    relevance = random.rand(30, 11).astype(np.float32)
    expected = [references.sorted_labels(r, s) for r, s in zip(relevance, scores, strict=True)]
    np.testing.assert_allclose(rank_relevance(scores, relevance), expected, rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_minus_zero_ties_with_zero(jit):
    order = tf.function(exact.descending_order, jit_compile=jit)
    np.testing.assert_array_equal(
        order(tf.constant([[0.0, -0.0, 0.0, -0.0]]), tf.ones([1, 4], tf.bool)), [[3, 2, 1, 0]]
    )


def test_padding_comes_last():
    mask = [[False, True, True, False]]
    found = rank_relevance([[0.0, -1e30, 1.0, 0.0]], [[0.0, 2.0, 3.0, 0.0]], mask)
    np.testing.assert_array_equal(found, [[3.0, 2.0, 0.0, 0.0]])


def test_indicators_are_the_permutation_matrix():
    rows = [np.array([2.0, 0.0, 1.0, 1.0]), np.array([5.0, 7.0])]
    scores, mask = evaluate.padded(rows)
    found = rankings.ExactRanking().indicators(tf.constant(scores), tf.constant(mask), 3)
    expected = [[[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]]
    np.testing.assert_array_equal(found, expected)
