"""SmoothI against the paper: values, gradients, limits, error bound, cost."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth import ops
from tfr_smooth.ops import compiled, smoothi_loops

SEEDS = range(4)


def a_list(seed, length, spread=1.0):
    random = np.random.RandomState(seed)
    return (spread * random.randn(length)).astype(np.float32), random.randint(0, 5, length).astype(np.float32)


def value_and_gradient(scores, relevance, upstream, **kwargs):
    scores = tf.constant(scores)[tf.newaxis]
    with tf.GradientTape() as tape:
        tape.watch(scores)
        found = ops.smoothi_relevance(scores, tf.constant(relevance)[tf.newaxis], **kwargs)
        total = tf.reduce_sum(found[0] * tf.cast(upstream, found.dtype))
    return found.numpy()[0], tape.gradient(total, scores).numpy()[0]


def forget_programs(patch):
    """The loops are compiled anew, by what else was patched."""
    for name in ("_found_at_ranks", "_slopes_of_found"):
        loop = getattr(smoothi_loops, name).__wrapped__
        patch.setattr(smoothi_loops, name, compiled.once_for_each_size(loop))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("length", [1, 2, 7, 120, 1000])
def test_equals_the_paper_in_float64(length, alpha, dtype):
    tight = 1e-6 if dtype == np.float32 else 1e-11
    for seed in SEEDS if length < 1000 else (0,):
        scores, relevance = a_list(seed, length)
        upstream = references.discounts(length)
        expected, slopes = references.relevance_and_slopes(scores, relevance, alpha)
        found, gradient = value_and_gradient(scores.astype(dtype), relevance, upstream, alpha=alpha)
        np.testing.assert_allclose(found, expected, rtol=tight, atol=1e-6 if dtype == np.float32 else 1e-7)
        expected_gradient = upstream @ slopes
        error = np.abs(gradient - expected_gradient).max()
        assert error <= 10 * tight * np.abs(expected_gradient).max() + (2e-6 if dtype == np.float32 else 1e-7)


def test_float64_is_float64_where_no_rank_is_left_to_the_closed_form():
    scores, relevance = a_list(3, 30)
    found, gradient = value_and_gradient(scores.astype(np.float64), relevance, np.ones(30))
    expected, slopes = references.relevance_and_slopes(scores, relevance)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(gradient, slopes.sum(axis=0), rtol=1e-10, atol=1e-13)


def test_reference_slopes_are_those_of_the_frozen_recursion():
    """The reference itself: the stop-gradient's derivative is that with the products held where they are."""
    scores, relevance = a_list(0, 6)
    scores = scores.astype(np.float64)
    shifted = scores - scores.min()
    factors = references.smoothi_factors(shifted, 2.0, 0.1, 6)
    _, slopes = references.relevance_and_slopes(scores, relevance, alpha=2.0)
    for rank in range(6):

        def frozen(s, rank=rank):
            return references.softmax(2.0 * (s - s.min()) * factors[rank]) @ relevance

        np.testing.assert_allclose(slopes[rank], references.central_differences(frozen, scores), atol=1e-8)


@pytest.mark.parametrize("topn", [None, 1, 3, 20, 500])
def test_topn_cuts_the_ranks_and_changes_no_other(topn):
    scores, relevance = a_list(5, 20)
    every = ops.smoothi_relevance(scores[None], relevance[None]).numpy()
    some = ops.smoothi_relevance(scores[None], relevance[None], topn=topn).numpy()
    assert some.shape == (1, min(topn or 20, 20))
    np.testing.assert_allclose(some, every[:, : some.shape[1]], rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 30.0])
def test_without_stop_gradient_equals_finite_differences(alpha):
    scores, relevance = a_list(1, 12)
    upstream = references.discounts(12)

    def total(s):
        return references.smoothi_indicators(s, alpha) @ relevance @ upstream

    expected = references.central_differences(total, scores.astype(np.float64))
    found, gradient = value_and_gradient(
        scores.astype(np.float64), relevance, upstream, alpha=alpha, stop_gradient=False
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)
    stopped, stopped_gradient = value_and_gradient(scores.astype(np.float64), relevance, upstream, alpha=alpha)
    np.testing.assert_allclose(found, stopped, rtol=1e-7)
    assert np.abs(stopped_gradient - expected).max() > 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("stop_gradient", [True, False])
def test_indicators_equal_the_paper_and_give_the_relevance(stop_gradient):
    scores, relevance = a_list(2, 15)
    indicators = ops.smoothi_indicators(scores[None], alpha=3.0, topn=9, stop_gradient=stop_gradient).numpy()[0]
    np.testing.assert_allclose(indicators, references.smoothi_indicators(scores, 3.0, topn=9), rtol=2e-6, atol=1e-9)
    found = ops.smoothi_relevance(scores[None], relevance[None], alpha=3.0, topn=9).numpy()[0]
    np.testing.assert_allclose(indicators @ relevance, found, rtol=1e-5)


