"""Losses with parts compiled by XLA: results are unchanged, and no compiled program is reused for other values."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import UNKNOWN_SHAPES, a_batch, checks, in_graph, value_and_gradient
from tfr_smooth import losses, measures, rankings

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
@pytest.mark.parametrize("name", fast_if("approx_ndcg"))
def test_each_dtype_is_computed_in_its_own_precision_in_any_order(name, order):
    labels, scores = a_batch(length=6)
    loss = checks.SUBJECTS[name].loss()
    found = {dtype: in_graph(loss, labels, scores.astype(dtype)) for dtype in order}
    expected = value_and_gradient(loss, labels, scores.astype(np.float64))
    assert found[np.float64][0].dtype == found[np.float64][1].dtype == np.float64
    assert_same(found[np.float64], expected, 1e-12)
    assert_same(found[np.float32], expected, 1e-5)


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
