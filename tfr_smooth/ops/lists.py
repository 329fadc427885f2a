"""What every ranking op does with a batch of padded lists: types, shapes, masks."""

from __future__ import annotations

import tensorflow as tf


def clean(scores: tf.Tensor, mask: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns scores without NaN and with 0 at padding, the mask as bool, and the poison.

    The poison [batch, 1] is NaN for a list with a NaN among its real scores and 1 for every other. An op computes with
    the clean scores and multiplies its result by the poison: so the NaN comes out of its own list, in value and in
    gradient, and nowhere else.

    Raises:
      ValueError: If the scores are no [batch, list] of floats, or the mask has another shape.
    """
    scores, mask = checked(scores, mask)
    unknown = tf.math.is_nan(scores)
    poisoned = tf.reduce_any(tf.logical_and(unknown, mask), axis=1, keepdims=True)
    poison = tf.where(poisoned, tf.constant(float("nan"), scores.dtype), tf.ones([], scores.dtype))
    usable = tf.logical_and(mask, tf.logical_not(unknown))
    return filled(scores, usable, 0.0), mask, poison


def filled(values: tf.Tensor, mask: tf.Tensor, padding: float) -> tf.Tensor:
    """Returns the values, with this number where the mask, of their shape, is False."""
    # TensorFlow has a kernel for arrays of one shape, and one that broadcasts and takes three times as long; `tf.where`
    # has the latter.
    if padding == 0.0:  # `tf.fill` would be an array in the graph that XLA gets, which is large for pairs.
        return tf.compat.v1.where(mask, values, tf.zeros_like(values))
    return tf.compat.v1.where(mask, values, tf.fill(tf.shape(values), tf.constant(padding, values.dtype)))


def checked(scores: tf.Tensor, mask: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the scores as float32 or float64 and the mask as bool, for what cleans them by itself.

    Raises:
      ValueError: If the scores are no [batch, list] of floats, or the mask has another shape.
    """
    scores = tf.convert_to_tensor(scores)
    if not scores.dtype.is_floating:
        raise ValueError(f"`scores` must be floats, got {scores.dtype.name}.")
    if scores.shape.rank not in (2, None):
        raise ValueError(f"`scores` must have the shape [batch, list], got {scores.shape}.")
    if scores.dtype not in (tf.float32, tf.float64):
        scores = tf.cast(scores, tf.float32)
    if mask is None:
        mask = tf.ones_like(scores, dtype=tf.bool)
    else:
        mask = tf.cast(tf.convert_to_tensor(mask), tf.bool)
        check_same_shape("mask", mask, scores)
    return scores, mask


def aligned(name: str, values: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] `values` in the type of the scores, 0 at padding.

    Raises:
      ValueError: If the shape is not that of the scores.
    """
    values = typed(name, values, scores)
    return filled(values, mask, 0.0)


def typed(name: str, values: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] `values` in the type of the scores.

    Raises:
      ValueError: If the shape is not that of the scores.
    """
    values = tf.cast(tf.convert_to_tensor(values), scores.dtype)
    check_same_shape(name, values, scores)
    return values


def check_same_shape(name: str, values: tf.Tensor, scores: tf.Tensor) -> None:
    """Raises `ValueError` unless `values` can have the shape of the scores, as far as it is known."""
    if values.shape.rank not in (2, None) or not values.shape.is_compatible_with(scores.shape):
        raise ValueError(f"`{name}` must have the shape of the scores, {scores.shape}, got {values.shape}.")


def cut(scores: tf.Tensor, topn: int | None) -> tf.Tensor | int:
    """Returns the number of ranks: `topn`, but no more than the list is long."""
    length = scores.shape[1] if scores.shape[1] is not None else tf.shape(scores)[1]
    if topn is None:
        return length
    return min(topn, length) if isinstance(length, int) else tf.minimum(topn, length)


def rank_mask(mask: tf.Tensor, ranks: tf.Tensor | int) -> tf.Tensor:
    """Returns [batch, K] bool: the ranks that a real document can have."""
    count = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1, keepdims=True)
    return tf.range(ranks)[tf.newaxis] < count
