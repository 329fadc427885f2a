"""The SoftRank losses equal the recursion of the paper, for one list at a time in float64."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tests.helpers import value_and_gradient
from tfr_smooth import losses, rankings


def rank_distributions(scores, sigma):
    """Returns p_j(r), [N, N], by Eq. 9 and 11: each document starts at rank 1 and meets the others in turn."""
    rows = []
    for j in range(len(scores)):
        row = np.eye(1, len(scores))[0]
        for i in range(len(scores)):
            if i != j:
                lost = 0.5 * math.erfc(-(scores[i] - scores[j]) / (2.0 * sigma))
                row = row * (1.0 - lost) + np.concatenate([[0.0], row[:-1]]) * lost
        rows.append(row)
    return np.array(rows)


def soft_ndcg(labels, scores, sigma, topn=None, discount=None):
    ranks = np.arange(len(scores))
    at_ranks = references.discounts(len(scores)) if discount is None else discount(ranks)
    at_ranks = np.where(ranks < (topn or len(scores)), at_ranks, 0.0)
    gains = 2.0**labels - 1.0
    return gains @ (rank_distributions(scores, sigma) @ at_ranks) / (np.sort(gains)[::-1] @ at_ranks)


def soft_precision(labels, scores, sigma, topn):
    return references.binary(labels) @ rank_distributions(scores, sigma)[:, :topn].sum(axis=1) / topn


def a_list(seed, length):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, length)
    labels[0] = 2
    return labels, random.randn(length)


DISCOUNTS = {
    "log2": ("log2", None),
    "linear": ("linear", lambda r: 1.0 - r / len(r)),
    "convex": (rankings.ShallowDiscount(-1.0), lambda r: (1.0 - r / len(r)) ** 2),
    "table": ([1.0, 0.5, 0.25], lambda r: np.where(r < 3, 0.5**r, 0.0)),
    "function": (lambda ranks: tf.exp(-ranks), lambda r: np.exp(-r)),
}


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("topn", [None, 1, 4])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
def test_ndcg_equals_the_paper(sigma, topn, discount):
    given, reference = DISCOUNTS[discount]
    labels, scores = a_list(2, 9)
    value, gradient = value_and_gradient(
        losses.SoftNDCGLoss(sigma=sigma, topn=topn, discount=given), labels[None], scores[None]
    )
    np.testing.assert_allclose(1.0 - value, soft_ndcg(labels, scores, sigma, topn, reference), rtol=1e-6)
    expected = -references.central_differences(lambda s: soft_ndcg(labels, s, sigma, topn, reference), scores)
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
def test_precision_equals_the_paper(sigma):
    labels, scores = a_list(3, 9)
    value, gradient = value_and_gradient(losses.SoftPrecisionLoss(sigma=sigma, topn=4), labels[None], scores[None])
    np.testing.assert_allclose(1.0 - value, soft_precision(labels, scores, sigma, 4), rtol=1e-9)
    expected = -references.central_differences(lambda s: soft_precision(labels, s, sigma, 4), scores)
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("topn", [None, 3])
def test_sharp_limit_is_the_exact_metric(topn):
    labels, _ = a_list(4, 12)
    scores = np.random.RandomState(0).permutation(12).astype(np.float64)
    loss = losses.SoftNDCGLoss(sigma=1e-3, topn=topn)(labels[None], scores[None])
    np.testing.assert_allclose(1.0 - loss, references.exact_ndcg(labels, scores, topn), rtol=1e-6)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="`sigma` must be a finite number > 0, got 0"):
        losses.SoftNDCGLoss(sigma=0)
    with pytest.raises(ValueError, match="`discount` must be 'log2', 'linear', a .*, got 'log'"):
        losses.SoftNDCGLoss(discount="log")
