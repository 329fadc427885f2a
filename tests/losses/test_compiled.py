"""Losses with parts compiled by XLA: results are unchanged, and no compiled program is reused for other values."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests import checks
from tests.helpers import UNKNOWN_SHAPES, a_batch, in_graph, value_and_gradient
from tfr_smooth import _compiled, losses, measures, rankings

COMPILED = ["smoothi_ndcg", "smoothi_map", "approx_ndcg", "soft_ndcg"]


def fast_if(*fast):
    return [pytest.param(name, marks=() if name in fast else pytest.mark.slow) for name in COMPILED]


def assert_same(found, expected, error=1e-5):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=error, atol=error * np.abs(other).max())


@pytest.mark.parametrize("name", fast_if("approx_ndcg"))
def test_one_graph_may_contain_instances_with_different_hyperparameters(name):
    subject, batch = checks.SUBJECTS[name], a_batch(length=6)
    changed = {key: value for key, value in subject.changed.items() if key != "stop_gradient"}
    pair = [subject.each(), subject.each(**changed)]

    def total(labels, scores):
        return pair[0](labels, scores) - 2.0 * pair[1](labels, scores)

    first, second = (value_and_gradient(loss, *batch) for loss in pair)
    assert np.abs(first[0] - second[0]).max() > 0.01
    expected = [one - 2.0 * other for one, other in zip(first, second, strict=True)]
    assert_same(in_graph(total, *batch, **UNKNOWN_SHAPES), expected)


@pytest.mark.parametrize("order", [(np.float32, np.float64), (np.float64, np.float32)])
@pytest.mark.parametrize("name", fast_if("approx_ndcg", "soft_ndcg"))
def test_each_dtype_is_computed_in_its_own_precision_in_any_order(name, order):
    labels, scores = a_batch(length=6)
    loss = checks.SUBJECTS[name].loss()
    found = {dtype: in_graph(loss, labels, scores.astype(dtype)) for dtype in order}
    expected = value_and_gradient(loss, labels, scores.astype(np.float64))
    assert found[np.float64][0].dtype == found[np.float64][1].dtype == np.float64
    assert_same(found[np.float64], expected, 1e-12)
    assert_same(found[np.float32], expected, 1e-5)


@pytest.mark.parametrize("spread", [pytest.param(1.0, marks=pytest.mark.slow), 40.0])
def test_smoothi_in_float32_equals_float64_at_any_sharpness(spread):
    """Sharp softmaxes are computed in float64; a graph chooses the precision at run time."""
    labels, scores = a_batch(length=6)
    scores = np.float32(spread) * scores
    loss = losses.SmoothINDCGLoss()
    expected = value_and_gradient(loss, labels, scores.astype(np.float64))
    for found in (value_and_gradient(loss, labels, scores), in_graph(loss, labels, scores, **UNKNOWN_SHAPES)):
        assert_same(found, expected, 2e-6 if spread > 1.0 else 1e-5)


def second_derivative(loss, labels, scores, direction):
    """Returns the function of the gradient along a direction, and its gradient."""

    def along(labels, scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = loss(labels, scores)
        return tf.reduce_sum(direction * tape.gradient(value, scores), axis=1)

    return along, value_and_gradient(along, labels, scores)[1]


@pytest.mark.parametrize("name", ["approx_ndcg", "soft_ndcg", "soft_precision", "sinkhorn_ndcg", "list_mle"])
def test_second_derivatives_equal_finite_differences_of_the_gradient(name):
    subject = checks.SUBJECTS[name]
    labels, scores = a_batch(batch=1, length=5, dtype=np.float64)
    direction = np.random.RandomState(3).randn(1, 5)
    loss = subject.loss(reduction="sum", **subject.converged)
    along, found = second_derivative(loss, labels, scores, direction)
    expected = checks.differences(along, labels, scores)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric", [measures.NDCG(), pytest.param(measures.AveragePrecision(), marks=pytest.mark.slow)], ids=repr
)
def test_second_derivatives_of_smoothi_keep_the_products_constant(metric):
    class Plain(rankings.Ranking):
        def indicators(self, scores, mask, topn=None):
            return rankings.SmoothI().indicators(scores, mask, topn)

    labels, scores = a_batch(batch=2, length=5, dtype=np.float64)
    direction = np.random.RandomState(3).randn(2, 5)
    pair = [losses.MeasureLoss(ranking, metric, reduction="sum") for ranking in (rankings.SmoothI(), Plain())]
    found, expected = (second_derivative(loss, labels, scores, direction)[1] for loss in pair)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_scaled_half_precision_gradients_do_not_underflow():
    labels, scores = a_batch()
    scores = tf.constant(scores + 4.0 * labels, tf.float16)  # Well ordered, so the gradients are tiny.
    loss = losses.ApproxNDCGLoss(alpha=1.0)
    tiny = value_and_gradient(loss, labels, tf.cast(scores, tf.float32))[1]
    scaled = in_graph(lambda *batch: 2.0**12 * loss(*batch), labels, scores)[1]
    assert scaled.dtype == np.float16
    np.testing.assert_allclose(scaled, 2.0**12 * tiny, rtol=2e-2, atol=1e-4)


def test_overridden_methods_are_used():
    class HalvedLoss(losses.SmoothINDCGLoss):
        def compute(self, labels, scores, mask):
            return 0.5 * super().compute(labels, scores, mask)

    class HalvedRanking(rankings.SmoothI):
        def discounted_gain(self, *arguments, **named):
            return 0.5 * super().discounted_gain(*arguments, **named)

    batch = a_batch(length=6)
    plain = value_and_gradient(losses.SmoothINDCGLoss(), *batch)
    assert_same(in_graph(HalvedLoss(), *batch), [0.5 * each for each in plain])
    found = in_graph(losses.MeasureLoss(HalvedRanking(), measures.NDCG()), *batch)
    assert_same(found, [1.0 - 0.5 * (1.0 - plain[0]), 0.5 * plain[1]])


def test_a_redefined_class_of_the_same_name_is_used():
    """For example, when a notebook cell is edited and run again."""

    def loss(factor):
        @dataclasses.dataclass(frozen=True)
        class Mine(rankings.Approx):
            def positions(self, scores, mask):
                return factor * super().positions(scores, mask)

        return losses.MeasureLoss(Mine(), measures.NDCG())

    batch = a_batch(length=6)
    expected = [float(loss(factor)(*batch)) for factor in (1.0, 1.5)]
    assert abs(expected[0] - expected[1]) > 0.01
    for factor, value in zip((1.0, 1.5), expected, strict=True):
        np.testing.assert_allclose(in_graph(loss(factor), *batch)[0], value, rtol=1e-5)


def test_a_program_is_traced_once_for_all_sizes_and_has_no_gradient():
    traced = []

    @_compiled.program
    def double(values):
        traced.append(values.shape)
        return 2.0 * values

    for size in range(33, 41):
        values = tf.Variable(tf.ones([3, size]))
        with tf.GradientTape() as tape:
            grown = double(_compiled.pad(values))
        assert grown.shape == (4, 40)
        assert tape.gradient(grown, values) is None
        np.testing.assert_array_equal(_compiled.unpad(grown, values), 2.0 * np.ones([3, size]))
    assert [shape.as_list() for shape in traced] == [[None, None]]
