"""The SoftRank losses equal the recursion of the paper, for one list at a time in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, references, value_and_gradient
from tfr_smooth import losses, rankings


def soft_ndcg(labels, scores, topn, discount, **distributions):
    ranks = np.arange(len(scores))
    at_ranks = np.where(ranks < (topn or len(scores)), discount(ranks), 0.0)
    gains = 2.0**labels - 1.0
    return (
        (at_ranks @ references.softrank_indicators(scores, **distributions)) @ gains / (np.sort(gains)[::-1] @ at_ranks)
    )


DISCOUNTS = {
    "log2": ("log2", lambda r: references.discounts(len(r))),
    "linear": ("linear", lambda r: 1.0 - r / len(r)),
    "convex": (rankings.ShallowDiscount(-1.0), lambda r: (1.0 - r / len(r)) ** 2),
    "table": ([1.0, 0.5, 0.25], lambda r: np.where(r < 3, 0.5**r, 0.0)),
    "function": (lambda ranks: tf.exp(-ranks), lambda r: np.exp(-r)),
}


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("topn", [None, 4])
def test_ndcg_equals_the_paper(topn, discount):
    given, reference = DISCOUNTS[discount]
    labels, scores = a_batch(2, batch=1, dtype=np.float64)
    value, gradient = value_and_gradient(losses.SoftNDCGLoss(topn=topn, discount=given), labels, scores)
    labels, scores = labels[0], scores[0]
    np.testing.assert_allclose(1.0 - value, soft_ndcg(labels, scores, topn, reference), rtol=1e-6)
    expected = -references.central_differences(lambda s: soft_ndcg(labels, s, topn, reference), scores)
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-5, atol=1e-7)
