"""Simulated clicks have the click-through rates of their model in closed form."""

import numpy as np

from experiments.click_simulation import User, simulate


def test_click_through_rates_are_those_of_the_papers():
    sessions, labels = 40_000, np.array([1, 0, 2, 0])
    for eta, trust in ((0.7, 0.0), (1.0, 0.6)):
        user = User(eta=eta, noise=0.2, max_label=2, trust=trust)
        log = simulate(labels, np.zeros(4), [4.0, 3.0, 2.0, 1.0], user, num_sessions=sessions)
        attraction, ranks = np.array([0.2 + 0.8 / 3.0, 0.2, 1.0, 0.2]), np.arange(1.0, 5.0)
        expected = ranks**-eta * (attraction + trust / ranks * (1.0 - attraction))
        rates = np.bincount(log.rows, log.clicks) / sessions
        assert (np.abs(rates - expected) <= 5.0 * np.sqrt(expected * (1.0 - expected) / sessions)).all()


def test_sessions_show_the_top_of_the_ranking_or_of_random_ones_without_padding():
    labels, scores = np.array([0, 1, 2, 1, 0]), np.array([0.3, 0.9, 0.5, 0.1, 0.2])
    log = simulate(labels, list("abacc"), scores, User(), num_sessions=200, topn=2)
    shown = [tuple(log.rows[log.sessions == session].tolist()) for session in range(200)]
    assert set(shown) == {(2, 0), (1,), (4, 3)}
    assert set(zip(log.rows.tolist(), log.positions.tolist(), strict=True)) == {(2, 1), (0, 2), (1, 1), (4, 1), (3, 2)}
    # Random rankings show each document at each position equally often.
    log = simulate(np.zeros(7), [0, 0, 0, 0, 1, 1, 1], None, User(), num_sessions=8000, topn=3)
    counts = np.zeros((7, 3))
    np.add.at(counts, (log.rows, log.positions - 1), 1.0)
    shares = counts / counts.sum(axis=0)
    np.testing.assert_allclose(shares[:4], 0.5 / 4.0, atol=0.02)
    np.testing.assert_allclose(shares[4:], 0.5 / 3.0, atol=0.02)
