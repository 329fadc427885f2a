"""Context and example features of lists in one tensor."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.models.flatten_list import FlattenList


@_serialization.register
class ConcatFeatures(FlattenList):
    """Concatenates the features of each document and the context features of its list; TF-Ranking's layer.

    First the context features, then the example features, each in the order of their names. Padding is treated as in
    `FlattenList`.

    Args:
      circular_padding: Whether padding contains the features of real documents; see `FlattenList`.
      name: Name of the layer. None uses Keras's default.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of `context_features`, a dict of tensors [batch, ...]; `example_features`, a dict of tensors
    [batch, list, ...] of the same type; and `list_mask` [batch, list] bool, False for padding. Returns [batch, list,
    width].

    Raises:
      ValueError: If an argument is invalid or there are no example features.

    Time O(batch * list * (width + log list)), memory O(batch * list * width).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> context = {"user": tf.constant([[1.0], [2.0]])}
      >>> examples = {"embedding": tf.constant([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])}
      >>> mask = tf.constant([[True, False], [True, True]])
      >>> models.ConcatFeatures()((context, examples, mask)).numpy().tolist()
      [[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [[2.0, 0.0, 1.0], [2.0, 1.0, 0.0]]]
    """

    def call(self, inputs: tuple[Any, Any, Any]) -> tf.Tensor:
        """Returns [batch, list, width]."""
        shape = tf.shape(inputs[2])
        flattened = super().call(inputs)
        parts = [_vectors(features[name]) for features in flattened for name in sorted(features)]
        rows = tf.concat(parts, axis=1)
        return tf.reshape(rows, [shape[0], shape[1], _width(rows)])


def _vectors(rows: tf.Tensor) -> tf.Tensor:
    """Returns rows [documents, ...] as [documents, width]."""
    return tf.reshape(rows, [tf.shape(rows)[0], _width(rows)])


def _width(rows: tf.Tensor) -> tf.Tensor | int:
    """Returns the number of values per row: an int if it is static, as dense layers need."""
    width = rows.shape[1:].num_elements()
    return tf.reduce_prod(tf.shape(rows)[1:]) if width is None else width
