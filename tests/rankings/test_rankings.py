"""Properties of every ranking."""

import dataclasses
import functools
import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import facts, references
from tests.helpers.modes import quick_or_slow
from tests.helpers.references import sigmoid
from tests.rankings import evaluate
from tfr_smooth import rankings
from tfr_smooth.rankings import FastSort, LapSum, NeuralSort, Sinkhorn, SmoothI, SoftRank, SoftSort, SortingNetwork
from tfr_smooth.rankings.dcg import NDCGGain
from tfr_smooth.rankings.ranking import exclusive_product

ROWS = [
    *(SmoothI(2.0), SmoothI(2.0, stop_gradient=False), SoftRank(0.7), NeuralSort(0.7)),
    *(SoftSort(0.7), SoftSort(0.7, power=2.0), SoftSort(0.7, power=0.5)),
    *(SoftRank(0.7, "normal"), SoftRank(0.7, sinkhorn_steps=3)),
    *(NeuralSort(0.7, sinkhorn_steps=50), SortingNetwork(2.0), SortingNetwork(2.0, "odd_even", "logistic")),
]
RANKS = [FastSort(0.7), FastSort(0.7, "kl"), Sinkhorn(0.1), LapSum(0.7)]
ALL = [*ROWS, rankings.Approx(2.0), *RANKS]
SHARP = [kind(**facts.RELAXATIONS[name].sharp) for name, kind in rankings.RANKINGS.items()]
SHARP += [FastSort(1e-3, "kl", beta=1e3), SortingNetwork(1e3, "odd_even", "logistic"), SoftRank(1e-3, "normal", 2)]
# Rankings in which far scores do not change near ones, as all documents between them have their exact ranks.
BY_DIFFERENCES = [NeuralSort(0.7), *ROWS[4:6], *RANKS[:2], SoftRank(0.7, "normal"), SoftRank(0.7, sinkhorn_steps=3)]
BY_DIFFERENCES += [ranking for ranking in SHARP if facts.of_ranking(ranking).sharp_error <= 1e-11]

every_ranking = pytest.mark.parametrize(
    "ranking",
    [pytest.param(r, marks=pytest.mark.slow if isinstance(r, (LapSum, SortingNetwork)) else ()) for r in ALL],
    ids=str,
)


def result(ranking):
    """Returns a function for indicators [batch, rank, list], or positions [batch, list] with 0 at padding."""
    if isinstance(ranking, rankings.PositionRanking):
        return lambda scores, mask: tf.where(mask, ranking.positions(scores, mask), 0.0)
    return ranking.indicators


def random_scores(batch, length, seed=0):
    return np.random.RandomState(seed).randn(batch, length)


def weights_for(ranking, batch, length, seed=1):
    shape = (batch, length) if isinstance(ranking, rankings.PositionRanking) else (batch, length, length)
    return np.random.RandomState(seed).randn(*shape)


@quick_or_slow(facts.RELAXATIONS, quick=[name for name in facts.RELAXATIONS if name not in ("sinkhorn", "lapsum")])
def test_values_and_gradients_equal_the_paper(name):
    """For the values searched in the papers. The gradients of SmoothI and SoftRank have tests of their own."""
    searched = facts.RELAXATIONS[name].searched | ({"power": (0.5, 1.0, 2.0, 3.0)} if name == "softsort" else {})
    keys = [key for key in searched if key in references.RANKINGS[name][1]]
    converged = {"threshold": 1e-13, "max_iterations": 20000} if name == "sinkhorn" else {}
    rows = [random_scores(1, length, length)[0] for length in (1, 2, 9, 30)]
    scores, mask = evaluate.padded(rows)
    for values in itertools.product(*(searched[key] for key in keys)):
        arguments = dict(zip(keys, values, strict=True))
        print(arguments)  # shown if it fails
        ranking = rankings.RANKINGS[name](**arguments, **converged)
        weights = weights_for(ranking, 4, 30)
        found, gradient = evaluate.value_and_gradient(result(ranking), scores, weights, mask)
        for i, row in enumerate(rows):
            n = (slice(None, len(row)),) * (found.ndim - 1)
            expected = references.ranking_of(name, row, **arguments)
            np.testing.assert_allclose(found[i][n], expected, rtol=1e-9 if name == "sinkhorn" else 1e-12, atol=1e-14)
            if name not in ("smoothi", "soft") and len(row) < 30:
                of_row = functools.partial(references.ranking_of, name, **arguments)
                slopes = references.central_differences(lambda s, f=of_row, w=weights[i][n]: np.sum(w * f(s)), row)
                np.testing.assert_allclose(gradient[i, : len(row)], slopes, rtol=1e-5, atol=1e-6)