def test_indicators_and_relevance_have_one_gradient():
    scores, relevance = a_list(4, 10)
    for stop_gradient in (True, False):
        tensor = tf.constant(scores.astype(np.float64))[tf.newaxis]
        with tf.GradientTape() as tape:
            tape.watch(tensor)
            rows = ops.smoothi_indicators(tensor, alpha=2.0, stop_gradient=stop_gradient)
            total = tf.reduce_sum(tf.linalg.matvec(rows[0], tf.constant(relevance, tf.float64)))
        _, expected = value_and_gradient(
            scores.astype(np.float64), relevance, np.ones(10), alpha=2.0, stop_gradient=stop_gradient
        )
        np.testing.assert_allclose(tape.gradient(total, tensor)[0], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_1_sharp_indicators_are_the_exact_ranks(seed):
    scores = np.random.RandomState(seed).permutation(12).astype(np.float32)
    indicators = ops.smoothi_indicators(scores[None], alpha=1e4).numpy()[0]
    exact = np.eye(12)[np.argsort(-scores)]
    np.testing.assert_allclose(indicators, exact, atol=1e-6)


def test_theorem_2_and_corollary_1_bound_the_error():
    """Positive scores a ratio apart, over a range of alpha: the bound holds, and says something."""
    informative = 0
    for seed in range(6):
        random = np.random.RandomState(seed)
        length, topn = random.randint(2, 6), random.randint(1, 4)
        scores = random.permutation(np.cumprod(1.3 + random.rand(length))).astype(np.float32)
        relevance = random.randint(0, 3, length).astype(np.float32)
        exact = np.eye(length)[np.argsort(-scores)][:topn]
        for alpha in (0.5, 2.0, 10.0, 50.0, 200.0):
            bound = ops.smoothi_error_bound(scores[None], alpha=alpha, topn=topn).numpy()[0]
            indicators = ops.smoothi_indicators(scores[None], alpha=alpha, topn=topn, shift=False).numpy()[0]
            error = np.abs(indicators - exact[: len(indicators)]).max()
            assert error <= bound + 1e-7, (seed, alpha)
            informative += bool(1e-12 < bound < 0.1)
            # Corollary 1 for P@K-like h: a = 1/K, b = relevance, g the identity.
            weights = np.full(len(indicators), 1.0 / len(indicators))
            metric_bound = ops.smoothi_metric_error_bound([bound], weights, relevance[None]).numpy()[0]
            found = ops.smoothi_relevance(scores[None], relevance[None], alpha=alpha, topn=topn, shift=False).numpy()[0]
            metric_error = abs(weights @ found - weights @ (exact[: len(indicators)] @ relevance))
            assert metric_error <= metric_bound + 1e-6, (seed, alpha)
    assert informative >= 5


def test_the_bound_says_nothing_where_the_theorem_does_not():
    infinite = [[1.0, 1.0, 2.0], [0.0, 1.0, 2.0], [-1.0, 1.0, 2.0], [1.0, 1.001, 1.002]]
    assert np.isinf(ops.smoothi_error_bound(tf.constant(infinite), alpha=1.0).numpy()).all()
    one = ops.smoothi_error_bound(tf.constant([[3.0, 9.0]]), tf.constant([[True, False]])).numpy()
    np.testing.assert_array_equal(one, [0.0])


@pytest.mark.parametrize("shift", [True, False])
def test_padding_and_masked_nan_change_nothing(shift):
    scores, relevance = a_list(7, 9)
    scores = scores - scores.min() + 0.5
    padded = np.concatenate([scores, [np.nan, 1e30, np.inf]]).astype(np.float32)[None]
    padded_relevance = np.concatenate([relevance, [np.nan, 5.0, 5.0]]).astype(np.float32)[None]
    mask = np.array([[True] * 9 + [False] * 3])
    expected = ops.smoothi_relevance(scores[None], relevance[None], shift=shift).numpy()
    found = ops.smoothi_relevance(padded, padded_relevance, mask, shift=shift).numpy()
    np.testing.assert_allclose(found[:, :9], expected, rtol=1e-6)
    np.testing.assert_array_equal(found[:, 9:], 0.0)
    indicators = ops.smoothi_indicators(padded, mask, shift=shift).numpy()
    np.testing.assert_array_equal(indicators[:, :, 9:], 0.0)
    np.testing.assert_array_equal(indicators[:, 9:], 0.0)


def test_nan_score_stays_in_its_list():
    scores = np.array([[1.0, np.nan, 0.0], [1.0, 2.0, 0.0]], np.float32)
    relevance = np.array([[1.0, 0.0, 2.0], [1.0, 0.0, 2.0]], np.float32)
    found, alone = ops.smoothi_relevance(scores, relevance), ops.smoothi_relevance(scores[1:], relevance[1:])
    assert np.isnan(found.numpy()[0]).all()
    np.testing.assert_allclose(found.numpy()[1], alone.numpy()[0], rtol=1e-7)


def test_ties_share_value_and_gradient():
    relevance = np.array([3.0, 0.0, 1.0, 0.0], np.float32)
    found, gradient = value_and_gradient(np.zeros(4, np.float32), relevance, np.ones(4))
    np.testing.assert_allclose(found, np.full(4, 1.0), rtol=1e-6)
    _, slopes = references.relevance_and_slopes(np.zeros(4), relevance)
    np.testing.assert_allclose(gradient, slopes.sum(axis=0), rtol=1e-5, atol=1e-7)
    assert np.abs(gradient).max() > 0.1
    np.testing.assert_allclose(gradient[1], gradient[3], rtol=1e-6)


@pytest.fixture(scope="module")
def closed_form():
    """Short lists have the closed form too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smoothi_loops, "_FEW_RANKS", 0)
        forget_programs(patch)
        yield


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize(
    ("alpha", "delta"), [(1e-3, 0.1), (0.1, 0.1), (1.0, 0.1), (10.0, 0.1), (1.0, 0.02), (1.0, 0.49)]
)
@pytest.mark.parametrize("length", [1, 2, 3, 20, 400])
def test_the_closed_form_of_late_ranks_equals_the_whole_recursion(length, alpha, delta, shift, dtype, closed_form):
    """In float32 to its accuracy; with the scores in float64, where less is left to the closed form, to more."""
    scores, relevance = a_list(8, length)
    if length == 3:  # No rank takes the loop, and what is relevant stands at both ends.
        scores, relevance = scores[0] * np.array([1.0, 0.0, -1.0], "f") * 1e-6, np.array([4.0, 0.0, 4.0], "f")
    arguments = {"alpha": alpha, "delta": delta, "shift": shift}
    upstream = references.discounts(length)
    found, gradient = value_and_gradient(scores.astype(dtype), relevance, upstream, **arguments)
    expected, slopes = references.relevance_and_slopes(scores, relevance, **arguments)
    value_error, slope_error = (1e-6, 1e-5) if dtype == np.float32 else (1e-13, 1e-9)
    np.testing.assert_allclose(found, expected, rtol=value_error)
    expected_gradient = upstream @ slopes
    largest = np.abs(expected_gradient).max()
    np.testing.assert_allclose(gradient, expected_gradient, atol=slope_error * largest + 1e-12, rtol=0)


@pytest.mark.parametrize(("largest", "at_most"), [(0.0, 0), (1e-3, 0), (1.0, 59), (16.0, 86), (1e6, 191)])
def test_ranks_computed_do_not_grow_with_the_list(largest, at_most):
    ranks = int(smoothi_loops.ranks_until_small(tf.constant(largest, tf.float64), 0.1))
    assert ranks <= at_most
    assert largest * 0.9**ranks <= 2.01e-3


def test_the_loops_give_the_same_without_xla(monkeypatch):
    """As on a Mac with a GPU."""
    scores, relevance = a_list(9, 30)
    scores[4] = scores[7]
    with_xla = value_and_gradient(scores, relevance, references.discounts(30), alpha=2.0)
    monkeypatch.setattr(compiled, "_has_xla", lambda: False)
    forget_programs(monkeypatch)
    without = value_and_gradient(scores, relevance, references.discounts(30), alpha=2.0)
    np.testing.assert_allclose(without[0], with_xla[0], rtol=1e-6)
    np.testing.assert_allclose(without[1], with_xla[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "`alpha` must be a finite number > 0, got 0.0."),
        ({"alpha": float("inf")}, "`alpha` must be a finite number > 0, got inf."),
        ({"alpha": "1"}, "`alpha` must be a finite number > 0, got '1'."),
        ({"delta": 0.0}, "`delta` must be a number in (0, 0.5), got 0.0."),
        ({"delta": 0.5}, "`delta` must be a number in (0, 0.5), got 0.5."),
        ({"topn": 0}, "`topn` must be an integer >= 1 or None, got 0."),
        ({"topn": 2.5}, "`topn` must be an integer >= 1 or None, got 2.5."),
        ({"stop_gradient": 1}, "`stop_gradient` must be True or False, got 1."),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    scores = tf.zeros([1, 3])
    with pytest.raises(ValueError) as error:
        ops.smoothi_relevance(scores, scores, **arguments)
    assert str(error.value) == message
    with pytest.raises(ValueError) as error:
        ops.smoothi_indicators(scores, **arguments)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("scores", "relevance", "mask", "message"),
    [
        (tf.zeros([3]), tf.zeros([3]), None, r"`scores` must have the shape \[batch, list\]"),
        (tf.zeros([2, 3], tf.int32), tf.zeros([2, 3]), None, "`scores` must be floats, got int32"),
        (tf.zeros([2, 3]), tf.zeros([2, 4]), None, "`relevance` must have the shape of the scores"),
        (tf.zeros([2, 3]), tf.zeros([2, 3]), tf.ones([1, 3], tf.bool), "`mask` must have the shape of the scores"),
    ],
)
def test_bad_shapes_are_named(scores, relevance, mask, message):
    with pytest.raises(ValueError, match=message):
        ops.smoothi_relevance(scores, relevance, mask)
