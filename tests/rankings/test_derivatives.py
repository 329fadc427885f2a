"""Second derivatives of every ranking and criterion, with tapes inside and around graphs."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers, references
from tests.modes import quick_or_slow
from tests.rankings import evaluate
from tfr_smooth import measures
from tfr_smooth.rankings import Approx, FastSort, NeuralSort, Sinkhorn, SmoothI, SoftRank, SoftSort
from tfr_smooth.rankings.dcg import NDCGGain

RANDOM = np.random.RandomState(0)
MASK = np.arange(5) < np.array([[5], [3]])
SCORES, DIRECTION = (np.where(MASK, RANDOM.randn(2, 5), 0.0) for _ in range(2))
RELEVANCE = np.where(MASK, [[2.0, 0.0, 1.0, 3.0, 1.0], [0.0, 1.0, 0.0, 0.0, 0.0]], 0.0)
WEIGHTS = RANDOM.randn(2, 5)


def constants():
    return tf.constant(RELEVANCE), tf.constant(MASK)


def relevance_of(ranking):
    return lambda scores: ranking.rank_relevance(scores, *constants())


def positions_of(ranking):
    return lambda scores: tf.where(MASK, ranking.positions(scores, tf.constant(MASK)), 0.0)


def discounts_of(ranking, **arguments):
    return lambda scores: ranking.document_discounts(scores, tf.constant(MASK), **arguments)


def gain_of(ranking):
    def discounted_gain(scores):
        relevance, mask = constants()
        gain = NDCGGain.of("exponential", relevance)
        return ranking.discounted_gain(scores, relevance, mask, gain=gain)[:, tf.newaxis]

    return discounted_gain


def criterion_of(criterion):
    return lambda scores: criterion(np.where(MASK, RELEVANCE, -1.0), scores)[:, tf.newaxis]


DIFFERENTIABLE = {
    "smoothi relevance": relevance_of(SmoothI(2.0, stop_gradient=False)),
    "smoothi gain": gain_of(SmoothI(2.0, stop_gradient=False)),
    "approx relevance": relevance_of(Approx(2.0, 3.0)),
    "approx positions": positions_of(Approx(2.0)),
    "approx discounts": discounts_of(Approx(2.0, 3.0), topn=2),
    "softrank relevance": relevance_of(SoftRank()),
    "softrank discounts": discounts_of(SoftRank()),
    "softrank cut discounts": discounts_of(SoftRank(), topn=2),
    "softrank linear discounts": discounts_of(SoftRank(), discount="linear"),
    "softrank scaled discounts": discounts_of(SoftRank(sinkhorn_steps=2)),
    "neuralsort relevance": relevance_of(NeuralSort()),
    "softsort relevance": relevance_of(SoftSort()),
    "softsort relevance of squares": relevance_of(SoftSort(power=2.0)),
    "fastsort relevance": relevance_of(FastSort(3.0, beta=2.0)),
    "fastsort kl positions": positions_of(FastSort(2.0, "kl")),
    "sinkhorn relevance": relevance_of(Sinkhorn(0.3, 1e-14, 3000, beta=2.0)),
    "sinkhorn positions": positions_of(Sinkhorn(0.3, 1e-14, 3000)),
    "approx reciprocal rank": lambda s: measures.ReciprocalRank()(RELEVANCE, s, MASK, ranking=Approx(2.0))[:, None],
    "neuralsort reciprocal rank": lambda s: measures.ExpectedReciprocalRank()(RELEVANCE, s, MASK, ranking=NeuralSort())[
        :, None
    ],
    "list_net": criterion_of(helpers.each("list_net")),
    "list_mle": criterion_of(helpers.each("list_mle")),
    "rank_net": criterion_of(helpers.each("rank_net")),
    "lambda_loss": criterion_of(helpers.each("lambda_loss")),
    "list_ap": criterion_of(helpers.each("list_ap", num_bins=4, temperature=3.0)),
    "mean_squared": criterion_of(helpers.each("mean_squared")),
}
# With stopped gradients (Eq. 9 of SmoothI), second derivatives keep the products constant too.
STOPPED = {"smoothi stopped relevance": relevance_of(SmoothI(2.0)), "smoothi stopped gain": gain_of(SmoothI(2.0))}
FAST = ["approx positions", "list_net"]
every_mode = pytest.mark.parametrize(
    "name",
    [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in (*DIFFERENTIABLE, *STOPPED)],
)


def gradient_of(function, scores):
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = function(scores)
        total = tf.reduce_sum(WEIGHTS[:, : value.shape[1]] * value)
    return tape.gradient(total, scores)


def second_derivative(function, scores):
    """Returns the product of the Hessian with `DIRECTION`."""
    with tf.GradientTape() as tape:
        tape.watch(scores)
        along = tf.reduce_sum(DIRECTION * gradient_of(function, scores))
    return tape.gradient(along, scores)


@quick_or_slow(DIFFERENTIABLE, quick=["smoothi gain", *FAST])
def test_second_derivatives_equal_finite_differences(name):
    step = 1e-5
    up, down = (gradient_of(DIFFERENTIABLE[name], tf.constant(SCORES + sign * step * DIRECTION)) for sign in (1, -1))
    expected = (up - down).numpy() / (2 * step)
    assert np.abs(expected).max() > 0.01
    found = second_derivative(DIFFERENTIABLE[name], tf.constant(SCORES))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(expected).max()))


@pytest.mark.slow
@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("name", STOPPED)
def test_second_derivatives_of_smoothi_keep_the_products_constant(name, row):
    real = MASK[row]
    scores, relevance, n = SCORES[row, real], RELEVANCE[row, real], real.sum()
    factors = references.smoothi_factors(scores - scores.min(), 2.0, 0.1, n)
    weights = WEIGHTS[row, :n] if name.endswith("relevance") else WEIGHTS[row, 0] * references.discounts(n)

    def total(s):
        at_ranks = np.array([references.softmax(2.0 * (s - s.min()) * held) @ relevance for held in factors])
        return weights @ (at_ranks if name.endswith("relevance") else 2.0**at_ranks - 1.0)

    ends = [references.central_differences(total, scores + step * DIRECTION[row, real], 1e-4) for step in (1e-3, -1e-3)]
    found = second_derivative(STOPPED[name], tf.constant(SCORES))[row]
    np.testing.assert_allclose(found[real], (ends[0] - ends[1]) / 2e-3, rtol=1e-4, atol=1e-4)


@every_mode
def test_tapes_inside_a_graph_give_the_same_second_derivative(name):
    function = {**DIFFERENTIABLE, **STOPPED}[name]
    signature = [tf.TensorSpec([2, 5], tf.float64)]
    in_graph = tf.function(lambda scores: second_derivative(function, scores), input_signature=signature)
    expected = second_derivative(function, tf.constant(SCORES))
    np.testing.assert_allclose(in_graph(tf.constant(SCORES)), expected, rtol=1e-8, atol=1e-10)


@every_mode
@pytest.mark.parametrize("persistent", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_tapes_around_a_graph_give_the_same_second_derivative(name, persistent):
    function = {**DIFFERENTIABLE, **STOPPED}[name]
    in_graph, scores = tf.function(function), tf.constant(SCORES)
    with tf.GradientTape(persistent=persistent) as outer:
        outer.watch(scores)
        with tf.GradientTape(persistent=persistent) as inner:
            inner.watch(scores)
            value = in_graph(scores)
            total = tf.reduce_sum(WEIGHTS[:, : value.shape[1]] * value)
        along = tf.reduce_sum(DIRECTION * inner.gradient(total, scores))
    expected = second_derivative(function, scores)
    np.testing.assert_allclose(outer.gradient(along, scores), expected, rtol=1e-8, atol=1e-10)


@every_mode
def test_hessians_in_a_graph_give_the_same_second_derivative(name):
    function = {**DIFFERENTIABLE, **STOPPED}[name]

    @tf.function(input_signature=[tf.TensorSpec([2, 5], tf.float64)])
    def hessian(scores):
        value = function(scores)
        return tf.hessians(tf.reduce_sum(WEIGHTS[:, : value.shape[1]] * value), scores)[0]

    found = np.einsum("abcd,cd->ab", hessian(tf.constant(SCORES)), DIRECTION)
    np.testing.assert_allclose(found, second_derivative(function, tf.constant(SCORES)), rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.03, 0.1, 1.0])
def test_second_and_forward_derivatives_of_sinkhorn_do_not_depend_on_the_threshold(epsilon):
    scores, direction = (tf.constant(random.randn(2, 5)) for random in map(np.random.RandomState, (1, 2)))
    stopped, converged = (
        lambda scores, ranking=ranking: ranking.positions(scores, tf.ones_like(scores, tf.bool))
        for ranking in (Sinkhorn(epsilon), Sinkhorn(epsilon, 1e-13))
    )

    def difference(function):
        return (function(scores + 1e-5 * direction) - function(scores - 1e-5 * direction)).numpy() / 2e-5

    with tf.GradientTape() as tape:
        tape.watch(scores)
        along = tf.reduce_sum(direction * gradient_of(stopped, scores))
    evaluate.assert_near(tape.gradient(along, scores), difference(lambda s: gradient_of(converged, s)), 2e-3)
    with tf.autodiff.ForwardAccumulator(scores, direction) as accumulator:
        positions = stopped(scores)
    evaluate.assert_near(accumulator.jvp(positions), difference(converged), 1e-4)


@every_mode
def test_gradients_compile_with_xla_after_second_derivatives(name):
    """Gradients can modify the shared graph, which then must still compile with XLA."""
    function, scores = {**DIFFERENTIABLE, **STOPPED}[name], tf.constant(SCORES)
    tf.function(lambda scores: second_derivative(function, scores))(scores)
    in_graph = tf.function(function)
    with tf.GradientTape() as outer:
        outer.watch(scores)
        with tf.GradientTape() as inner:
            inner.watch(scores)
            total = tf.reduce_sum(in_graph(scores))
        gradient = inner.gradient(total, scores)
    outer.gradient(gradient, scores)
    first = tf.function(lambda scores: gradient_of(function, scores), jit_compile=True)
    np.testing.assert_allclose(first(scores), gradient_of(function, scores), rtol=1e-8, atol=1e-12)