@every_ranking
def test_float32_is_near_float64(ranking):
    scores = random_scores(2, 24).astype(np.float32)
    weights = np.abs(weights_for(ranking, 2, 24))
    found, gradient = evaluate.value_and_gradient(result(ranking), scores, weights)
    expected, slopes = evaluate.value_and_gradient(result(ranking), scores.astype(np.float64), weights)
    assert found.dtype == gradient.dtype == np.float32
    assert expected.dtype == slopes.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=5e-6, atol=1e-6)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())


@every_ranking
def test_results_depend_on_neither_padding_nor_other_lists(ranking):
    rows = [random_scores(1, 8)[0], 30.0 * random_scores(1, 4, 1)[0], np.round(random_scores(1, 7, 2)[0])]
    scores, mask = evaluate.padded(rows)
    weights = weights_for(ranking, 3, 8)
    found, gradient = evaluate.value_and_gradient(result(ranking), scores, weights, mask)
    for i, row in enumerate(rows):
        n = (slice(None, len(row)),) * (found.ndim - 1)
        expected, slopes = evaluate.of_one_list(result(ranking), row, weights[i][n])
        np.testing.assert_allclose(found[i][n], expected, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(gradient[i, : len(row)], slopes, rtol=1e-8, atol=1e-10)
        assert np.abs(found[i]).sum() == pytest.approx(np.abs(found[i][n]).sum(), rel=1e-14)
        np.testing.assert_allclose(gradient[i, len(row) :], 0.0, atol=1e-15)


def test_scaling_the_scores_equals_scaling_the_temperature():
    scores = random_scores(1, 9)[0]
    for name, relaxation in facts.RELAXATIONS.items():
        factor = 1.0 / 3.0 if name in ("smoothi", "approx", "sortingnetwork") else 1.0 if name == "sinkhorn" else 3.0
        ranking, scaled = (rankings.RANKINGS[name](**{relaxation.temperature: 0.7 * f}) for f in (1.0, factor))
        expected = evaluate.value(result(ranking), scores)
        np.testing.assert_allclose(evaluate.value(result(scaled), 3.0 * scores), expected, rtol=1e-11, err_msg=name)


@pytest.mark.parametrize("ranking", ALL + SHARP, ids=str)
def test_value_and_gradient_are_finite_for_extreme_scores(ranking):
    for dtype in (np.float32, np.float64):
        largest = np.finfo(dtype).max / 4.0  # the limit to which `_padded.clean` clips
        one_document, no_document = [3.0, 0.0, 0.0, 0.0], [0.0] * 4
        far, huge = [1e30, 1.0, 1.0, -1e30], [largest, largest, -largest, -largest]
        near, of_half_precision = [1e-7, 0.0, -1e-7, 1e-7], [-0.0, 0.0, 60000.0, -60000.0]
        scores = np.array([[0.0] * 4, one_document, no_document, far, huge, near, of_half_precision], dtype)
        mask = np.ones(scores.shape, bool)
        mask[1, 1:], mask[2] = False, False
        found, gradient = evaluate.value_and_gradient(result(ranking), scores, weights_for(ranking, 7, 4), mask)
        assert np.isfinite(found).all() and np.isfinite(gradient).all()
        first = np.eye(1, found[1].size).reshape(found[1].shape)
        np.testing.assert_array_equal(found[1], first)
        np.testing.assert_array_equal(found[2], 0.0)
        np.testing.assert_array_equal(gradient[1:3], 0.0)


def test_sharp_limit_is_the_exact_ranking():
    scores = np.random.RandomState(0).permutation(12).astype(np.float32)
    exact = evaluate.value(rankings.ExactRanking().indicators, scores)
    for ranking in SHARP:
        found = evaluate.value(result(ranking), scores)
        expected = np.arange(1, 13) @ exact if isinstance(ranking, rankings.PositionRanking) else exact
        error = facts.of_ranking(ranking).sharp_error
        np.testing.assert_allclose(found, expected, atol=error, err_msg=str(ranking))


def test_far_scores_do_not_reduce_the_precision_of_near_ones():
    near = [2.0, 1.5, 1.4]
    for ranking in BY_DIFFERENCES:
        found, expected = (evaluate.value(result(ranking), np.array([far, *near, -far])) for far in (1e30, 1e4))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14, err_msg=str(ranking))


