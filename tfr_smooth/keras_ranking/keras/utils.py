"""The namespace `tfr.keras.utils`: functions of labels and ranks, which configs of losses can contain."""

from __future__ import annotations

import tensorflow as tf

_registered = tf.keras.utils.register_keras_serializable(package="tfr_smooth")


@_registered
def identity(label: tf.Tensor) -> tf.Tensor:
    """Returns the argument."""
    return label


@_registered
def inverse(rank: tf.Tensor) -> tf.Tensor:
    """Returns 1 / rank, and 0 for 0."""
    return tf.math.divide_no_nan(1.0, rank)


@_registered
def pow_minus_1(label: tf.Tensor) -> tf.Tensor:
    """Returns 2^label - 1."""
    return tf.math.pow(2.0, label) - 1.0


@_registered
def log2_inverse(rank: tf.Tensor) -> tf.Tensor:
    """Returns 1 / log2(1 + rank), and 0 for 0."""
    return tf.math.divide_no_nan(tf.math.log(2.0), tf.math.log1p(rank))


@_registered
def is_greater_equal_1(label: tf.Tensor) -> tf.Tensor:
    """Returns whether the label is at least 1."""
    return tf.greater_equal(label, 1.0)


@_registered
def symmetric_log1p(t: tf.Tensor) -> tf.Tensor:
    """Returns sign(t) log(1 + |t|)."""
    return tf.math.log1p(tf.abs(t)) * tf.sign(t)
