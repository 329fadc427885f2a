"""The SmoothI losses against float64 references written from the paper (Eq. 10 to 12 over Eq. 9)."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth import functional, losses, metrics


def a_batch(seed, length, batch=1):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 5, (batch, length))
    labels[:, 0] = np.maximum(labels[:, 0], 1)
    return labels.astype(np.float32), random.randn(batch, length).astype(np.float32)


def value_and_gradient(loss, labels, scores):
    scores = tf.constant(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = loss(tf.constant(labels), scores)
    return value.numpy(), tape.gradient(value, scores).numpy()


def check(loss, reference, labels, scores):
    metric, slope = reference(labels[0], scores[0])
    value, gradient = value_and_gradient(loss, labels, scores)
    assert value.dtype == np.float32 and gradient.dtype == np.float32
    # Relative to the metric, which is what is computed; the loss is its distance to 1.
    np.testing.assert_allclose(1.0 - np.float64(value), metric, rtol=1e-6, atol=6e-8)
    assert np.abs(gradient[0] + slope).max() <= 1e-5 * np.abs(slope).max() + 1e-6


ALPHAS = [0.1, 1.0, 10.0, 100.0]
LENGTHS = [1, 2, 10, 121, 1000]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("length", LENGTHS)
def test_ndcg_equals_the_paper(length, alpha):
    labels, scores = a_batch(length, length)
    for topn in {None, 1, 5, max(1, length // 2), length, 2 * length}:
        loss = losses.SmoothINDCGLoss(alpha=alpha, topn=topn)
        check(loss, lambda y, s, k=topn: references.smoothi_ndcg(y, s, alpha, topn=k), labels, scores)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("length", LENGTHS)
def test_precision_equals_the_paper(length, alpha):
    labels, scores = a_batch(length, length)
    for topn in {1, 5, 10, length, 2 * length}:
        loss = losses.SmoothIPrecisionLoss(alpha=alpha, topn=topn)
        check(loss, lambda y, s, k=topn: references.smoothi_precision(y, s, alpha, topn=k), labels, scores)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("length", LENGTHS)
def test_map_equals_the_paper(length, alpha):
    labels, scores = a_batch(length, length)
    check(losses.SmoothIMAPLoss(alpha=alpha), lambda y, s: references.smoothi_map(y, s, alpha), labels, scores)


@pytest.mark.parametrize("delta", [0.001, 0.25, 0.499])
def test_delta(delta):
    labels, scores = a_batch(1, 30)
    check(losses.SmoothINDCGLoss(delta=delta), lambda y, s: references.smoothi_ndcg(y, s, delta=delta), labels, scores)


def test_linear_gain_is_the_sum_of_the_relevance_found():
    labels, scores = a_batch(2, 12)
    found = references.smoothi_indicators(scores[0]) @ labels[0]
    expected = 1.0 - references.dcg(found, "linear") / references.ideal_dcg(labels[0], gain="linear")
    np.testing.assert_allclose(losses.SmoothINDCGLoss(gain="linear")(labels, scores), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["smoothi_ndcg", "smoothi_precision", "smoothi_map"])
def test_loss_is_one_minus_metric(name):
    labels, scores = a_batch(3, 20, batch=6)
    labels[4] = 0.0
    metric = metrics.get(name, alpha=2.0)
    metric.update_state(labels, scores)
    np.testing.assert_allclose(float(losses.get(name, alpha=2.0)(labels, scores)), 1.0 - metric.result(), atol=2e-7)


@pytest.mark.parametrize("stop_gradient", [True, False])
@pytest.mark.parametrize("name", ["smoothi_ndcg", "smoothi_precision", "smoothi_map"])
def test_gradient_steps_on_the_scores_raise_the_exact_metric(name, stop_gradient):
    labels, start = a_batch(4, 30, batch=8)
    scores = tf.Variable(start)
    loss = losses.get(name, stop_gradient=stop_gradient)
    metric = {"ndcg": functional.NDCG(), "precision": functional.Precision(), "map": functional.AveragePrecision()}[
        name.split("_")[1]
    ]
    before = metric(labels, start).numpy().mean()
    optimizer = tf.keras.optimizers.Adam(0.05)
    for _ in range(60):
        with tf.GradientTape() as tape:
            value = loss(labels, scores)
        optimizer.apply_gradients([(tape.gradient(value, scores), scores)])
    assert metric(labels, tf.convert_to_tensor(scores)).numpy().mean() > before + 0.1
