"""From what users hand over (ragged or padded, any types) to clean [batch, list] tensors."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.ops import lists


def to_dense(labels: tf.Tensor, scores: tf.Tensor, ragged: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns labels and scores as dense tensors, padding being the label -1.

    Args:
      labels: [batch, list]; a `tf.RaggedTensor` if `ragged`.
      scores: [batch, list]; a `tf.RaggedTensor` if `ragged` (a dense one, at least as long, will do).
      ragged: What the caller says of its inputs.

    Returns:
      (labels, scores), dense.

    Raises:
      ValueError: If the inputs are not what `ragged` says.
    """
    given = isinstance(labels, tf.RaggedTensor)
    if ragged and not given:
        raise ValueError(f"`ragged=True` needs labels in a tf.RaggedTensor, got {type(labels).__name__}.")
    if not ragged and (given or isinstance(scores, tf.RaggedTensor)):
        raise ValueError("`ragged` must be True for labels and scores in a tf.RaggedTensor, got False.")
    if not ragged:
        return tf.convert_to_tensor(labels), tf.convert_to_tensor(scores)
    if isinstance(scores, tf.RaggedTensor):
        scores = scores.to_tensor()
    if not labels.dtype.is_floating:
        labels = tf.cast(labels, tf.float32)
    labels = labels.to_tensor(default_value=-1.0, shape=_width_of(scores))
    return tf.ensure_shape(labels, scores.shape), scores


def _width_of(tensor: tf.Tensor) -> tf.Tensor:
    """The shape [any, list] that `tf.RaggedTensor.to_tensor` takes, also where the list's length is not known yet."""
    return tf.stack([-1, tf.shape(tensor)[1]])


def real_documents(labels: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
    """Returns [batch, list] bool: True where the label is not negative (and the mask, if given, is True).

    A NaN label counts as real, so that it shows in the result.
    """
    real = tf.logical_not(tf.cast(labels, tf.float32) < 0.0)
    return real if mask is None else tf.logical_and(real, tf.cast(mask, tf.bool))


def clean(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns labels (0 at padding) and scores (0 at padding) in one float type, and the mask of real documents.

    Raises:
      ValueError: If the shapes do not match or the scores are no floats.
    """
    labels, scores, mask = checked(labels, scores, mask)
    return (*(lists.filled(values, mask, 0.0) for values in (labels, scores)), mask)


def checked(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """As `clean`, but with whatever stands at padding.

    Raises:
      ValueError: If the shapes do not match or the scores are no floats.
    """
    scores = tf.convert_to_tensor(scores)
    labels = tf.convert_to_tensor(labels)
    if scores.dtype not in (tf.float32, tf.float64) and scores.dtype.is_floating:
        scores = tf.cast(scores, tf.float32)
    if scores.shape.rank not in (2, None):
        raise ValueError(f"`scores` must have the shape [batch, list], got {scores.shape}.")
    if labels.dtype == tf.bool:
        labels = tf.cast(labels, scores.dtype)
    lists.check_same_shape("labels", labels, scores)
    if mask is not None:
        mask = tf.convert_to_tensor(mask)
        lists.check_same_shape("mask", mask, scores)
    return tf.cast(labels, scores.dtype), scores, real_documents(labels, mask)


def list_weights(sample_weight: tf.Tensor | float | None, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    r"""Returns the weight of each list, [batch].

    Weights of documents become the weight of their list by TF-Ranking's rule
    $\sum_j w_j y_j / \sum_j y_j$; in a list without a relevant document by their mean.

    Args:
      sample_weight: None, a number, [batch], [batch, 1] or [batch, list].
      labels: [batch, list], of a float type; what stands at padding reaches nothing.
      mask: [batch, list] bool.

    Returns:
      [batch], in the type of the labels.

    Raises:
      ValueError: If the weights have another shape.
    """
    batch = tf.shape(labels)[:1]
    if sample_weight is None:
        return tf.ones(batch, labels.dtype)
    if isinstance(sample_weight, tf.RaggedTensor):
        sample_weight = sample_weight.to_tensor(shape=_width_of(labels))
    weights = tf.cast(tf.convert_to_tensor(sample_weight), labels.dtype)
    if weights.shape.rank == 0:
        return tf.broadcast_to(weights, batch)
    if weights.shape.rank == 1:
        weights = weights[:, tf.newaxis]
    rows, columns = labels.shape[0], labels.shape[1]
    fits = weights.shape.rank == 2 and (
        weights.shape.is_compatible_with([rows, 1]) or weights.shape.is_compatible_with([rows, columns])
    )
    if not fits:
        raise ValueError(
            f"`sample_weight` must have the shape [batch], [batch, 1] or [batch, list] for labels of the shape "
            f"{labels.shape}, got {tf.convert_to_tensor(sample_weight).shape}."
        )
    if weights.shape[1] == 1:
        return weights[:, 0]
    labels, weights = (lists.filled(t, mask, 0.0) for t in (labels, weights))
    total = tf.reduce_sum(labels, axis=1)
    by_label = tf.math.divide_no_nan(tf.reduce_sum(weights * labels, axis=1), total)
    mean = tf.math.divide_no_nan(tf.reduce_sum(weights, axis=1), tf.reduce_sum(tf.cast(mask, labels.dtype), axis=1))
    return tf.where(total > 0.0, by_label, mean)
