"""The reliability table agrees with scikit-learn's, and the calibration error with its formula."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from tfr_smooth import evaluation

RANDOM = np.random.default_rng(0)
PREDICTIONS = RANDOM.random(1000) ** 2
LABELS = (RANDOM.random(1000) < PREDICTIONS**0.5).astype(float)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_table_is_that_of_scikit_learn(strategy):
    table = evaluation.reliability(LABELS, PREDICTIONS, bins=8, strategy=strategy)
    observed, predicted = calibration_curve(LABELS, PREDICTIONS, n_bins=8, strategy=strategy)
    np.testing.assert_allclose(table.predicted, predicted)
    np.testing.assert_allclose(table.observed, observed)
    assert table.counts.sum() == 1000
    assert strategy == "uniform" or set(table.counts) == {125}


def test_the_error_is_the_mean_gap_weighted_by_documents():
    for labels, predictions, bins, expected in (
        ([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], 10, 0.0),
        ([0, 1], [0.5, 0.5], 10, 0.0),
        ([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], 2, 0.5 * 0.2 + 0.5 * 0.25),
        ([0, 1, 1], [0.2, 0.3, 0.5], 2, 2 / 3 * 0.25 + 1 / 3 * 0.5),  # A bin contains its lower end.
    ):
        table = evaluation.reliability(labels, predictions, bins=bins)
        assert table.expected_calibration_error == pytest.approx(expected)


def test_expected_labels_are_compared_in_bins_of_equally_many_documents():
    table = evaluation.reliability([0, 0, 2, 2], [-0.5, 0.5, 1.0, 3.0], bins=2, strategy="quantile")
    assert table.predicted.tolist() == [0.0, 2.0] and table.expected_calibration_error == 0.0


def test_invalid_arguments_are_named():
    for arguments, message in (
        ({"labels": [0], "predictions": [1.5]}, "`predictions` must be numbers in .0, 1., got 1.5 to 1.5"),
        ({"labels": [0, 1], "predictions": [0.5]}, "`labels` must be 1 numbers >= 0, got shape"),
        ({"labels": [0], "predictions": [0.5], "bins": 0}, "`bins` must be an integer >= 1, got 0."),
        ({"labels": [0], "predictions": [0.5], "strategy": "k"}, "`strategy` must be one of 'uniform', 'quantile'"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluation.reliability(**arguments)


def test_intervals_are_those_of_wilson():
    table = evaluation.Reliability(np.array([10, 1, 400]), np.array([0.1, 0.5, 0.9]), np.array([0.0, 1.0, 0.5]))
    # statsmodels' proportion_confint(..., method="wilson")
    expected = [[0.0, 0.27753], [0.20655, 1.0], [0.45122, 0.54878]]
    np.testing.assert_allclose(table.intervals, expected, atol=2e-5)
    graded = evaluation.reliability([0, 4, 4, 0], [0.0, 1.0, 2.0, 3.0], bins=1, strategy="quantile")
    binary = evaluation.reliability([0, 1, 1, 0], [0.0, 1.0, 2.0, 3.0], bins=1, strategy="quantile")
    np.testing.assert_allclose(graded.intervals, 4.0 * binary.intervals)
