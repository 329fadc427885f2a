"""Baselines: their closed forms in float64, from the papers."""

import numpy as np
import pytest

from tests.helpers import assert_error
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


@pytest.mark.parametrize(("strength", "block"), [(0.5, 70), (100.0, 2**24)])
def test_ease_is_the_closed_form(strength, block, train, monkeypatch):
    monkeypatch.setattr(baselines, "_BLOCK", block)
    x = x_of(train)
    p = np.linalg.inv(x.T @ x + strength * np.eye(25))
    weights = -p / np.diag(p)
    np.fill_diagonal(weights, 0.0)
    found = recommendation.EASE(strength=strength).fit(train).predict(USERS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x[USERS] @ weights, rtol=1e-4, atol=1e-5)


def in_time(interactions, seed=0):
    """Returns the same interactions with random times, many of which are equal."""
    times = np.random.default_rng(seed).integers(0, 9, interactions.num_interactions)
    return recommendation.Interactions(interactions.matrix, times=times)


@pytest.mark.parametrize("order, decay, smoothing", [(3, 0.8, 0.1), (100, 1.0, 10.0)])
def test_a_markov_chain_is_the_smoothed_share_of_transitions(order, decay, smoothing, train):
    train = in_time(train)
    latest = train.latest(np.arange(60), 25)[0]
    lists = [row[row >= 0].tolist() for row in latest]
    counts, shares = np.zeros([25, 25]), (x_of(train).sum(0) + 1.0) / (train.num_interactions + 25.0)
    for items in lists:
        for place, item in enumerate(items):
            for distance, after in enumerate(items[place + 1 : place + 1 + order], start=1):
                counts[item, after] += decay ** (distance - 1)
    transitions = (counts + smoothing * shares) / (counts.sum(1, keepdims=True) + smoothing)
    found = recommendation.MarkovChain(order=order, decay=decay, smoothing=smoothing).fit(train).predict(USERS)
    assert found.dtype == np.float32
    for user, scores in zip(USERS, found, strict=True):
        recent = lists[user][::-1][:order]
        expected = sum(decay**k * transitions[item] for k, item in enumerate(recent)) if recent else shares
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-7)


def test_a_bad_setting_is_refused():
    for baseline, name, value, expected in (
        (recommendation.EASE, "strength", 0, "a finite number > 0"),
        (recommendation.MarkovChain, "order", 0, "an integer >= 1"),
        (recommendation.MarkovChain, "decay", 1.5, "a number in (0, 1]"),
    ):
        assert_error(f"`{name}` must be {expected}, got {value}.", baseline, **{name: value})
    few = recommendation.Interactions(np.ones([5, 3]))
    message = "`strength` must be larger for these interactions, got 1e-12."  # float32 cannot represent it
    assert_error(message, recommendation.EASE(strength=1e-12).fit, few)
    assert_error("`interactions` must have an order for `sequences`, got none", recommendation.MarkovChain().fit, few)


@pytest.mark.parametrize("kind", [recommendation.Popularity, recommendation.MarkovChain, recommendation.EASE])
def test_every_baseline_has_the_interface(kind, train):
    train, baseline = in_time(train), kind()
    assert_error("`fit` must be called first.", baseline.predict, [0])
    assert baseline.fit(train) is baseline and baseline.interactions_ is train
    scores = baseline.predict([0, 5])
    if kind is recommendation.Popularity:
        np.testing.assert_array_equal(scores, np.tile(x_of(train).sum(0), [2, 1]))  # the number of users
    assert scores.shape == (2, 25) and scores.dtype == np.float32 and np.isfinite(scores).all()
    np.testing.assert_allclose(baseline.predict([5])[0], scores[1], rtol=1e-6)
    assert baseline.predict([]).shape == (0, 25)
    assert_error("`users` must be indices below 60, got 60.", baseline.predict, [60])
    other = in_time(recommendation.Interactions(np.eye(3)))
    assert baseline.fit(other).predict([0]).shape == (1, 3)
