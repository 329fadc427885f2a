"""Sorting networks equal the papers: swaps, both networks, doubly stochastic matrices, monotonic sorted values."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rankings import evaluate
from tfr_smooth.rankings import SortingNetwork

every_network = pytest.mark.parametrize("network", ["bitonic", "odd_even"])
every_distribution = pytest.mark.parametrize("distribution", ["cauchy", "logistic"])


def test_two_documents_are_swapped_by_the_distribution_function():
    for distribution, kept in (("cauchy", np.arctan(3.0) / np.pi + 0.5), ("logistic", 1.0 / (1.0 + np.exp(-3.0)))):
        found = evaluate.value(SortingNetwork(2.0, distribution=distribution).indicators, np.array([0.5, 2.0]))
        np.testing.assert_allclose(found, [[1.0 - kept, kept], [kept, 1.0 - kept]], rtol=1e-14)


@every_network
@every_distribution
def test_indicators_are_doubly_stochastic(network, distribution):
    for length in (1, 3, 8, 37):
        scores = np.round(2.0 * np.random.RandomState(0).randn(length)) / 2.0  # with ties
        found = evaluate.value(SortingNetwork(3.0, network, distribution).indicators, scores)
        assert (found >= 0.0).all()
        for axis in (0, 1):
            np.testing.assert_allclose(found.sum(axis=axis), 1.0, rtol=1e-12)


@every_network
def test_sorted_scores_are_monotonic_in_the_scores_with_cauchy(network):
    """Definition 2 of arXiv:2203.09630: raising a score lowers no sorted score, as long as the order is the same."""
    scores = np.sort(np.random.RandomState(0).randn(20))[::-1]
    slopes = []
    for distribution in ("cauchy", "logistic"):
        indicators = SortingNetwork(20.0, network, distribution).indicators
        gaps = scores[:-1] - scores[1:]
        step = 1e-4 * gaps.min()
        ranks = [evaluate.value(indicators, s) @ s for s in (scores, *(scores + step * np.eye(20)))]
        slopes.append((np.array(ranks[1:]) - ranks[0]).min() / step)
    assert slopes[0] > -1e-6 and slopes[1] < -1e-3


@every_network
@every_distribution
def test_tied_scores_have_the_ndcg_of_no_order_of_the_documents(network, distribution):
    """The documents' order must tell nothing: data are often in the order of their labels."""
    ranking, mask = SortingNetwork(10.0, network, distribution), tf.ones([1, 9], tf.bool)
    labels = np.arange(9.0)[np.newaxis]
    found = [
        ranking.rank_relevance(tf.zeros([1, 9], tf.float64), tf.constant(r), mask) for r in (labels, labels[:, ::-1])
    ]
    np.testing.assert_array_equal(*found)
    assert (np.diff(found[0]) >= -1e-12).all()  # not better than chance
