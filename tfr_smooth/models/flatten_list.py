"""Features of lists as rows of documents."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization


@_serialization.register
class FlattenList(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    """Flattens lists to one row per document, with the context features of its list; TF-Ranking's layer.

    A network for rows can then score all documents, and `RestoreList` returns the scores to their lists.

    A row of padding contains the features of a real document of its list: at position p, those of real document p
    modulo the number of real documents. The rows of real documents do not depend on padding. But a layer that computes
    statistics of its batch, such as batch normalization in training, counts the rows of padding. `FeedForwardScorer`
    processes only real documents.

    Values at padding that are used, such as those of lists without a real document, are replaced by 0 if they are not
    finite.

    The layer equals TF-Ranking's if padding is at the end of lists. Otherwise, TF-Ranking moves real documents to the
    start of their list, and `RestoreList` then assigns their scores to other positions.

    Args:
      circular_padding: Whether rows of padding contain the features of real documents instead of those at padding.
      name: Name of the layer. None uses Keras's default.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of `context_features`, a dict of tensors [batch, ...]; `example_features`, a dict of tensors
    [batch, list, ...]; and `list_mask` [batch, list] bool, False for padding. Returns two dicts with the same keys, of
    tensors [batch * list, ...].

    Raises:
      ValueError: If an argument is invalid or there are no example features.

    Time O(batch * list * (width + log list)), memory O(batch * list * width).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> context = {"user": tf.constant([[1], [0]])}
      >>> examples = {"price": tf.constant([[[1], [0], [-1]], [[0], [1], [0]]])}
      >>> mask = tf.constant([[True, True, False], [True, False, False]])
      >>> context, examples = models.FlattenList()((context, examples, mask))
      >>> context["user"].numpy().ravel().tolist(), examples["price"].numpy().ravel().tolist()
      ([1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0])
    """

    def __init__(self, circular_padding: bool = True, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.circular_padding = _arguments.boolean("circular_padding", circular_padding)

    def call(self, inputs: tuple[Any, Any, Any]) -> Any:
        """Returns two dicts of tensors [batch * list, ...]."""
        context_features, example_features, list_mask = inputs
        if not example_features:
            raise ValueError(f"`example_features` must contain at least one feature, got {example_features!r}.")
        mask = tf.cast(list_mask, tf.bool)
        shape = tf.shape(mask)
        context = {
            name: _rows(tf.repeat(tf.convert_to_tensor(values)[:, tf.newaxis], shape[1], axis=1), shape)
            for name, values in context_features.items()
        }
        indices = circular_indices(mask) if self.circular_padding else None
        examples = {}
        for name, values in example_features.items():
            values = _finite_at_padding(tf.convert_to_tensor(values), mask)
            examples[name] = _rows(values if indices is None else tf.gather(values, indices, batch_dims=1), shape)
        return context, examples


def circular_indices(mask: tf.Tensor) -> tf.Tensor:
    """Returns which document of its list each row contains, [batch, list] int32.

    Real documents contain themselves, and padding at position p contains real document p modulo their number. In lists
    without a real document, it contains the first position.

    Args:
      mask: [batch, list] bool, False for padding.
    """
    positions = tf.range(tf.shape(mask)[1])
    real_first = tf.argsort(tf.where(mask, positions, positions + tf.size(positions)), axis=1)
    count = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1, keepdims=True)
    return tf.where(mask, positions, tf.gather(real_first, positions % tf.maximum(count, 1), batch_dims=1))


def _rows(values: tf.Tensor, list_shape: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, ...] values as [batch * list, ...]."""
    return tf.reshape(values, tf.concat([[list_shape[0] * list_shape[1]], tf.shape(values)[2:]], axis=0))


def _finite_at_padding(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, ...] values, 0 at padding where they are not finite."""
    if not values.dtype.is_floating:
        return values
    real = tf.reshape(mask, tf.concat([tf.shape(mask), tf.ones([tf.rank(values) - 2], tf.int32)], axis=0))
    return tf.where(tf.logical_or(real, tf.math.is_finite(values)), values, tf.zeros_like(values))
