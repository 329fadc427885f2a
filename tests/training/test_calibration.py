"""Platt scaling and isotonic regression agree with scikit-learn and keep the order of the scores."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from tests import helpers
from tfr_smooth import models, training


def documents(count=400, seed=0):
    """Returns labels 0, 1 and 2, and scores in float32 that contain ties."""
    random = np.random.default_rng(seed)
    scores = random.normal(3.0, 2.0, count).round(1).astype(np.float32)
    return random.binomial(2, 1.0 / (1.0 + np.exp(2.0 - scores))).astype(np.float64), scores


LABELS, SCORES = documents()
NEW = np.sort(np.random.default_rng(1).uniform(-6.0, 12.0, 2000)).astype(np.float32)


def test_platt_scaling_is_the_logistic_regression_of_platts_targets():
    relevant = LABELS >= 1.0
    high, low = (relevant.sum() + 1.0) / (relevant.sum() + 2.0), 1.0 / ((~relevant).sum() + 2.0)
    targets = np.where(relevant, high, low)
    # Both outcomes of each document, weighted by their probabilities.
    doubled, outcomes = np.tile(SCORES, 2)[:, None], np.repeat([1, 0], len(SCORES))
    theirs = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000)
    theirs.fit(doubled.astype(np.float64), outcomes, sample_weight=np.concatenate([targets, 1.0 - targets]))
    ours = training.fit_calibration(LABELS, SCORES)
    np.testing.assert_allclose([ours.slope, ours.intercept], [theirs.coef_[0, 0], theirs.intercept_[0]], rtol=1e-4)
    np.testing.assert_allclose(ours(NEW), theirs.predict_proba(NEW[:, None])[:, 1], atol=1e-5)


def test_isotonic_regression_is_that_of_scikit_learn():
    for threshold, targets in ((1.0, LABELS >= 1), (2.0, LABELS >= 2), (None, LABELS)):
        ours = training.fit_calibration(LABELS, SCORES, method="isotonic", threshold=threshold)
        theirs = IsotonicRegression(out_of_bounds="clip").fit(SCORES.astype(np.float64), targets)
        np.testing.assert_allclose(ours(NEW), theirs.predict(NEW.astype(np.float64)), atol=1e-5)


# TensorFlow's sigmoid is increasing up to its rounding.
@pytest.mark.parametrize(("method", "rounding"), [("platt", 2e-7), ("isotonic", 0.0)])
def test_calibration_keeps_the_order_of_neighboring_floats(method, rounding):
    calibration = training.fit_calibration(LABELS, SCORES, method=method)
    for start in np.unique(SCORES)[::7]:
        close = start + np.arange(-200, 200, dtype=np.float32) * np.abs(np.spacing(start))
        assert (np.diff(calibration(close.astype(np.float32)).numpy()) >= -rounding).all()
    assert (np.diff(calibration(NEW).numpy()) >= -rounding).all()


def test_isotonic_calibration_is_constant_outside_of_the_knots_and_does_not_exceed_the_last_by_rounding():
    for knots, values, expected in (([1.0], [0.3], [0.3, 0.3, 0.3]), ([0.0, 2.0], [0.2, 0.6], [0.2, 0.4, 0.6])):
        calibration = models.IsotonicCalibration(scores=knots, values=values)
        np.testing.assert_allclose(calibration(np.array([-np.inf, 1.0, 1e30], np.float32)), expected, rtol=1e-6)
    calibration = models.IsotonicCalibration(scores=[0.0, 1.0], values=[0.09, 0.91])
    assert np.float32(0.09) + (np.float32(0.91) - np.float32(0.09)) > np.float32(0.91)
    np.testing.assert_array_equal(calibration(np.float32([1.0, 2.0])), np.float32([0.91, 0.91]))


def test_invalid_arguments_are_named():
    cases = [
        (lambda: training.fit_calibration([0, 1], [0.0, 1.0], method="beta"), "`method` must be one of 'platt', 'iso"),
        (lambda: training.fit_calibration([0, 1], [0.0, np.nan]), "`scores` must be finite numbers"),
        (lambda: training.fit_calibration([0, 1], [0.0, 1.0], threshold=None), "must be a number for the method 'pla"),
        (lambda: training.fit_calibration([0, 0], [0.0, 1.0]), "`labels` must have relevant and other documents"),
        (lambda: training.fit_calibration([1, 0], [0.0, 1.0]), "`scores` must be higher for relevant documents"),
        (lambda: models.IsotonicCalibration(scores=[1, 2], values=[1, 0]), "`values` must be 2 increasing numbers"),
    ]
    helpers.assert_refused(cases)
