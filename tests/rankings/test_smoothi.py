"""SmoothI equals the paper: values, gradients, limits, error bound, precision."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references
from tests.rankings import evaluate
from tfr_smooth import _compiled, rankings
from tfr_smooth.rankings import SmoothI, smoothi
from tfr_smooth.rankings.dcg import NDCGGain


def a_list(seed, length, dtype=np.float32):
    random = np.random.RandomState(seed)
    return random.randn(length).astype(np.float32).astype(dtype), random.randint(0, 5, length).astype(dtype)


def lists_of(lengths, dtype):
    rows = [a_list(seed, length, dtype) for seed, length in enumerate(lengths)]
    scores, mask = evaluate.padded([scores for scores, _ in rows])
    return scores, evaluate.padded([relevance for _, relevance in rows])[0], mask


def rank_relevance(relevance, topn=None, alpha=1.0, **arguments):
    return lambda scores, mask: SmoothI(alpha, **arguments).rank_relevance(scores, tf.constant(relevance), mask, topn)


def check(scores, relevance, mask, value_error, gradient_error, **arguments):
    """Compares each list with its reference; gradients relative to the largest of the list."""
    upstream = references.discounts(scores.shape[1])
    found, gradient = evaluate.value_and_gradient(rank_relevance(relevance, **arguments), scores, upstream, mask)
    assert found.dtype == gradient.dtype == scores.dtype
    np.testing.assert_array_equal(found[~mask], 0.0)
    np.testing.assert_array_equal(gradient[~mask], 0.0)
    for row, real in enumerate(mask):
        expected, slopes = references.relevance_and_slopes(scores[row, real], relevance[row, real], **arguments)
        np.testing.assert_allclose(found[row, real], expected, rtol=value_error, atol=value_error)
        expected_gradient = upstream[: real.sum()] @ slopes
        error = np.abs(gradient[row, real] - expected_gradient).max()
        assert error <= gradient_error * np.abs(expected_gradient).max() + 1e-7 * gradient_error


precisions = pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])


@precisions
def test_rank_relevance_and_gradient_equal_the_paper(dtype):
    errors = (1e-6, 1e-5) if dtype == np.float32 else (1e-12, 1e-9)
    for alpha in (0.1, 1.0, 10.0, 100.0):
        check(*lists_of([1, 2, 7, 120], dtype), *errors, alpha=alpha)


@precisions
def test_the_closed_form_of_late_ranks_equals_the_recursion(dtype):
    """At last, the loop runs for no rank, and the first and last documents are relevant."""
    errors = (1e-6, 1e-5) if dtype == np.float32 else (1e-12, 1e-9)
    lists = lists_of([1, 2, 20, 250], dtype)
    for alpha, delta, shift in ((1e-3, 0.1, True), (10.0, 0.1, True), (1.0, 0.49, False), (1.0, 0.02, True)):
        check(*lists, *errors, alpha=alpha, delta=delta, shift=shift)
    near, ends = np.array([[1e-7, 0.0, -1e-7]], dtype), np.array([[4.0, 0.0, 4.0]], dtype)
    check(near, ends, np.ones((1, 3), bool), errors[0], 1e-5 if dtype == np.float32 else 1e-6)


def test_a_sharp_softmax_of_float32_scores_is_computed_in_float64():
    """In float32, the rounding errors of inputs up to 600 would be visible."""
    scores, relevance, _ = lists_of([1, 2, 7, 400], np.float32)
    results = [
        evaluate.value_and_gradient(rank_relevance(relevance.astype(dtype), alpha=100.0), scores.astype(dtype), 1.0)
        for dtype in (np.float32, np.float64)
    ]
    for single, double in zip(*results, strict=True):
        np.testing.assert_allclose(single, double, rtol=3e-7, atol=1e-7 * np.abs(double).max())


@pytest.mark.parametrize("kind", ["exponential", "linear"])
@pytest.mark.parametrize(
    ("dtype", "alpha", "topn"), [(np.float64, 2.0, 3), (np.float64, 2.0, None), (np.float32, 0.1, None)]
)
def test_discounted_gain_equals_that_computed_from_rank_relevance(dtype, alpha, kind, topn):
    scores, relevance, mask = lists_of([1, 5, 8] if dtype == np.float64 else [2, 10, 121], dtype)
    gain, relevance = NDCGGain.of(kind, tf.constant(relevance)), tf.constant(relevance)
    discount = [3.0, 2.0, 1.5, 1.0, -1.0, 0.5] if dtype == np.float64 else "log2"
    arguments = {"discount": discount, "topn": topn, "gain": gain}

    def fused(scores, mask):
        return SmoothI(alpha).discounted_gain(scores, relevance, mask, **arguments)

    def plain(scores, mask):
        return rankings.Ranking.discounted_gain(SmoothI(alpha), scores, relevance, mask, **arguments)

    weights = np.array([1.0, -2.0, 3.0])
    found, expected = (evaluate.value_and_gradient(f, scores, weights, mask) for f in (fused, plain))
    errors = (1e-12, 1e-9) if dtype == np.float64 else (1e-6, 1e-5)
    np.testing.assert_allclose(found[0], expected[0], rtol=errors[0])
    evaluate.assert_near(found[1], expected[1], errors[1])


def test_the_gradient_without_stop_gradient_equals_finite_differences():
    scores, relevance = a_list(1, 8, np.float64)
    upstream = references.discounts(8)
    for alpha in (0.1, 1.0, 30.0):
        weighted = functools.partial(references.smoothi_indicators, alpha=alpha)
        expected = references.central_differences(lambda s, f=weighted: f(s) @ relevance @ upstream, scores)
        whole = rank_relevance(relevance[None], alpha=alpha, stop_gradient=False)
        found, gradient = evaluate.of_one_list(whole, scores, upstream)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)
        stopped, of_stopped = evaluate.of_one_list(rank_relevance(relevance[None], alpha=alpha), scores, upstream)
        np.testing.assert_allclose(found, stopped, rtol=1e-12)
        assert np.abs(of_stopped - expected).max() > 1e-4 * np.abs(expected).max()


def test_indicators_equal_the_paper_and_have_the_gradient_of_rank_relevance():
    scores, relevance = a_list(2, 8, np.float64)
    for options in ({"stop_gradient": True}, {"stop_gradient": False}):
        indicators = functools.partial(SmoothI(3.0, **options).indicators, topn=6)
        found, gradient = evaluate.of_one_list(indicators, scores, relevance)
        np.testing.assert_allclose(found, references.smoothi_indicators(scores, 3.0, topn=6), rtol=1e-12)
        by_relevance = rank_relevance(relevance[None], 6, alpha=3.0, **options)
        at_ranks, expected = evaluate.of_one_list(by_relevance, scores)
        np.testing.assert_allclose(found @ relevance, at_ranks, rtol=1e-12)
        np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


def test_errors_are_within_the_bounds_of_theorem_2_and_corollary_1():
    """For positive scores with ratios above 1.3, the bounds hold, and some are below 0.1."""
    informative = 0
    for seed in range(6):
        random = np.random.RandomState(seed)
        length, topn = random.randint(2, 6), random.randint(1, 4)
        scores = random.permutation(np.cumprod(1.3 + random.rand(length))).astype(np.float32)
        relevance = random.randint(0, 3, length).astype(np.float32)
        exact = np.eye(length)[np.argsort(-scores)][:topn]
        for alpha in (0.5, 2.0, 10.0, 50.0, 200.0):
            bound = rankings.smoothi_error_bound(scores[None], alpha=alpha, topn=topn).numpy()[0]
            indicators = evaluate.value(SmoothI(alpha, shift=False).indicators, scores)[:topn]
            assert np.abs(indicators - exact).max() <= bound + 1e-7, (seed, alpha)
            informative += bool(1e-12 < bound < 0.1)
            # Corollary 1 for an h like P@K: a = 1/K, b = relevance, g the identity.
            weights = np.full(len(indicators), 1.0 / len(indicators))
            metric_bound = rankings.smoothi_metric_error_bound([bound], weights, relevance[None]).numpy()[0]
            metric_error = abs(weights @ (indicators - exact) @ relevance)
            assert metric_error <= metric_bound + 1e-6, (seed, alpha)
    assert informative >= 5


def test_the_bound_is_infinite_where_the_theorem_does_not_apply():
    infinite = [[1.0, 1.0, 2.0], [0.0, 1.0, 2.0], [-1.0, 1.0, 2.0], [1.0, 1.001, 1.002]]
    assert np.isinf(rankings.smoothi_error_bound(tf.constant(infinite), alpha=1.0).numpy()).all()
    one = rankings.smoothi_error_bound(tf.constant([[3.0, 9.0]]), tf.constant([[True, False]])).numpy()
    np.testing.assert_array_equal(one, [0.0])


def test_tied_scores_have_the_mean_relevance_and_a_gradient():
    relevance = np.array([3.0, 0.0, 1.0, 0.0], np.float32)
    found, gradient = evaluate.of_one_list(rank_relevance(relevance[None]), np.zeros(4, np.float32))
    np.testing.assert_allclose(found, np.full(4, 1.0), rtol=1e-6)
    _, slopes = references.relevance_and_slopes(np.zeros(4), relevance)
    np.testing.assert_allclose(gradient, slopes.sum(axis=0), rtol=1e-5, atol=1e-7)
    assert np.abs(gradient).max() > 0.1


def test_the_programs_compute_the_same_without_xla(monkeypatch):
    """For example, on a Mac with a GPU."""
    scores, relevance, mask = lists_of([8, 5], np.float32)
    scores[0, 4] = scores[0, 7]
    upstream = references.discounts(8)
    function = rank_relevance(relevance, alpha=2.0)
    with_xla = evaluate.value_and_gradient(function, scores, upstream, mask)
    monkeypatch.setattr(_compiled, "has_xla", lambda: False)
    loops = {kind: _compiled.program(loop.__wrapped__) for kind, loop in smoothi._LOOPS.items()}
    monkeypatch.setattr(smoothi, "_LOOPS", loops)
    without = evaluate.value_and_gradient(function, scores, upstream, mask)
    np.testing.assert_allclose(without[0], with_xla[0], rtol=1e-6)
    np.testing.assert_allclose(without[1], with_xla[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("row", [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [3.0, 3.0, 1.0]])
def test_tied_lowest_scores_share_the_gradient_of_the_minimum(row):
    """As in TensorFlow's own gradient of the minimum, with which `indicators` is differentiated."""
    ranking, relevance, scores = SmoothI(2.0), tf.constant([[2.0, 0.0, 1.0]], tf.float64), np.array(row)
    discounts, linear = references.discounts(3), NDCGGain.of("linear", relevance)
    expected = evaluate.gradient(ranking.indicators, scores, np.outer(discounts, relevance))
    in_one_pass = evaluate.gradient(lambda s, m: ranking.discounted_gain(s, relevance, m, gain=linear), scores, 1.0)
    np.testing.assert_allclose(in_one_pass, expected, rtol=1e-9, atol=1e-12)
    by_rank = evaluate.gradient(lambda s, m: ranking.rank_relevance(s, relevance, m), scores, discounts)
    np.testing.assert_allclose(by_rank, expected, rtol=1e-9, atol=1e-12)
