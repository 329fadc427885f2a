"""The exact ranking: order, ties, padding."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth import ops


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_equals_a_sort_with_trec_evals_ties(seed, jit):
    random = np.random.RandomState(seed)
    scores = random.randint(0, 4, (6, 11)).astype(np.float32)
    relevance = random.rand(6, 11).astype(np.float32)
    rank = tf.function(ops.ExactRanking().relevance, jit_compile=jit)
    found = rank(tf.constant(scores), tf.constant(relevance)).numpy()
    expected = [references.sorted_labels(r, s) for r, s in zip(relevance, scores, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_minus_zero_ties_with_zero(jit):
    rank = tf.function(ops.ExactRanking().relevance, jit_compile=jit)
    found = rank(tf.constant([[0.0, -0.0, 0.0, -0.0]]), tf.constant([[1.0, 2.0, 3.0, 4.0]]))
    np.testing.assert_array_equal(found.numpy(), [[4.0, 3.0, 2.0, 1.0]])


def test_padding_comes_last_even_after_minus_infinity():
    scores = tf.constant([[np.nan, -np.inf, 1.0, 5.0]])
    mask = tf.constant([[False, True, True, False]])
    found = ops.ExactRanking().relevance(scores, tf.constant([[9.0, 2.0, 3.0, 9.0]]), mask)
    np.testing.assert_array_equal(found.numpy(), [[3.0, 2.0, 0.0, 0.0]])


def test_nan_score_is_nan_in_its_list_only():
    scores = tf.constant([[np.nan, 1.0], [2.0, 1.0]])
    found = ops.ExactRanking().relevance(scores, tf.constant([[1.0, 2.0], [1.0, 2.0]])).numpy()
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], [1.0, 2.0])


def test_topn_cuts():
    found = ops.ExactRanking().relevance(tf.constant([[1.0, 3.0, 2.0]]), tf.constant([[1.0, 2.0, 3.0]]), topn=2)
    np.testing.assert_array_equal(found.numpy(), [[2.0, 3.0]])
