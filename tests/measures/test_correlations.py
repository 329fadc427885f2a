"""Spearman's and Kendall's correlations: SciPy's values, ties, lists without a correlation, and smooth rankings."""

import itertools

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from tests.helpers import pad
from tfr_smooth import losses, measures, metrics, rankings
from tfr_smooth.rankings import exact

SCIPY = {
    "SpearmanCorrelation": lambda labels, scores: scipy.stats.spearmanr(labels, scores).statistic,
    "KendallTau": lambda labels, scores: scipy.stats.kendalltau(labels, scores).statistic,
}
both = pytest.mark.parametrize("name", SCIPY)


def lists(length, ties, count=8):
    random = np.random.RandomState(length)
    labels, scores = random.rand(count, length), random.randn(count, length)
    if ties:
        labels, scores = random.randint(0, 3, labels.shape) + 0.0, np.round(2.0 * scores)
        labels[:, 0], labels[:, 1], scores[:, 0], scores[:, 1] = 3.0, 0.0, 9.0, 8.0
    return labels, scores


@both
def test_exact_values_equal_scipy_with_real_valued_and_graded_labels_and_ties(name):
    for length, ties in itertools.product((2, 3, 10, 60), (False, True)):
        labels, scores = lists(length, ties)
        expected = [SCIPY[name](*one) for one in zip(labels, scores, strict=True)]
        found = getattr(measures, name)()(pad(labels, 3, -1.0), pad(scores, 3, np.nan))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_average_ranks_equal_scipy_with_padding_between_documents():
    random = np.random.RandomState(0)
    values, mask = random.randint(-3, 4, (20, 15)).astype(np.float32), random.rand(20, 15) < 0.7
    values[values == 0.0] *= random.choice([-1.0, 1.0], (values == 0.0).sum())  # -0.0 equals 0.0
    found = exact.average_ranks(tf.constant(values), tf.constant(mask)).numpy()
    for row, real, ranks in zip(values, mask, found, strict=True):
        np.testing.assert_array_equal(ranks[real], scipy.stats.rankdata(-row[real]))
        np.testing.assert_array_equal(ranks[~real], 0.0)


@both
def test_lists_without_a_correlation_count_as_zero_or_are_skipped(name):
    measure = getattr(measures, name)()
    labels = np.float32([[2, 1, 0], [1, 1, 1], [0, 0, 0], [2, -1, -1], [2, 1, 0]])
    scores = np.float32([[3, 2, 1], [3, 2, 1], [3, 2, 1], [3, 2, 1], [1, 1, 1]])
    np.testing.assert_array_equal(measure(labels, scores), [1.0, 0.0, 0.0, 0.0, 0.0])
    means = {}
    for no_relevant in ("zero", "skip"):
        metric = metrics.MeasureMetric(measure, no_relevant=no_relevant)
        metric.update_state(labels, scores)
        means[no_relevant] = float(metric.result())
    # Tied scores have a correlation of 0 with labels that differ. Equal labels have none.
    assert means == pytest.approx({"zero": 1.0 / 5.0, "skip": 1.0 / 2.0})


def test_other_rankings_are_refused():
    labels, scores = lists(4, ties=False)
    with pytest.raises(ValueError, match="`ranking` must be exact or a rankings.PositionRanking, got SmoothI"):
        measures.SpearmanCorrelation()(labels, scores, ranking=rankings.SmoothI())
    assert not [name for name in losses.NAMES if name.endswith("spearman") and name.startswith("smoothi")]


def test_the_pairwise_soft_zero_one_loss_is_a_smooth_kendall_tau():
    labels, scores = lists(12, ties=False)
    loss = losses.PairwiseSoftZeroOneLoss(temperature=1e-4, reduction="none")(labels, scores).numpy()
    pairs = 12 * 11 / 2
    np.testing.assert_allclose(1.0 - 2.0 * 12 * loss / pairs, measures.KendallTau()(labels, scores), atol=1e-6)