@pytest.mark.parametrize("ranking", [*ALL, rankings.ExactRanking()], ids=str)
def test_rank_relevance_equals_indicators_times_relevance_up_to_topn(ranking):
    scores, mask = evaluate.padded([random_scores(1, 9)[0], random_scores(1, 3, 1)[0]])
    relevance = np.where(mask, np.random.RandomState(1).rand(2, 9), 0.0)
    scores, relevance, mask = map(tf.constant, (scores, relevance, mask))
    every = ranking.indicators(scores, mask).numpy()
    assert (every >= 0.0).all()
    np.testing.assert_array_equal(every[1, 3:], 0.0)
    np.testing.assert_array_equal(every[1, :, 3:], 0.0)
    at_ranks = np.einsum("brj,bj->br", every, relevance)
    for topn in (None, 1, 4, 50):
        ranks = min(topn or 9, 9)
        np.testing.assert_allclose(ranking.indicators(scores, mask, topn), every[:, :ranks], rtol=1e-12, atol=1e-15)
        found = ranking.rank_relevance(scores, relevance, mask, topn).numpy()
        np.testing.assert_allclose(found, at_ranks[:, :ranks], rtol=1e-9, atol=1e-12)
    if not isinstance(ranking, (SoftRank, rankings.PositionRanking)):  # Each rank has one document.
        np.testing.assert_allclose(every.sum(axis=2), np.arange(9) < [[9], [3]], rtol=1e-12)


@every_ranking
def test_rank_relevance_has_the_gradient_of_the_indicators_and_none_for_labels(ranking):
    scores, relevance = tf.constant(random_scores(1, 6)), tf.constant(np.random.RandomState(1).rand(1, 6))
    mask = tf.ones([1, 6], tf.bool)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([scores, relevance])
        found = tf.reduce_sum(tf.square(ranking.rank_relevance(scores, relevance, mask, topn=3)))
        rows = tf.linalg.matvec(ranking.indicators(scores, mask, topn=3), tf.stop_gradient(relevance))
        expected = tf.reduce_sum(tf.square(rows))
    np.testing.assert_allclose(tape.gradient(found, scores), tape.gradient(expected, scores), rtol=1e-9, atol=1e-12)
    assert tape.gradient(found, relevance) is None


# ---- Rankings by positions, and steps


@dataclasses.dataclass(frozen=True)
class GivenPositions(rankings.PositionRanking):
    """A ranking whose scores are the positions."""

    beta: float = 3.0

    def positions(self, scores, mask):
        return scores


def test_indicators_of_positions_are_differences_of_sigmoids():
    positions, ranks = np.array([1.0, 2.5, 3.0]), np.array([[1.0], [2.0], [3.0]])
    shares = sigmoid(3.0 * (ranks + 0.5 - positions)) - sigmoid(3.0 * (ranks - 0.5 - positions))
    np.testing.assert_allclose(evaluate.value(GivenPositions().indicators, positions), shares, rtol=1e-12)


