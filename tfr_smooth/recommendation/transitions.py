"""Scores of a Markov chain as a layer of a model of sequences."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.recommendation.baselines import MarkovChain
from tfr_smooth.recommendation.sequences import to_end


@_serialization.register
class Transitions(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    """Log-probabilities of a `MarkovChain` for all items, given the items of users in order.

    Args:
      num_items: Number of items of the catalog, >= 1.
      num_entries: Number of pairs of an item and one that followed it, >= 0.
      order: As for `MarkovChain`.
      decay: As for `MarkovChain`.
      weight: Factor of the log-probabilities, > 0.
      **kwargs: `name` and other arguments of a Keras layer.

    Time O(order * entries of an item + items) per user.
    """

    def __init__(
        self, *, num_items: int, num_entries: int, order: int, decay: float, weight: float, **kwargs: Any
    ) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_items, self.num_entries = num_items, num_entries
        self.order, self.decay, self.weight = order, decay, weight
        options: dict[str, Any] = {"initializer": "zeros", "trainable": False}
        self.starts = self.add_weight(name="starts", shape=(num_items + 1,), dtype="int32", **options)
        self.following = self.add_weight(name="following", shape=(num_entries,), dtype="int32", **options)
        self.probabilities = self.add_weight(name="probabilities", shape=(num_entries,), **options)
        self.smoothed = self.add_weight(name="smoothed", shape=(num_items,), **options)
        self.shares = self.add_weight(name="shares", shape=(num_items,), **options)
        self.built = True  # the constructor creates all weights

    @classmethod
    def of(cls, chain: MarkovChain, weight: float) -> Transitions:
        """Returns a layer with the probabilities of a fitted chain."""
        matrix = chain.transitions
        sizes = {"num_items": matrix.shape[0], "num_entries": matrix.nnz, "order": chain.order, "decay": chain.decay}
        layer = cls(**sizes, weight=weight)
        layer.set_weights([matrix.indptr, matrix.indices, matrix.data, chain.smoothed, chain.shares])
        return layer

    def call(self, items: tf.Tensor) -> tf.Tensor:
        """Returns float32 [batch, items], given indices of items, int32 [batch, any], in order; below 0 for none."""
        num_items, latest = self.num_items, to_end(items)[:, -self.order :]
        length = tf.shape(latest)[1]
        places = tf.where(latest >= 0)
        users, item = places[:, 0], tf.gather_nd(latest, places)
        weights = self.decay ** tf.cast(tf.cast(length, tf.int64) - 1 - places[:, 1], tf.float32)
        starts = tf.convert_to_tensor(self.starts)
        entries = tf.ragged.range(tf.gather(starts, item), tf.gather(starts, item + 1))
        known, count = entries.value_rowids(), tf.shape(latest, tf.int64)[0]
        values = tf.gather(weights, known) * tf.gather(tf.convert_to_tensor(self.probabilities), entries.values)
        following = tf.cast(tf.gather(tf.convert_to_tensor(self.following), entries.values), tf.int64)
        cells = tf.gather(users, known) * num_items + following
        found = tf.reshape(tf.math.unsorted_segment_sum(values, cells, count * num_items), [-1, num_items])
        smoothed = weights * tf.gather(tf.convert_to_tensor(self.smoothed), item)
        total, rest = (tf.math.unsorted_segment_sum(each, users, count)[:, tf.newaxis] for each in (weights, smoothed))
        rest = tf.where(total > 0.0, rest, 1.0) * tf.convert_to_tensor(self.shares)
        return self.weight * tf.math.log((found + rest) / tf.where(total > 0.0, total, 1.0))
