"""Baselines: their closed forms in float64, from the papers."""

import numpy as np
import pytest
from scipy import sparse

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
    found = recommendation.Popularity().fit(train).predict(USERS)
    np.testing.assert_array_equal(found, np.tile(x_of(train).sum(0), [4, 1]))


def test_popularity_of_a_window_counts_recent_interactions():
    matrix = sparse.csr_array([[1, 1, 0], [0, 1, 1]])
    train = recommendation.Interactions(matrix, times=[0.0, 8.0, 4.0, 10.0])
    assert recommendation.Popularity(window=2.0).fit(train).predict([0]).tolist() == [[0.0, 1.0, 1.0]]
    with pytest.raises(ValueError, match="`interactions` must have times for `window`, got none."):
        recommendation.Popularity(window=2.0).fit(recommendation.Interactions(matrix))


@pytest.mark.parametrize("block", [1, 70, 2**24])
@pytest.mark.parametrize("strength", [0.5, 100.0])
def test_ease_is_the_closed_form(strength, block, train, monkeypatch):
    monkeypatch.setattr(baselines, "_BLOCK", block)
    x = x_of(train)
    p = np.linalg.inv(x.T @ x + strength * np.eye(25))
    weights = -p / np.diag(p)
    np.fill_diagonal(weights, 0.0)
    found = recommendation.EASE(strength=strength).fit(train).predict(USERS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x[USERS] @ weights, rtol=1e-4, atol=1e-5)


def test_ease_is_a_ridge_regression_of_each_item_on_the_others(train):
    x = x_of(train)
    found = recommendation.EASE(strength=2.0).fit(train).predict(np.arange(60))
    for item in (0, 12, 24):
        others = np.delete(x, item, axis=1)
        weights = np.linalg.solve(others.T @ others + 2.0 * np.eye(24), others.T @ x[:, item])
        np.testing.assert_allclose(found[:, item], others @ weights, rtol=1e-3, atol=1e-4)


def test_ease_refuses_a_strength_that_float32_cannot_represent():
    with pytest.raises(ValueError, match="`strength` must be larger for these interactions, got 1e-12."):
        recommendation.EASE(strength=1e-12).fit(recommendation.Interactions(np.ones([5, 3])))


ALL = [recommendation.Popularity(), recommendation.EASE()]


@pytest.mark.parametrize("baseline", ALL, ids=lambda each: type(each).__name__)
def test_every_baseline_has_the_interface(baseline, train):
    fresh = type(baseline)()
    with pytest.raises(ValueError, match="`fit` must be called first."):
        fresh.predict([0])
    assert baseline.fit(train) is baseline and baseline.interactions_ is train
    scores = baseline.predict([0, 5])
    assert scores.shape == (2, 25) and scores.dtype == np.float32 and np.isfinite(scores).all()
    np.testing.assert_allclose(baseline.predict([5])[0], scores[1], rtol=1e-6)
    assert baseline.predict([]).shape == (0, 25)
    with pytest.raises(ValueError, match="`users` must be indices below 60, got 60."):
        baseline.predict([60])
    other = recommendation.Interactions(np.eye(3))
    assert baseline.fit(other).predict([0]).shape == (1, 3)


def test_a_bad_strength_is_refused():
    with pytest.raises(ValueError, match="`strength` must be a finite number > 0, got 0."):
        recommendation.EASE(strength=0)
