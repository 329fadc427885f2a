"""Numerics: extreme weights, precision, ragged rows, large labels, and no NaN or infinity."""

import functools
import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.helpers import modes, references
from tests.helpers.modes import quick_or_slow
from tfr_smooth import losses, measures, metrics

# With the default cutoff, P@K and R@K of short lists do not depend on the order.
ARGUMENTS = {name: {"topn": 3} for name in losses.NAMES if name.endswith(modes.NEED_A_CUTOFF)}


def get(name, **kwargs):
    return losses.get(name, **{**ARGUMENTS.get(name, {}), **kwargs})


@quick_or_slow([*modes.FEW[:-1], "lambda_loss", "lapsum_precision", "softsort_mrr", "list_net"], quick=["softsort_mrr"])
@pytest.mark.slow
def test_an_offset_of_the_scores_loses_no_precision(name):
    labels, scores = modes.batch()
    offset = (np.round(scores * 64.0) / 64.0 + 1024.0).astype(np.float32)  # exact in float32
    arguments = {"temperature": 0.1} if name == "list_net" else {}
    loss = get(name, **arguments)
    expected = modes.step(loss)(labels, tf.constant(offset.astype(np.float64) - 1024.0))
    for mode in (lambda step: step, functools.partial(tf.function, jit_compile=True)):
        found = mode(modes.step(loss))(tf.constant(labels), tf.constant(offset))
        # One minus a metric can be near 0.
        np.testing.assert_allclose(found[0], expected[0], rtol=2e-6, atol=2e-7)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-3, atol=1e-5 * np.abs(expected[1]).max())


RAGGED = tf.ragged.constant([[1.0, 2.0], [1.0]])


@pytest.mark.parametrize("make", [losses.ListNetLoss, metrics.NDCGMetric])
def test_ragged_rows_shorter_than_their_labels_raise(make):
    call = make(ragged=True)
    call = call.update_state if isinstance(call, tf.keras.metrics.Metric) else call
    short = tf.ragged.constant([[1.0], [1.0]])
    # Keras 2 runs `update_state` in a graph.
    errors = ValueError, tf.errors.InvalidArgumentError
    with pytest.raises(errors, match="`scores` must have at least as many entries per list as `labels`"):
        call(RAGGED, short)
    with pytest.raises(errors, match="`sample_weight` must have"):
        call(RAGGED, RAGGED, short)
    spec = tf.RaggedTensorSpec([None, None])

    @tf.function(input_signature=[spec, spec])
    def graph(labels, scores):
        call(labels, scores)

    with pytest.raises(tf.errors.InvalidArgumentError, match="`scores` must have"):
        graph(RAGGED, short)
    graph(RAGGED, RAGGED)


def test_scores_may_be_longer_than_ragged_labels():
    dense = tf.constant([[1.0, 2.0, -1.0], [1.0, -1.0, -1.0]]), tf.constant([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    longer = tf.constant([[1.0, 1.0, 9.0], [1.0, 9.0, 9.0]]), tf.ragged.constant([[1.0, 1.0, 9.0], [1.0, 9.0]])
    for scores in longer:
        np.testing.assert_allclose(losses.ListNetLoss(ragged=True)(RAGGED, scores), losses.ListNetLoss()(*dense))


# Not with noise, which depends on the labels in these tests.
NDCG = ["approx_ndcg", "lapsum_ndcg", "lambda_loss", "neuralsort_ndcg", "smoothi_ndcg", "softsort_ndcg", "soft_ndcg"]


@quick_or_slow(NDCG, quick=["softsort_ndcg"])
def test_large_labels_keep_precision(name):
    """Gains 2^y - 1 are relative to the largest gain of the list: above 64, only differences of labels matter."""
    _, scores = modes.batch()
    differences = np.array([[0, 1, 2, 7, 0, 3, 5], *np.random.RandomState(0).randint(0, 9, [3, 7])], np.float32)
    step = modes.step(get(name))
    expected = step(tf.constant(90.0 - differences, tf.float64), tf.constant(scores, tf.float64))
    compiled = tf.function(step, jit_compile=True)
    for function, highest in ((step, 64), (step, 1000), (compiled, 128)):
        found = function(tf.constant(highest - differences), tf.constant(scores))
        # SmoothI averages labels in float32, whose absolute error grows with the highest label.
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6 * highest)
        largest = np.abs(expected[1]).max()
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-5 * highest * largest)


@pytest.mark.slow
def test_smoothi_ndcg_of_large_labels_equals_float64():
    """A mean label far below the highest has almost no gain and almost no gradient, because 2^y is steep."""
    lists = [0.0, 128.0, 1.0], [127.0, 128.0, 0.0], [128.0, 3.0, 0.0, 126.0], [64.0, 60.0]
    for labels, alpha in itertools.product(lists, (0.1, 10.0)):
        scores = np.array([2.0, 1.0, 0.0, 1.5][: len(labels)])
        ndcg, slopes = references.smoothi_ndcg(labels, scores, alpha)
        step = modes.step(get("smoothi_ndcg", alpha=alpha))
        value, gradient = step(tf.constant([labels]), tf.constant([scores], tf.float32))
        np.testing.assert_allclose(value, 1.0 - ndcg, rtol=1e-6, atol=1e-5 * ndcg)
        np.testing.assert_allclose(gradient[0], -slopes, rtol=1e-3, atol=1e-4 * np.abs(slopes).max() + 1e-37)


