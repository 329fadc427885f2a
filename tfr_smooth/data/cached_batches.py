"""Batches from a `QueryCache` as a `tf.data.Dataset`: what flows through the pipeline is places of queries."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.data.query_cache import QueryCache

# Batches whose queries are sorted by length together. More would save little padding and shuffle less.
_POOL = 50
# Of shuffled queries each length counts as up to this much longer, by chance: else the queries of a small data set
# would come with the same others in every epoch. More would mix more, and pad more.
_LONGER = 0.1
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
        rest = tf.size(pool) % self.batch_size
        if self.drop_remainder:
            pool = pool[rest:]  # It comes shuffled: so what is dropped is of any length.
        lengths = tf.gather(tf.constant(self.cache.lengths, tf.float32), pool)
        if self.is_shuffled:
            # The place of a query in the pool is by chance.
            lengths *= tf.linspace(1.0, 1.0 + _LONGER, tf.size(pool))
        by_length = tf.gather(pool, tf.argsort(lengths, stable=True))
        if self.drop_remainder:
            batches = tf.data.Dataset.from_tensor_slices(by_length).batch(self.batch_size)
        else:
            # The batch that is not full is as likely of long lists as of short ones.
            start = self.batch_size * (tf.cast(pool[0], tf.int32) % (tf.size(pool) // self.batch_size + 1))
            full = tf.concat([by_length[:start], by_length[start + rest :]], axis=0)
            batches = tf.data.Dataset.from_tensor_slices(full).batch(self.batch_size)
            few = tf.data.Dataset.from_tensors(by_length[start : start + rest])
            batches = batches.concatenate(few.filter(lambda places: tf.size(places) > 0))
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
