"""The general loss: any metric read off any ranking, the user's own too."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import functional, losses, ops

METRICS = [functional.NDCG(topn=3), functional.Precision(topn=2), functional.AveragePrecision()]


class TemperedSoftmax:
    """The least that a ranking must do: every rank finds what a softmax of the scores finds."""

    def relevance(self, scores, relevance, mask=None, topn=None):
        weights = tf.nn.softmax(tf.where(mask, scores, -1e9))
        found = tf.reduce_sum(weights * relevance, axis=1, keepdims=True)
        return tf.repeat(found, min(topn or scores.shape[1], scores.shape[1]), axis=1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "ranking",
    [
        ops.SmoothI(),
        ops.Approx(),
        ops.SoftRank(),
        ops.NeuralSort(),
        ops.SoftSort(),
        ops.FastSort(),
        ops.Sinkhorn(),
        TemperedSoftmax(),
    ],
)
def test_is_one_minus_the_metric(ranking, metric):
    random = np.random.RandomState(0)
    labels, scores = random.randint(0, 3, (4, 6)), random.randn(4, 6).astype(np.float32)
    labels[:, 0] = 2
    loss = losses.MetricLoss(ranking, metric, reduction="none")
    np.testing.assert_allclose(loss(labels, scores), 1.0 - metric(labels, scores, ranking=ranking), rtol=1e-6)
    assert loss.ranking is ranking and loss.metric is metric


def test_named_losses_are_made_of_the_same_parts():
    random = np.random.RandomState(1)
    labels, scores = random.randint(1, 3, (4, 6)), random.randn(4, 6).astype(np.float32)
    general = losses.MetricLoss(ops.SmoothI(alpha=3.0), functional.NDCG(topn=2))
    named = losses.SmoothINDCGLoss(alpha=3.0, topn=2)
    np.testing.assert_array_equal(general(labels, scores), named(labels, scores))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "ranking",
    [
        ops.SmoothI(alpha=1e4),
        ops.Approx(alpha=1e3, beta=1e3),
        ops.SoftRank(sigma=1e-3),
        ops.NeuralSort(temperature=1e-3),
        ops.SoftSort(temperature=1e-3),
        ops.FastSort(regularization_strength=1e-3, beta=1e3),
        ops.Sinkhorn(epsilon=1e-4, beta=1e3),
    ],
)
def test_every_ranking_goes_with_every_metric_and_is_exact_when_sharp(ranking, metric):
    random = np.random.RandomState(2)
    scores = np.stack([random.permutation(7) for _ in range(5)]).astype(np.float32)
    labels = random.randint(0, 3, (5, 7))
    labels[:, 0] = 1
    expected = metric(labels, scores).numpy()
    np.testing.assert_allclose(metric(labels, scores, ranking=ranking).numpy(), expected, atol=1e-4)
    labels, scores = np.pad(labels, [(0, 0), (0, 2)], constant_values=-1), np.pad(scores, [(0, 0), (0, 2)])
    np.testing.assert_allclose(metric(labels, scores, ranking=ranking).numpy(), expected, atol=1e-4)
