"""PL-Rank: gradients of expected measures of rankings that are sampled from the scores."""

import itertools

import numpy as np
import pytest

from tests.helpers import references, value_and_gradient
from tests.losses.test_costs import for_xla, largest_array
from tfr_smooth import losses, measures
from tfr_smooth.losses import gumbel

LABELS, SCORES = np.array([2.0, 0.0, 1.0, 0.0, 3.0]), np.array([0.5, 2.0, 1.0, -1.0, 0.0])
ORDERS = np.array(list(itertools.permutations(range(5))))
MEASURES = [measures.NDCG(), measures.NDCG(topn=2, gain="linear"), measures.NDCG(discount=[1.0, -0.5, 0.3])]
MEASURES += [measures.DCG(topn=3), measures.Precision(topn=2), measures.Recall(topn=3)]


@pytest.fixture
def every_order(monkeypatch):
    """Noise for which the rankings of 120 copies of a list of five documents are its orders."""
    monkeypatch.setattr(gumbel, "gumbel_noise", lambda like, *_: -1e3 * np.argsort(ORDERS, axis=1)[:, None])


def probabilities(scores):
    """The Plackett-Luce distribution over the orders."""
    logs = np.take(scores, ORDERS)
    return np.exp(sum(logs[:, k] - np.logaddexp.reduce(logs[:, k:], axis=1) for k in range(5)))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_the_expected_gradient_is_the_gradient_of_the_expected_measure(measure, every_order):
    exact = measure(np.tile(LABELS, [120, 1]), -1.0 * np.argsort(ORDERS, axis=1)).numpy()
    loss = losses.PLRankLoss(measure, sample_size=1, temperature=0.5, reduction="none")
    value, gradient = value_and_gradient(loss, np.tile(LABELS, [120, 1]), np.tile(SCORES, [120, 1]))
    np.testing.assert_allclose(value, 1.0 - exact, rtol=1e-12)
    expected = references.central_differences(lambda scores: probabilities(scores / 0.5) @ (1.0 - exact), SCORES)
    np.testing.assert_allclose(probabilities(SCORES / 0.5) @ gradient, expected, atol=1e-8)


@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_the_gradient_of_long_lists_equals_pl_rank_2(spread):
    """Also where the exponentials of the scores overflow."""
    labels, scores = np.random.RandomState(0).randint(0, 5, 60) * 1.0, spread * np.random.RandomState(1).randn(60)
    for dtype, error in ((np.float64, 1e-11), (np.float32, 1e-7)):
        loss = losses.PLRankNDCGLoss(topn=20, sample_size=8)
        _, gradient = value_and_gradient(loss, labels[None].astype(dtype), scores[None].astype(dtype))
        expected = references.pl_rank_ndcg_gradient(labels, scores.astype(dtype).astype(float), 8, topn=20)
        np.testing.assert_allclose(gradient[0], expected, atol=error)


def test_memory_is_linear_in_the_list():
    assert largest_array(for_xla(losses.PLRankNDCGLoss(topn=10, sample_size=8), 2, 256)) <= 2 * 8 * 256 * 2 < 256**2


def test_a_measure_that_is_not_a_sum_of_gains_is_an_error():
    with pytest.raises(ValueError, match="`measure` must be a sum of discounted gains, such as NDCG"):
        losses.PLRankLoss(measures.ReciprocalRank())(LABELS[None], SCORES[None])
    with pytest.raises(ValueError, match=r"`measure` must be a sum of discounted gains, such as NDCG, got Hits"):
        losses.PLRankLoss(measures.Hits(topn=2))
