"""What every ranking does with a batch of padded lists: masks, cut-offs, shapes."""

from __future__ import annotations

import tensorflow as tf


def fill(values: tf.Tensor, mask: tf.Tensor, padding: float) -> tf.Tensor:
    """Returns the values, with `padding` where the mask, of their shape, is False."""
    # TensorFlow has a kernel for arrays of one shape, and one that broadcasts and takes three times as long; `tf.where`
    # has the latter.
    if padding == 0.0:  # `tf.fill` would be an array in the graph that XLA gets, which is large for pairs.
        return tf.compat.v1.where(mask, values, tf.zeros_like(values))
    return tf.compat.v1.where(mask, values, tf.fill(tf.shape(values), tf.constant(padding, values.dtype)))


def length(scores: tf.Tensor) -> tf.Tensor | int:
    """Returns the length of the lists: an int where the graph knows it."""
    return scores.shape[1] if scores.shape[1] is not None else tf.shape(scores)[1]


def num_ranks(scores: tf.Tensor, topn: int | None) -> tf.Tensor | int:
    """Returns the number of ranks K: `topn`, but at most the length of the lists."""
    longest = length(scores)
    if topn is None:
        return longest
    return min(topn, longest) if isinstance(longest, int) else tf.minimum(topn, longest)


def count(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the number of real documents, [batch, 1]; 1 for a list without any, so that it can divide."""
    return tf.maximum(tf.reduce_sum(tf.cast(mask, dtype), axis=1, keepdims=True), 1)


def extremes(values: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the lowest and the highest real value per list, [batch]; the type's max and min for a list of padding."""
    lowest = tf.reduce_min(fill(values, mask, values.dtype.max), axis=1)
    return lowest, tf.reduce_max(fill(values, mask, values.dtype.min), axis=1)


def rank_mask(mask: tf.Tensor, ranks: tf.Tensor | int) -> tf.Tensor:
    """Returns [batch, K] bool: the ranks that a real document can have."""
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
