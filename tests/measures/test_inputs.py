"""Input handling: dtypes, padding, NaN, shapes, ragged lists and weights."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import _padded, losses, metrics

LABELS = [[2.0, 0.0, 1.0], [1.0], [0.0, 1.0]]
SCORES = [[0.3, 1.2, -0.4], [0.7], [0.1, -0.2]]
WEIGHTS = [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]]


# ---- Clean lists


def test_differences_of_infinite_scores_are_finite():
    for dtype in (tf.float32, tf.float64):
        scores = _padded.clean([[1, 0, 0]], tf.constant([[np.inf, -np.inf, 1.0]], dtype)).scores
        assert np.isfinite(scores[0, 0] - scores[0, 1])
        assert scores[0, 0] > 1e37 and scores[0, 1] < -1e37 and scores[0, 2] == 1.0


def test_lists_of_length_0_get_one_padded_document():
    for signature in ([None, None], [2, 0], [2, None], [0, None]):
        batch, spec = 2 if signature[0] is None else signature[0], tf.TensorSpec(signature)
        found = tf.function(_padded.clean, input_signature=[spec, spec])(tf.zeros([batch, 0]), tf.zeros([batch, 0]))
        assert found.labels.shape == found.scores.shape == found.mask.shape == [batch, 1]
        np.testing.assert_array_equal(found.mask, np.zeros((batch, 1), bool))
        np.testing.assert_array_equal(found.validity, np.ones(batch))


def test_a_mask_of_another_shape_and_mismatched_shapes_in_graphs_of_unknown_shapes_raise():
    with pytest.raises(ValueError, match="`mask` must have the shape of the scores"):
        _padded.clean(tf.zeros([2, 3]), tf.zeros([2, 3]), tf.ones([1, 3], tf.bool))
    clean = tf.function(_padded.clean, input_signature=[tf.TensorSpec([None, None])] * 2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        clean(tf.zeros([2, 3]), tf.zeros([2, 4]))


# ---- Ragged lists


def ragged(rows, dtype=tf.float32):
    return tf.cast(tf.ragged.constant(rows, ragged_rank=1), dtype)


@pytest.mark.parametrize(("weighted", "dtype"), [(False, tf.float32), (True, tf.int64)])
def test_ragged_lists_in_a_graph_equal_dense_lists(weighted, dtype):
    """Keras trains in a graph; the dense loss and metric are the reference."""
    batch = [ragged(LABELS, dtype), ragged(SCORES), ragged(WEIGHTS)]
    dense = [ragged(LABELS).to_tensor(-1.0), batch[1].to_tensor(), batch[2].to_tensor()]

    loss, metric = losses.ListNetLoss(ragged=True), metrics.NDCGMetric(ragged=True)
    signature = [tf.RaggedTensorSpec([None, None], t.dtype, ragged_rank=1) for t in batch]

    @tf.function(input_signature=signature)
    def step(labels, scores, weights):
        weight = weights if weighted else None
        metric.update_state(labels, scores, weight)
        return loss(labels, scores, weight)

    weight = dense[2] if weighted else None
    np.testing.assert_allclose(step(*batch), losses.ListNetLoss()(dense[0], dense[1], weight), rtol=1e-6)
    expected = metrics.NDCGMetric()
    expected.update_state(dense[0], dense[1], weight)
    np.testing.assert_allclose(metric.result(), expected.result(), rtol=1e-6)


def test_ragged_weights_of_dense_labels_raise():
    with pytest.raises(ValueError, match="`sample_weight` must be dense for dense labels, got a tf.RaggedTensor"):
        _padded.weights_from_keras(ragged([[1.0]]), *[tf.zeros([1, 1])] * 2, tf.ones([1, 1], tf.bool))


# ---- Weights


def test_a_scalar_weight_applies_to_every_list():
    labels, mask = tf.ones([2, 3]), tf.ones([2, 3], tf.bool)
    np.testing.assert_allclose(_padded.list_weights(2.5, labels, mask), [2.5, 2.5])
    np.testing.assert_allclose(_padded.list_weights(None, labels, mask), [1.0, 1.0])
