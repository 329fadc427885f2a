"""Batches from a `QueryCache` as a `tf.data.Dataset`: what flows through the pipeline is places of queries."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.data.query_cache import QueryCache

# Batches whose queries are sorted by length together. More would save little padding and shuffle less.
_POOL = 50
# Copying is what takes the time here: one thread copies while another fills the next batch.
_PARALLEL = 2


@dataclasses.dataclass(frozen=True)
class CachedBatches:
    """How places of queries become batches of `(inputs, labels)`; the arguments are those of `read_letor`."""

    cache: QueryCache
    batch_size: int
    list_size: int | None
    drop_remainder: bool
    return_ids: bool
    group_by_length: bool
    is_shuffled: bool

    def queries(self) -> tf.data.Dataset:
        """The places of all queries."""
        return tf.data.Dataset.range(len(self.cache))

    def batches(self, queries: tf.data.Dataset, seed: tf.Tensor | None) -> tf.data.Dataset:
        """Makes batches of some queries, in their order or, if grouped, in one that depends on the seed."""
        if self.group_by_length:
            grouped = queries.batch(_POOL * self.batch_size).flat_map(lambda pool: self._grouped(pool, seed))
        else:
            grouped = queries.batch(self.batch_size, drop_remainder=self.drop_remainder)
        return grouped.map(self._load, num_parallel_calls=_PARALLEL, deterministic=True)

    def _grouped(self, pool: tf.Tensor, seed: tf.Tensor | None) -> tf.data.Dataset:
        # The pool comes shuffled: so its first queries, which are no full batch, are of any length.
        rest = tf.size(pool) % self.batch_size
        lengths = tf.gather(tf.constant(self.cache.lengths), pool[rest:])
        by_length = tf.gather(pool[rest:], tf.argsort(lengths, stable=True))
        batches = tf.data.Dataset.from_tensor_slices(by_length).batch(self.batch_size)
        if not self.drop_remainder:
            few = tf.data.Dataset.from_tensors(pool[:rest]).filter(lambda places: tf.size(places) > 0)
            batches = batches.concatenate(few)
        if not self.is_shuffled:
            return batches
        return batches.shuffle(_POOL + 1, seed, reshuffle_each_iteration=seed is None)

    def _load(self, places: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        batch = self.batch_size if self.drop_remainder else None
        kinds = [tf.float32, tf.float32] + [tf.string, tf.string] * self.return_ids
        features, labels, *ids = tf.numpy_function(self._arrays, [places], kinds, stateful=False)
        inputs = {"features": tf.ensure_shape(features, [batch, self.list_size, self.cache.num_features])}
        labels = tf.ensure_shape(labels, [batch, self.list_size])
        if self.return_ids:
            inputs["query_id"] = tf.ensure_shape(ids[0], [batch])
            inputs["doc_id"] = tf.ensure_shape(ids[1], [batch, self.list_size])
        inputs["mask"] = labels >= 0.0  # The parser admits no negative label.
        return inputs, labels

    def _arrays(self, places: np.ndarray) -> list[Any]:
        features, labels = self.cache.batch(places, self.list_size)
        ids = self.cache.ids(places, labels.shape[1]) if self.return_ids else ()
        return [features, labels, *ids]
