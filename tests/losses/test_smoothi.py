"""The SmoothI losses equal float64 references written from the paper (Eq. 10 to 12, gradients by Eq. 9)."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tests.helpers import a_batch, value_and_gradient
from tfr_smooth import losses, measures


def lists_of(lengths):
    """Returns labels and scores, [batch, list]; padding has the label -1."""
    labels = np.full((len(lengths), max(lengths)), -1.0, np.float32)
    scores = np.zeros_like(labels)
    for row, length in enumerate(lengths):
        random = np.random.RandomState(length)
        labels[row, :length] = random.randint(0, 5, length)
        labels[row, 0] = max(labels[row, 0], 1)
        scores[row, :length] = random.randn(length)
    return labels, scores


def check(loss, reference, labels, scores):
    """Compares the loss of each list and the gradient of their sum with the reference."""
    values, gradient = value_and_gradient(loss, labels, scores)
    assert values.dtype == np.float32 and gradient.dtype == np.float32
    for i, real in enumerate(labels >= 0):
        metric, slope = reference(labels[i, real], scores[i, real])
        # The error is relative to the metric, because the loss is computed as 1 - metric.
        np.testing.assert_allclose(1.0 - np.float64(values[i]), metric, rtol=1e-6, atol=6e-8)
        assert np.abs(gradient[i, real] + slope).max() <= 1e-5 * np.abs(slope).max() + 1e-6
        np.testing.assert_array_equal(gradient[i, ~real], 0.0)


every_alpha = pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 100.0])
LENGTHS = [1, 2, 10, 121, 1000]


@every_alpha
@pytest.mark.parametrize("topn", [None, 1, 5, 500, 2000])
def test_ndcg_equals_the_paper(alpha, topn):
    loss = losses.SmoothINDCGLoss(alpha=alpha, topn=topn, reduction="none")
    check(loss, lambda y, s: references.smoothi_ndcg(y, s, alpha, topn=topn), *lists_of(LENGTHS))


@every_alpha
@pytest.mark.parametrize("topn", [1, 5, 10, 2000])
def test_precision_equals_the_paper(alpha, topn):
    loss = losses.SmoothIPrecisionLoss(alpha=alpha, topn=topn, reduction="none")
    check(loss, lambda y, s: references.smoothi_precision(y, s, alpha, topn=topn), *lists_of(LENGTHS))


@every_alpha
def test_map_equals_the_paper(alpha):
    loss = losses.SmoothIMAPLoss(alpha=alpha, reduction="none")
    check(loss, lambda y, s: references.smoothi_map(y, s, alpha), *lists_of(LENGTHS))


@pytest.mark.parametrize("delta", [0.001, 0.25, 0.499])
def test_ndcg_equals_the_paper_for_any_delta(delta):
    loss = losses.SmoothINDCGLoss(delta=delta, reduction="none")
    check(loss, lambda y, s: references.smoothi_ndcg(y, s, delta=delta), *lists_of([30, 7]))


def test_linear_gain_sums_the_discounted_relevance_at_each_rank():
    labels, scores = lists_of([12])
    found = references.smoothi_indicators(scores[0]) @ labels[0]
    expected = 1.0 - references.dcg(found, "linear") / references.ideal_dcg(labels[0], gain="linear")
    np.testing.assert_allclose(losses.SmoothINDCGLoss(gain="linear")(labels, scores), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("stop_gradient", [True, False])
@pytest.mark.parametrize("name", ["smoothi_ndcg", "smoothi_precision", "smoothi_map"])
def test_gradient_steps_raise_the_exact_metric(name, stop_gradient):
    labels, start = a_batch(4, 8, 30)
    scores = tf.Variable(start)
    loss = losses.get(name, stop_gradient=stop_gradient)
    metric = {"ndcg": measures.NDCG(), "precision": measures.Precision(), "map": measures.AveragePrecision()}[
        name.split("_")[1]
    ]
    before = metric(labels, start).numpy().mean()
    optimizer = tf.keras.optimizers.Adam(0.05)

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            value = loss(labels, tf.convert_to_tensor(scores))
        return tape.gradient(value, scores)

    for _ in range(60):
        optimizer.apply_gradients([(gradient(), scores)])
    assert metric(labels, tf.convert_to_tensor(scores)).numpy().mean() > before + 0.1
