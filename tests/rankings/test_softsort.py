"""SoftSort equals the paper."""

import itertools

import numpy as np
import pytest

from tests.rankings import evaluate
from tfr_smooth.rankings.softsort import SoftSort


def test_indicators_of_two_documents_equal_hand_computed_values():
    for power, distance in ((1.0, 3.0), (2.0, 9.0)):
        one = 1.0 / (1.0 + np.exp(-distance / 2.0))
        found = evaluate.value(SoftSort(2.0, power).indicators, np.array([1.0, 4.0]))
        np.testing.assert_allclose(found, [[1.0 - one, one], [one, 1.0 - one]], rtol=1e-13)


def test_tied_documents_share_the_gradient_of_their_ranks():
    """Documents 0 and 2 share ranks 1 and 2, so each has half of the gradient of both ranks."""
    scores, weights = np.array([1.0, 0.0, 1.0]), np.array([[0.0, 1.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 0.0]])
    found = evaluate.gradient(SoftSort().indicators, scores, weights)
    assert found[0] == pytest.approx(found[2], rel=1e-12)
    # As document 1 rises by h, rows 1 and 2 gain 6 dP, with P = e^-1 / (2 + e^-1).
    share = np.exp(-1.0) / (2.0 + np.exp(-1.0))
    np.testing.assert_allclose(found, 6.0 * share * (1.0 - share) * np.array([-0.5, 1.0, -0.5]), rtol=1e-12)


def test_extreme_temperatures_and_powers_do_not_overflow():
    scores, weights = np.array([3.0, 1e-20, 0.0, -1e30, 1e30], np.float32), np.random.RandomState(0).randn(5, 5)
    for power, temperature in itertools.product((0.01, 0.5, 1.0, 7.0), (1e-10, 1e10)):
        found, slopes = evaluate.of_one_list(SoftSort(temperature, power).indicators, scores, weights)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
        assert np.isfinite(slopes).all()