def test_steps_of_ranks_equal_hand_computed_values():
    relevance = np.array([[0.5, 0.25, 1.5, 0.0]])
    steps = rankings.RankSteps(tf.constant(relevance))
    np.testing.assert_array_equal(steps.ranks, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(steps.within, [[1.0] * 4])
    np.testing.assert_allclose(steps.relevance_before(), [[0.0, 0.5, 0.75, 2.25]])
    clipped = steps.clipped()
    np.testing.assert_allclose(clipped.relevance, [[0.5, 0.25, 1.0, 0.0]])
    np.testing.assert_allclose(clipped.none_before(), [[1.0, 0.5, 0.375, 0.0]])
    np.testing.assert_array_equal(steps.relevance, relevance)


def test_later_ranks_after_a_certain_stop_have_no_gradient():
    probabilities = tf.constant([[0.0, 1.0, 0.5, 1.0]])
    with tf.GradientTape() as tape:
        tape.watch(probabilities)
        before = exclusive_product(probabilities)
        value = tf.reduce_sum(probabilities / tf.range(1.0, 5.0) * before)
    np.testing.assert_array_equal(before, [[1.0, 1.0, 0.0, 0.0]])
    # A stop at rank 1 gains 1 instead of 1/2; a stop at rank 2 gains 1/2 instead of the sum of later ranks.
    expected = [[0.5, 0.5 - (0.5 / 3.0 + 0.5 / 4.0), 0.0, 0.0]]
    np.testing.assert_allclose(tape.gradient(value, probabilities), expected, atol=1e-7)


def test_steps_of_positions_equal_their_formulas():
    positions, relevance = np.array([2.0, 1.0, 3.5]), np.array([0.5, 0.25, 2.0])
    scores, mask = tf.constant([[*positions, 0.0]], tf.float64), tf.constant([[True] * 3 + [False]])
    steps = GivenPositions().steps(scores, tf.constant([[*relevance, 0.0]], tf.float64), mask, topn=2)
    np.testing.assert_array_equal(steps.ranks[0, :3], positions)
    np.testing.assert_allclose(steps.within[0, :3], sigmoid(3.0 * (2.5 - positions)), rtol=1e-12)
    before = sigmoid(3.0 * (positions[:, None] - 0.5 - positions)) * (1.0 - np.eye(3))
    np.testing.assert_allclose(steps.relevance_before()[0, :3], before @ relevance, rtol=1e-12)
    none_before = np.prod(1.0 - before * np.minimum(relevance, 1.0), axis=1)
    np.testing.assert_allclose(steps.clipped().none_before()[0, :3], none_before, rtol=1e-12)
    np.testing.assert_array_equal(GivenPositions().steps(scores, scores, mask).within, np.ones((1, 4)))


@every_ranking
def test_discounted_gain_uses_document_discounts_or_rank_relevance(ranking):
    scores, mask = map(tf.constant, evaluate.padded([random_scores(1, 6)[0], random_scores(1, 4, 1)[0]]))
    relevance = tf.cast(mask, tf.float64) * [2.0, 0.0, 1.0, 3.0, 0.0, 1.0]
    for topn, gain in itertools.product((None, 3), (NDCGGain.of("exponential", relevance), tf.sqrt)):
        found = ranking.discounted_gain(scores, relevance, mask, topn=topn, gain=gain)
        if hasattr(ranking, "document_discounts"):
            expected = np.sum(gain(relevance) * ranking.document_discounts(scores, mask, topn=topn), axis=1)
        else:
            gains = gain(ranking.rank_relevance(scores, relevance, mask, topn)).numpy()
            expected = gains @ references.discounts(gains.shape[1])
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_invalid_arguments_raise():
    for make, message in (
        (lambda: SmoothI(delta=0.5), "`delta` must be a number in (0, 0.5), got 0.5."),
        (lambda: SoftSort(float("nan")), "`temperature` must be a finite number > 0, got nan."),
        (lambda: FastSort(True), "`regularization_strength` must be a finite number > 0, got True."),
        (lambda: Sinkhorn(max_iterations=2.5), "`max_iterations` must be an integer >= 1, got 2.5."),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            make()


def test_a_ranking_without_methods_raises():
    class Empty(rankings.Ranking):
        pass

    with pytest.raises(NotImplementedError, match="Empty defines neither `indicators` nor `rank_relevance`"):
        Empty().rank_relevance(tf.zeros([1, 2]), tf.zeros([1, 2]), tf.ones([1, 2], tf.bool))


def test_rankings_with_equal_arguments_are_equal():
    assert SoftRank(2) == SoftRank(sigma=2.0) and hash(SoftRank(2)) == hash(SoftRank(2.0))
    assert SmoothI(10) == SmoothI() != SmoothI(2)
