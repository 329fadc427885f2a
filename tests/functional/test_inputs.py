"""What users hand over, in graphs whose shapes are not known when they are built."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import losses, metrics

LABELS = [[2.0, 0.0, 1.0], [1.0], [0.0, 1.0]]
SCORES = [[0.3, 1.2, -0.4], [0.7], [0.1, -0.2]]
WEIGHTS = [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]]


@pytest.mark.parametrize("dtype", [tf.float32, tf.int64])
@pytest.mark.parametrize("weighted", [False, True])
def test_ragged_in_a_graph(weighted, dtype):
    """Keras trains in one; the dense losses and metrics say what must come out."""
    ragged = [tf.ragged.constant(rows, ragged_rank=1) for rows in (LABELS, SCORES, WEIGHTS)]
    ragged[0] = tf.cast(ragged[0], dtype)
    dense = [tf.ragged.constant(LABELS).to_tensor(-1.0), ragged[1].to_tensor(), ragged[2].to_tensor()]

    loss, metric = losses.SmoothINDCGLoss(ragged=True), metrics.NDCGMetric(ragged=True)
    signature = [tf.RaggedTensorSpec([None, None], t.dtype, ragged_rank=1) for t in ragged]

    @tf.function(input_signature=signature)
    def step(labels, scores, weights):
        weight = weights if weighted else None
        metric.update_state(labels, scores, weight)
        return loss(labels, scores, weight)

    weight = dense[2] if weighted else None
    np.testing.assert_allclose(step(*ragged), losses.SmoothINDCGLoss()(dense[0], dense[1], weight), rtol=1e-6)
    expected = metrics.NDCGMetric()
    expected.update_state(dense[0], dense[1], weight)
    np.testing.assert_allclose(metric.result(), expected.result(), rtol=1e-6)
