"""A layer of sums of functions of single features."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments


class FeatureFunctions(tf.keras.layers.Layer):
    """The sums of piecewise linear functions of features, for M networks: linear in the segments of `Quantiles`.

    Args:
      members: Number of networks, >= 1.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with [documents, segments]. Returns [documents, members]. `mean` is the mean over the networks, [documents, 1].
    The weights, `rises` [segments, members], start at 0.

    Raises:
      ValueError: If `members` is out of range.

    Time O(documents * segments * members).

    Example:
      >>> import tensorflow as tf
      >>> FeatureFunctions(members=3)(tf.ones([5, 16])).shape
      TensorShape([5, 3])
    """

    def __init__(self, *, members: int, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.members = _arguments.integer("members", members, least=1)

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs [documents, segments]."""
        shape = (int(input_shape[-1]), self.members)
        self.rises = self.add_weight(name="rises", shape=shape, initializer="zeros")
        super().build(input_shape)

    def call(self, segments: tf.Tensor) -> tf.Tensor:
        """Returns [documents, members]."""
        return tf.matmul(segments, tf.convert_to_tensor(self.rises))

    def mean(self, segments: tf.Tensor) -> tf.Tensor:
        """Returns the mean over the networks, [documents, 1]."""
        # With mixed precision, a model that calls this in its own call reads float16.
        rises = tf.convert_to_tensor(self.rises)
        return tf.cast(tf.matmul(tf.cast(segments, rises.dtype), tf.reduce_mean(rises, 1, keepdims=True)), tf.float32)
