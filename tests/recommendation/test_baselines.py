"""Baselines: their closed forms in float64, from the papers."""

import re

import numpy as np
import pytest

from tfr_smooth import recommendation
from tfr_smooth.recommendation import baselines


@pytest.fixture
def train():
    """Returns interactions in which one user has no items, and one item no users."""
    dense = np.random.default_rng(0).random((60, 25)) < np.linspace(0.05, 0.6, 25)
    dense[4], dense[:, 7] = False, False
    return recommendation.Interactions(dense)


def x_of(interactions):
    return interactions.matrix.toarray().astype(np.float64)


USERS = np.array([3, 4, 3, 59])


def test_popularity_is_the_number_of_users(train):
    found = recommendation.Popularity().fit(train).scores(USERS)
    np.testing.assert_array_equal(found, np.tile(x_of(train).sum(0), [4, 1]))


@pytest.mark.parametrize("block", [1, 70, 2**24])
@pytest.mark.parametrize("neighbors, shrinkage", [(1, 0.0), (5, 10.0), (200, 3.0)])
def test_item_knn_sums_the_shrunk_cosines_of_the_nearest_items(neighbors, shrinkage, block, monkeypatch):
    monkeypatch.setattr(baselines, "_BLOCK", block)
    dense = np.random.default_rng(0).random((500, 25)) < np.linspace(0.1, 0.6, 25)
    dense[:, 7] = False
    train = recommendation.Interactions(dense)
    x = x_of(train)
    common, norms = x.T @ x, np.sqrt(x.sum(0))
    similar = common / np.maximum(np.outer(norms, norms) + shrinkage, 1e-9)
    np.fill_diagonal(similar, 0.0)
    for row in similar:
        row[row < np.sort(row)[-min(neighbors, 25)]] = 0.0
    # Without ties, the neighbors are determined; the item without users has none.
    assert sorted(np.count_nonzero(similar, axis=1)) == [0] + [min(neighbors, 23)] * 24
    found = recommendation.ItemKNN(neighbors=neighbors, shrinkage=shrinkage).fit(train).scores(USERS)
    np.testing.assert_allclose(found, x[USERS] @ similar.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("block", [1, 70, 2**24])
@pytest.mark.parametrize("strength", [0.5, 100.0])
def test_ease_is_the_closed_form(strength, block, train, monkeypatch):
    monkeypatch.setattr(baselines, "_BLOCK", block)
    x = x_of(train)
    p = np.linalg.inv(x.T @ x + strength * np.eye(25))
    weights = -p / np.diag(p)
    np.fill_diagonal(weights, 0.0)
    found = recommendation.EASE(strength=strength).fit(train).scores(USERS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x[USERS] @ weights, rtol=1e-4, atol=1e-5)


def test_ease_is_a_ridge_regression_of_each_item_on_the_others(train):
    x = x_of(train)
    found = recommendation.EASE(strength=2.0).fit(train).scores(np.arange(60))
    for item in (0, 12, 24):
        others = np.delete(x, item, axis=1)
        weights = np.linalg.solve(others.T @ others + 2.0 * np.eye(24), others.T @ x[:, item])
        np.testing.assert_allclose(found[:, item], others @ weights, rtol=1e-3, atol=1e-4)


def test_ease_refuses_a_strength_that_float32_cannot_represent():
    with pytest.raises(ValueError, match="`strength` must be larger for these interactions, got 1e-12."):
        recommendation.EASE(strength=1e-12).fit(recommendation.Interactions(np.ones([5, 3])))


def test_ials_reaches_a_stationary_point_of_its_objective(train):
    x, factors, strength, confidence = x_of(train), 3, 2.0, 4.0
    model = recommendation.IALS(factors=factors, strength=strength, confidence=confidence, iterations=300).fit(train)
    w, v = model._users.astype(np.float64), model._items.astype(np.float64)
    errors = (1.0 + (confidence - 1.0) * x) * (w @ v.T - x)
    np.testing.assert_allclose(errors @ v + strength * w, 0.0, atol=1e-3)
    np.testing.assert_allclose(errors.T @ w + strength * v, 0.0, atol=1e-3)
    assert np.abs(w).max() > 0.3
    np.testing.assert_allclose(model.scores(USERS), (w @ v.T)[USERS], atol=1e-5)


def test_ials_depends_only_on_the_seed(train):
    first, again, other = (recommendation.IALS(factors=2, seed=seed).fit(train).scores(USERS) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


ALL = [
    recommendation.Popularity(),
    recommendation.ItemKNN(),
    recommendation.EASE(),
    recommendation.IALS(factors=4),
    recommendation.BPR(factors=4),
]


@pytest.mark.parametrize("baseline", ALL, ids=lambda each: type(each).__name__)
def test_every_baseline_has_the_interface(baseline, train):
    fresh = type(baseline)()
    with pytest.raises(ValueError, match="`fit` must be called first."):
        fresh.scores([0])
    assert baseline.fit(train) is baseline and baseline.interactions_ is train
    scores = baseline.scores([0, 5])
    assert scores.shape == (2, 25) and scores.dtype == np.float32 and np.isfinite(scores).all()
    np.testing.assert_allclose(baseline.scores([5])[0], scores[1], rtol=1e-6)
    assert baseline.scores([]).shape == (0, 25)
    with pytest.raises(ValueError, match="`users` must be indices below 60, got 60."):
        baseline.scores([60])
    other = recommendation.Interactions(np.eye(3))
    assert baseline.fit(other).scores([0]).shape == (1, 3)


def test_personal_baselines_find_groups_of_users_and_popularity_does_not():
    """Users of two groups have items of their group; the rest of these items is held out."""
    random = np.random.default_rng(0)
    group = np.repeat([0, 1], 40)
    dense = (random.random((80, 30)) < 0.5) & (group[:, np.newaxis] == np.repeat([0, 1], 15))
    train, test = recommendation.hold_out(recommendation.Interactions(dense), items=2)
    factors = [recommendation.BPR(factors=4, learning_rate=0.1), recommendation.IALS(factors=4, strength=5.0)]
    means = []
    for each in (recommendation.Popularity(), recommendation.ItemKNN(), recommendation.EASE(), *factors):
        found = recommendation.evaluate(each.fit(train), test, seen=train, measures="recall_5")
        means.append(found.means["recall_5"].mean)
    assert min(means[1:]) > means[0] + 0.1, means


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: recommendation.ItemKNN(neighbors=0), "`neighbors` must be an integer >= 1, got 0."),
        (lambda: recommendation.ItemKNN(shrinkage=-1.0), "`shrinkage` must be a finite number >= 0, got -1.0."),
        (lambda: recommendation.EASE(strength=0), "`strength` must be a finite number > 0, got 0."),
        (lambda: recommendation.IALS(factors=1.5), "`factors` must be an integer >= 1, got 1.5."),
        (lambda: recommendation.IALS(strength=None), "`strength` must be a finite number > 0, got None."),
        (lambda: recommendation.IALS(confidence=0.0), "`confidence` must be a finite number > 0, got 0.0."),
        (lambda: recommendation.IALS(iterations=0), "`iterations` must be an integer >= 1, got 0."),
        (lambda: recommendation.IALS(seed=-1), "`seed` must be an integer >= 0, got -1."),
        (lambda: recommendation.BPR(factors=0), "`factors` must be an integer >= 1, got 0."),
        (lambda: recommendation.BPR(learning_rate=0.0), "`learning_rate` must be a finite number > 0, got 0.0."),
        (lambda: recommendation.BPR(strength=-1.0), "`strength` must be a finite number >= 0, got -1.0."),
        (lambda: recommendation.BPR(iterations=0), "`iterations` must be an integer >= 1, got 0."),
        (lambda: recommendation.BPR(seed=-1), "`seed` must be an integer >= 0, got -1."),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
