"""Helpers for batches of padded lists: masks, cutoffs, shapes."""

from __future__ import annotations

import tensorflow as tf


def fill(values: tf.Tensor, mask: tf.Tensor, padding: float) -> tf.Tensor:
    """Returns the values, with `padding` where the mask (of the same shape) is False."""
    # TensorFlow has a kernel for arrays of the same shape and a broadcasting kernel that takes three times as long.
    # `tf.where` uses the latter.
    if padding == 0.0:  # XLA would materialize the array of `tf.fill`, which is large for pairs.
        return tf.compat.v1.where(mask, values, tf.zeros_like(values))
    return tf.compat.v1.where(mask, values, tf.fill(tf.shape(values), tf.constant(padding, values.dtype)))


def length(scores: tf.Tensor) -> tf.Tensor | int:
    """Returns the length of the lists: an int if it is static."""
    return scores.shape[1] if scores.shape[1] is not None else tf.shape(scores)[1]


def num_ranks(scores: tf.Tensor, topn: int | None) -> tf.Tensor | int:
    """Returns the number of ranks K: `topn`, capped at the length of the lists."""
    longest = length(scores)
    if topn is None:
        return longest
    return min(topn, longest) if isinstance(longest, int) else tf.minimum(topn, longest)


def count(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the number of real documents, [batch, 1]; 1 for empty lists, so that division is safe."""
    return tf.maximum(tf.reduce_sum(tf.cast(mask, dtype), axis=1, keepdims=True), 1)


def extremes(values: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the lowest and highest real value per list, [batch]; the type's max and min for empty lists."""
    lowest = tf.reduce_min(fill(values, mask, values.dtype.max), axis=1)
    return lowest, tf.reduce_max(fill(values, mask, values.dtype.min), axis=1)


def rank_mask(mask: tf.Tensor, ranks: tf.Tensor | int) -> tf.Tensor:
    """Returns [batch, K] bool: False for ranks beyond the real documents."""
    documents = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1, keepdims=True)
    return tf.range(ranks)[tf.newaxis] < documents


def pairs(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns [batch, list] values as rows [batch, list, 1] and as columns [batch, 1, list]."""
    return values[:, :, tf.newaxis], values[:, tf.newaxis]


def different_pairs(mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True for two different real documents."""
    return tf.logical_and(real_pairs(mask), tf.logical_not(tf.eye(tf.shape(mask)[1], dtype=tf.bool)))


def real_pairs(mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True for two real documents."""
    return tf.logical_and(*pairs(mask))
