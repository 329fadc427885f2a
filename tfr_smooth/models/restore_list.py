"""Lists of the scores of rows."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.flatten_list import circular_indices

# TF-Ranking's score at padding.
_PADDING_SCORE = math.log(1e-10)


@_serialization.register
class RestoreList(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    """Returns the scores of rows to their lists, and sets the scores at padding to log(1e-10); TF-Ranking's layer.

    The rows are those of `FlattenList`. The losses and metrics ignore the scores at padding. For predictions that sort
    padding last, set them to `PADDING_SCORE`: real scores may be below log(1e-10) = -23.03.

    Args:
      name: Name of the layer. None uses Keras's default.
      by_scatter: Whether the score of a real document is the mean of the scores of its rows, including the rows of
        padding that contain its features. They differ only if the network is random, such as with dropout in training.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of `flattened_logits` [batch * list] or [batch * list, 1] and `list_mask` [batch, list] bool,
    False for padding. Returns [batch, list].

    Equal to TF-Ranking's layer if padding is at the end of lists, except with `by_scatter` in lists without a real
    document, where TF-Ranking returns a mean score at the first position.

    Raises:
      ValueError: If an argument is invalid or the shapes do not match.

    Time O(batch * list log list), memory O(batch * list).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> mask = tf.constant([[True, True, False], [True, False, False]])
      >>> print(models.RestoreList()((tf.constant([1.0, 0.5, 2.0, 0.0, -1.0, 0.0]), mask)).numpy().round(2))
      [[  1.     0.5  -23.03]
       [  0.   -23.03 -23.03]]
    """

    def __init__(self, name: str | None = None, by_scatter: bool = False, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.by_scatter = _arguments.boolean("by_scatter", by_scatter)

    def call(self, inputs: tuple[Any, Any]) -> tf.Tensor:
        """Returns [batch, list]."""
        logits, mask = tf.convert_to_tensor(inputs[0]), tf.cast(inputs[1], tf.bool)
        documents = mask.shape.num_elements()
        if documents is not None and logits.shape.num_elements() not in (None, documents):
            expected = f"[batch * list] or [batch * list, 1] for `list_mask` of the shape {mask.shape}"
            raise ValueError(f"`flattened_logits` must have the shape {expected}, got {logits.shape}.")
        logits = tf.reshape(logits, tf.shape(mask))
        if self.by_scatter:
            logits = _means(logits, circular_indices(mask))
        return tf.where(mask, logits, tf.constant(_PADDING_SCORE, logits.dtype))


def _means(values: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
    """Returns the mean over the rows of each document, [batch, list]; 0 for documents without a row."""
    shape = tf.shape(values)
    ids = tf.reshape(documents + tf.range(shape[0])[:, tf.newaxis] * shape[1], [-1])
    sums, counts = (
        tf.math.unsorted_segment_sum(tf.reshape(each, [-1]), ids, num_segments=tf.size(values))
        for each in (values, tf.ones_like(values))
    )
    return tf.reshape(tf.math.divide_no_nan(sums, counts), shape)
