"""Shapley values agree with their definition, and the table shows them."""

import itertools
import math

import numpy as np
import pytest

from tfr_smooth.training import Explanation, explanation

NAMES = ["a", "a", "b", "c", "ignored", "d", "c"]
COLUMNS = ["a", "b", "c", "ignored", "d"]
FEATURES = np.random.default_rng(0).normal(size=(9, len(NAMES)))
WEIGHTS = np.array([0.5, -1.0, 2.0, 0.3, 0.0, 1.5, 0.7])


def linear(features):
    return features @ WEIGHTS


def of_pairs(features):
    a, _, b, c, _, d, other = features.T
    return np.exp(a) * b + np.sin(b * d) - c * np.tanh(d) + other**2


def of_triples(features):
    a, second, b, c, _, d, _ = features.T
    return np.tanh(a * b * d) + np.maximum(second * c, b) * d


def exact(function, documents, background):
    """The definition over all subsets of the columns, in float64."""
    values = np.zeros([len(documents), len(COLUMNS)])
    of_column = np.array([COLUMNS.index(name) for name in NAMES])
    count = len(COLUMNS)
    for place, document in enumerate(documents):
        for column in range(count):
            others = [other for other in range(count) if other != column]
            for size in range(count):
                weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
                for subset in itertools.combinations(others, size):
                    present = [np.isin(of_column, chosen) for chosen in ([*subset, column], subset)]
                    scores = [function(np.where(mask, document, background)).mean() for mask in present]
                    values[place, column] += weight * (scores[0] - scores[1])
    return values


def sampled(function, documents, background, samples=1, seed=0):
    places = (np.asarray(documents), np.asarray(background))
    return explanation.shapley_values(function, FEATURES, NAMES, places, samples, seed)


@pytest.mark.parametrize(
    ("function", "background"), [(linear, range(9)), (of_pairs, range(9)), (of_pairs, range(3, 7))]
)
def test_values_of_functions_of_up_to_two_columns_are_exact(function, background):
    """Also where documents are their own background."""
    values = sampled(function, [2, 5, 8], background)
    np.testing.assert_allclose(values, exact(function, FEATURES[[2, 5, 8]], FEATURES[background]), atol=1e-12)


def test_values_of_interactions_of_three_columns_converge_and_sum_to_the_difference_of_the_scores():
    expected = exact(of_triples, FEATURES[:4], FEATURES)
    errors = [np.abs(sampled(of_triples, range(4), range(9), samples) - expected).max() for samples in (9, 9000)]
    assert errors[1] < 0.01 < errors[0]
    scores = of_triples(FEATURES)
    for background in (range(9), [4], [1, 7, 8]):
        values = sampled(of_triples, range(9), background, seed=3)
        np.testing.assert_allclose(values.sum(axis=1), scores - scores[background].mean(), atol=1e-12)
        assert (values[:, COLUMNS.index("ignored")] == 0.0).all()


def test_many_pairs_are_computed_in_parts(monkeypatch):
    whole = sampled(of_pairs, range(9), range(9))
    monkeypatch.setattr(explanation, "_PAIRS_AT_ONCE", 7)
    np.testing.assert_allclose(sampled(of_pairs, range(9), range(9)), whole, atol=1e-12)


def test_a_background_is_represented_by_documents_evenly_spaced_by_score():
    scores = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    assert scores[explanation.representatives(scores, 3)].tolist() == [1.0, 3.0, 5.0]
    assert sorted(explanation.representatives(scores, 6)) == [0, 1, 2, 3, 4, 5]


def test_printed_tables_are_sorted_by_absolute_contribution():
    values = {"price": [9.5], "a long name": ["x" * 50], "empty": [None]}
    names = ["price", "match", "a long name", "empty"]
    assert str(Explanation(names, [[0.1, -0.4, 0.2, 0.0]], [0.2], [0.3], [7], values)).splitlines() == [
        "row 7: score 0.2000, background 0.3000",
        f"match{' ' * 49}  -0.4000",
        f"a long name = {'x' * 40}  +0.2000",
        f"price = 9.5{' ' * 43}  +0.1000",
        f"empty = missing{' ' * 39}  +0.0000",
    ]
    two = Explanation(names[:2], np.array([[0.1, -0.4], [0.3, 0.2]]), [0.2, 0.6], [0.3, 0.2], [7, 9], {})
    assert str(two).splitlines() == ["mean absolute contribution to 2 scores", "match  +0.3000", "price  +0.2000"]
    assert two.to_pandas().loc[9, "match"] == 0.2
