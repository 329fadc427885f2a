"""Simulated clicks have the click-through rates of their models in closed form."""

import itertools

import numpy as np
import pytest

from tests import helpers
from tfr_smooth import clicks

LABELS = np.array([1, 0, 2, 0, -1])
DRAWS = 40_000
USERS = [
    clicks.PositionBased(eta=0.7, noise=0.2, max_label=2),
    clicks.TrustBias(eta=0.5, noise=0.1, max_label=2, trust=0.6),
    clicks.Cascade(noise=0.2, max_label=2),
    clicks.Cascade(noise=0.2, max_label=2, stop=0.3),
]
every_user = pytest.mark.parametrize("user", USERS, ids=str)


@every_user
def test_click_through_rates_are_the_probabilities_of_the_model(user):
    drawn = user.draw(np.tile(LABELS, (DRAWS, 1)), np.random.default_rng(0))
    rates = drawn.mean(axis=0)
    expected = user.click_probabilities(LABELS)
    # Five standard deviations.
    assert (np.abs(rates - expected) <= 5.0 * np.sqrt(expected * (1.0 - expected) / DRAWS)).all()
    assert rates[-1] == 0.0  # padding


def test_probabilities_equal_those_of_the_papers():
    attractive = np.array([0.2 + 0.8 / 3.0, 0.2, 1.0, 0.2])
    position_based, trust, cascade, weak_cascade = (user.click_probabilities(LABELS)[:4] for user in USERS)
    ranks = np.arange(1.0, 5.0)
    np.testing.assert_allclose(position_based, attractive / ranks**0.7)
    attractive_01 = np.array([0.1 + 0.9 / 3.0, 0.1, 1.0, 0.1])
    examined, wrong = ranks**-0.5, 0.6 / ranks
    np.testing.assert_allclose(trust, examined * (attractive_01 + wrong * (1.0 - attractive_01)))
    for found, stop in ((cascade, 1.0), (weak_cascade, 0.3)):
        # The sum over all patterns of attractive documents and decisions to stop.
        expected = np.zeros(4)
        for pattern in itertools.product([0, 1], repeat=8):
            likes, stops = np.array(pattern[:4]), np.array(pattern[4:])
            chance = np.prod(np.where(likes, attractive, 1 - attractive)) * np.prod(np.where(stops, stop, 1 - stop))
            reads = np.cumsum(likes * stops) - likes * stops == 0
            expected += chance * likes * reads
        np.testing.assert_allclose(found, expected)


def test_a_cascade_has_at_most_one_click():
    drawn = USERS[2].draw(np.tile(LABELS, (500, 1)), np.random.default_rng(0))
    assert drawn.sum(axis=1).max() == 1


def test_sessions_show_the_top_of_the_ranking():
    labels, scores = np.array([0, 1, 2, 1, 0]), np.array([0.3, 0.9, 0.5, 0.1, 0.2])
    log = clicks.simulate(labels, list("ababa"), scores, USERS[0], num_sessions=200, topn=2)
    tops = {(2, 0), (1, 3)}  # by score
    shown = [tuple(log.rows[log.sessions == session].tolist()) for session in range(200)]
    assert set(shown) == tops
    np.testing.assert_array_equal(log.positions, np.tile([1, 2], 200))
    assert 60 < shown.count((2, 0)) < 140
    again = clicks.simulate(labels, list("ababa"), scores, USERS[0], num_sessions=200, topn=2)
    helpers.assert_same(log, again)


def test_random_rankings_show_each_document_at_each_position_equally_often():
    log = clicks.simulate(np.zeros(7), [0, 0, 0, 0, 1, 1, 1], None, USERS[0], num_sessions=8000, topn=3)
    counts = np.zeros((7, 3))
    np.add.at(counts, (log.rows, log.positions - 1), 1.0)
    shares = counts / counts.sum(axis=0)
    np.testing.assert_allclose(shares[:4], 0.5 / 4.0, atol=0.02)
    np.testing.assert_allclose(shares[4:], 0.5 / 3.0, atol=0.02)
    for session in range(50):
        rows = log.rows[log.sessions == session]
        assert len(set(rows.tolist())) == 3 and len(set((rows >= 4).tolist())) == 1


def test_short_lists_are_not_padded():
    log = clicks.simulate([1, 0, 1], [0, 1, 1], [0.0, 0.0, 0.0], USERS[0], num_sessions=50, topn=5)
    assert set(zip(log.rows.tolist(), log.positions.tolist(), strict=True)) == {(0, 1), (1, 1), (2, 2)}


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: clicks.PositionBased(eta=-1.0), "eta"),
        (lambda: clicks.PositionBased(noise=1.5), "noise"),
        (lambda: clicks.PositionBased(max_label=0), "max_label"),
        (lambda: clicks.TrustBias(trust=2.0), "trust"),
        (lambda: clicks.Cascade(stop=-0.1), "stop"),
        (lambda: clicks.Cascade(max_label=1).attractiveness([2]), "labels"),
        (lambda: clicks.simulate([1], [0, 1], None, USERS[0], num_sessions=1), "labels"),
        (lambda: clicks.simulate([-1], [0], None, USERS[0], num_sessions=1), "labels"),
        (lambda: clicks.simulate([1], [0], [1.0, 2.0], USERS[0], num_sessions=1), "scores"),
        (lambda: clicks.simulate([1], [0], None, "pbm", num_sessions=1), "user"),
        (lambda: clicks.simulate([1], [0], None, USERS[0], num_sessions=0), "num_sessions"),
    ],
)
def test_bad_arguments_are_named(make, argument):
    with pytest.raises(ValueError, match=f"`{argument}` must be|`{argument}` must have"):
        make()