USUAL = np.array([0, 1, 2, 0, 3, 1, -1], np.float32)
FLAT = np.random.RandomState(0).randn(7).astype(np.float32)
# The last two are beyond the documented range.
LABELS = [USUAL, 0.0 * USUAL, np.where(USUAL == 3, USUAL, -1), np.sign(USUAL) * 1e9]
LABELS += [np.where(USUAL == 3, np.float32(highest), USUAL) for highest in (31, 127, 200, 1e9, 1e30, 3.4e38)]
SCORES = [FLAT * factor for factor in (1.0, 100.0, 6e4, 1e15, 1e30, 1e-38)]
SCORES += [np.sign(FLAT) * 3.4e38, np.where(FLAT > 0.3, FLAT, FLAT * 1e30), np.full(7, -1e30), np.zeros(7)]
# The divisors of the scores and the factors of scores in all losses.
SCALES = {"temperature", "alpha", "sigma", "epsilon", "regularization_strength", "weight_temperature"}
SCALES |= {"gumbel_temperature", "beta", "score_range"}


def check_finite(loss):
    labels, scores = (np.float32(arrays) for arrays in zip(*itertools.product(LABELS, SCORES), strict=True))
    for kind in (np.float32, np.float64):
        value, gradient = modes.step(loss)(tf.constant(labels), tf.constant(scores, kind))
        assert np.isfinite(value).all(), [(labels[i], scores[i]) for i in np.flatnonzero(~np.isfinite(value))][:3]
        rows = np.flatnonzero(~np.isfinite(gradient).all(axis=1))
        assert not rows.size, [(labels[i], scores[i]) for i in rows][:3]


@quick_or_slow(modes.ONE_OF_EACH + modes.BASELINES, quick=["softsort_ndcg", "softmax", "pairwise_mse", "list_mle"])
def test_value_and_gradient_are_finite_for_all_finite_labels_and_scores(name):
    """Also for the extreme temperatures."""
    check_finite(get(name, reduction="none"))
    for scale in SCALES & {*losses.hyperparameters(name)}:
        for value in (1e-10, 1e10):
            check_finite(get(name, reduction="none", **{scale: value}))


def test_temperatures_beyond_the_range_of_float32_are_refused():
    for name in losses.NAMES:
        for scale in SCALES & {*losses.hyperparameters(name)}:
            for value in (1e-300, 1e-11, 1e11, 1e300):
                message = f"`{scale}` must be a number in [1e-10, 1e+10], got {value}"
                with pytest.raises(ValueError, match=re.escape(message)):
                    get(name, **{scale: value})


@quick_or_slow(["pairwise_logistic", "pairwise_hinge", "pairwise_soft_zero_one", "pairwise_mse"], quick=())
def test_value_and_gradient_are_finite_with_weights_of_pairs(name):
    kinds = losses.YetiDCGLambdaWeight, losses.NDCGLambdaWeight, losses.DCGLambdaWeight, losses.LabelDiffLambdaWeight
    for kind in kinds:
        check_finite(get(name, reduction="none", lambda_weight=kind()))


def test_half_precision_gradients_are_infinite_only_beyond_their_range():
    """Keras's loss scaling recognizes an overflow by infinite gradients."""
    labels, scores = np.float32([[3, 0, 1, 0]]), np.float32([[60000, -60000, 1, 500]])
    expected = modes.step(losses.PairwiseMSELoss())(labels, tf.constant(scores))[1].numpy()
    assert np.abs(expected[0, 0]) > np.finfo(np.float16).max > np.abs(expected[0, 2])
    found = modes.step(losses.PairwiseMSELoss())(labels, tf.constant(scores, tf.float16))[1]
    np.testing.assert_array_equal(np.isinf(found), np.abs(expected) > np.finfo(np.float16).max)
    bfloat = modes.step(losses.PairwiseMSELoss())(labels, tf.constant(scores, tf.bfloat16))[1]
    assert np.isfinite(tf.cast(bfloat, tf.float32)).all()


@quick_or_slow([*modes.COVERING, "sinkhorn_precision"], quick=["softsort_ndcg", "sinkhorn_precision"])
def test_ties_have_a_moderate_gradient(name):
    """Those of a new model whose last layer is 0, or whose scores saturate; they must fit the range of float16.

    The largest ones are those of the steep steps of precision and recall at positions of Sinkhorn, about 1,100.
    """
    labels = np.float32([[2, 0, 1, 0, 0, 3], [1, 0, 0, 0, 0, 0], [2, 0, 0, 0, -1, -1]])
    for height in (0.0, 100.0):
        step = modes.step(get(name, reduction="none"))
        value, gradient = step(tf.constant(labels), tf.fill(labels.shape, tf.constant(height, tf.float16)))
        assert np.isfinite(value).all() and np.abs(tf.cast(gradient, tf.float32)).max() < 2000.0


@pytest.mark.slow
def test_no_operation_returns_nan_or_infinity():
    """Each ranking, each measure with SoftSort, and the baselines; also in float64 and graphs for each code path."""
    softsort = [name for name in losses.NAMES if name.startswith("softsort_")]
    names = {*modes.SAMPLE, *softsort, *modes.BASELINES, *measures.MEASURES, *measures.EXACT_ONLY}
    assert helpers.check_run("tests/losses/finite.py", *sorted(names)) == ""
