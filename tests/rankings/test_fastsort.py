"""FastSort equals the paper: the projection, its optimality, its Jacobian, its limits."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers.references import fastsort_positions as paper
from tests.rankings import evaluate
from tfr_smooth.rankings import fastsort
from tfr_smooth.rankings.fastsort import FastSort

every_regularization = pytest.mark.parametrize("regularization", ["l2", "kl"])


def positions(ranking, scores):
    return evaluate.value(ranking.positions, np.asarray(scores, np.float64))


def test_l2_positions_equal_hand_computed_values():
    for scores, strength, expected in (
        # A gap below the strength: the mean rank, minus the centered score divided by the strength.
        ([0.0, 0.5], 1.0, [1.75, 1.25]),
        ([0.0, 0.5], 0.5, [2.0, 1.0]),
        ([1.0, 5.0, 2.0], 2.0, [2.75, 1.0, 2.25]),
        ([0.0, 0.0, 3.0], 1e6, [2.000001, 2.000001, 1.999998]),
    ):
        found = positions(FastSort(strength), scores)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_kl_positions_equal_hand_computed_values():
    """Two documents in one block share the sum 3 of the ranks by exp(-s / epsilon), until the upper one has rank 1."""
    shares = np.exp([0.0, -0.5])
    found = positions(FastSort(1.0, "kl"), [0.0, 0.5])
    np.testing.assert_allclose(found, 3.0 * shares / shares.sum(), rtol=1e-14)
    edge = positions(FastSort(0.5 / np.log(2.0), "kl"), [0.0, 0.5])
    np.testing.assert_allclose(edge, [2.0, 1.0], rtol=1e-14)


@every_regularization
def test_pooling_all_violators_at_once_reaches_the_solution(regularization):
    documents = np.arange(40)
    hard_lists = {
        "merges one document per round": -1.01 * np.minimum(documents, 20),
        "steps": np.repeat([3.0, 2.5, 0.0, -4.0], 10),
        "at the edge of pooling": -1.0 * documents,
        "concave": -(documents**2) / 20.0,
        "convex": documents[::-1] ** 2 / 20.0,
    }
    for (name, scores), strength in itertools.product(hard_lists.items(), (0.3, 1.0, 3.0)):
        found = positions(FastSort(strength, regularization), scores)
        np.testing.assert_allclose(found, paper(scores, strength, regularization), rtol=1e-11, err_msg=name)


@pytest.mark.parametrize(("regularization", "gap"), [("l2", 1.0), ("kl", np.log(2.0))])
def test_below_a_certain_strength_ranks_are_exact_without_gradient(regularization, gap):
    scores = np.array([2.0, 0.0, 1.0])
    exact, smooth = (FastSort(s / gap, regularization) for s in (0.999, 1.001))
    np.testing.assert_allclose(positions(exact, scores), [1.0, 3.0, 2.0], rtol=1e-14)
    np.testing.assert_allclose(evaluate.gradient(exact.positions, scores, np.arange(3.0)), 0.0, atol=1e-14)
    assert np.abs(evaluate.gradient(smooth.positions, scores, np.arange(3.0))).max() > 0.1


def one_document_per_round(length, regularization):
    """Returns scores for which pooling adds one document per round to the tied lower half, until all are one block."""
    ranks = np.minimum(np.arange(1, length + 1), length // 2)
    return -1.001 * (ranks if regularization == "l2" else np.log(ranks))


def solve_eagerly(regularization, monkeypatch):
    """Makes `FastSort` solve without a traced graph, and returns a list that gets an entry per round."""
    rounds, solve = [], fastsort._SOLVERS[regularization]
    counted = functools.partial(fastsort._blocks, lambda *args: rounds.append(1) or solve(*args))
    monkeypatch.setitem(fastsort._BLOCKS, regularization, counted)
    return rounds


@every_regularization
def test_at_most_30_rounds_are_needed(regularization, monkeypatch):
    rounds = solve_eagerly(regularization, monkeypatch)
    for scores in (one_document_per_round(300, regularization), np.random.RandomState(0).randn(300)):
        rounds.clear()
        positions(FastSort(1.0, regularization), scores)
        assert 1 < len(rounds) < 30


@every_regularization
def test_lists_of_a_batch_are_solved_independently(regularization):
    """The first list needs splitting, which must not change the other lists."""
    random = np.random.RandomState(0)
    hard = one_document_per_round(100, regularization)
    rows = [hard, random.randn(60), np.arange(80.0), np.zeros(7), random.randn(1)]
    scores, mask = evaluate.padded(rows)
    found = FastSort(1.0, regularization).positions(tf.constant(scores), tf.constant(mask)).numpy()
    for positions_found, row in zip(found, rows, strict=True):
        np.testing.assert_allclose(positions_found[: len(row)], paper(row, 1.0, regularization), rtol=1e-11)


@every_regularization
@pytest.mark.parametrize("strength", [0.03, 3.0])
def test_splitting_and_pooling_find_the_same_blocks(strength, regularization, monkeypatch):
    random = np.random.RandomState(1)
    scores = np.stack([random.randn(200), random.standard_cauchy(200), random.randint(0, 5, 200), np.arange(200.0)])
    ranking, found = FastSort(strength, regularization), []
    solve_eagerly(regularization, monkeypatch)
    for rounds in (0, 10**6):
        monkeypatch.setattr(fastsort, "_FEW_ROUNDS", rounds)
        found.append(ranking.positions(tf.constant(scores), tf.ones_like(scores, tf.bool)))
    np.testing.assert_array_equal(*found)
