"""`randomization_test`: its p-values compared with the exact distribution, and their properties."""

import itertools
import math
import re

import numpy as np
import pytest

from tfr_smooth.evaluation import randomization_test


def by_query(values):
    return {f"q{i:04d}": float(value) for i, value in enumerate(values)}


def compare(differences, **options):
    return randomization_test(by_query(differences), by_query(np.zeros(len(differences))), **options)


def exact_p_value(differences):
    """The share of all sign patterns whose sum is at least as far from 0."""
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product([-1, 1], repeat=len(differences))]
    return np.mean([value >= abs(sum(differences)) - 1e-12 for value in sums])


@pytest.mark.parametrize("seed", range(3))
def test_the_p_value_approximates_that_of_all_sign_patterns(seed):
    random = np.random.RandomState(seed)
    differences = random.randn(8) + 0.4 * seed
    p, samples = exact_p_value(differences), 40_000
    # Five standard deviations of a binomial share.
    tolerance = 5 * math.sqrt(p * (1 - p) / samples) + 1 / samples
    assert compare(differences, samples=samples, seed=seed).p_value == pytest.approx(p, abs=tolerance)


def test_p_values_computed_by_hand():
    # Of the 4 patterns ++, +-, -+, --, only those with equal signs reach |1 + 1|.
    assert compare([1.0, 1.0]).p_value == pytest.approx(1 / 2, abs=0.02)
    # Any pattern reaches |1 - 1| = 0, and any reaches |1| with one query.
    assert compare([1.0, -1.0]).p_value == 1.0
    assert compare([1.0]).p_value == compare([0.0, 0.0, 0.0]).p_value == 1.0
    # In tenths, every pattern has an odd sum, so all reach 1; rounding puts a quarter of them just below.
    assert compare([0.1, 0.1, 0.2, -0.3]).p_value == 1.0
    # 2 of 2^30 patterns: none among the samples.
    assert compare(np.full(30, 0.1)).p_value == 1 / 10_001
    assert compare(np.full(30, 0.1), samples=99).p_value == 1 / 100


def test_swapping_the_runs_changes_only_the_sign_and_the_order_of_queries_nothing():
    random = np.random.RandomState(1)
    a, b = by_query(random.rand(50)), by_query(random.rand(50))
    forth, back = randomization_test(a, b), randomization_test(b, a)
    assert 0 < forth.p_value < 1 and forth.queries == 50
    assert forth.mean_difference == pytest.approx(np.mean([*a.values()]) - np.mean([*b.values()]), abs=1e-15)
    assert back == forth._replace(mean_difference=-forth.mean_difference)
    assert randomization_test(dict(reversed(a.items())), b) == forth


def test_a_seed_determines_the_result():
    differences = np.random.RandomState(3).randn(40)
    assert len({compare(differences, seed=seed).p_value for seed in range(5)}) > 1
    assert compare(differences, seed=7) == compare(differences, seed=7)


def test_p_values_are_uniform_under_the_null_hypothesis():
    random = np.random.RandomState(5)
    p_values = np.sort([compare(random.randn(25), samples=400, seed=i).p_value for i in range(400)])
    # Kolmogorov's distance; 1.95 / sqrt(n) is exceeded once in a thousand.
    assert np.abs(p_values - np.arange(1, 401) / 400).max() < 1.95 / math.sqrt(400)


ONE = {"x": 0.5}


def test_bad_arguments_are_refused():
    for a, b, options, message in (
        ({}, {}, {}, "`a` must contain at least one query, got none."),
        ({**ONE, "y": 0.1}, ONE, {}, "`a` and `b` must contain the same queries, got no 'y' in `b`."),
        (ONE, {"x": math.inf}, {}, "`b['x']` must be a finite number, got inf."),
        (ONE, ONE, {"samples": 0}, "`samples` must be an integer >= 1, got 0."),
        (ONE, ONE, {"seed": 2**32}, "`seed` must be an integer <= 4294967295, got 4294967296."),
    ):
        with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
            randomization_test(a, b, **options)
