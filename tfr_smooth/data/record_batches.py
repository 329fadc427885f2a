"""Batches of queries over epochs from a stream of records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.batches import prefetched

_MAX_INT64 = 2**63 - 1
# Batches in a pool that is sorted by length. A larger pool would save little padding and shuffle less.
_POOL = 50
# Each length of a shuffled query is increased by up to this fraction at random. Otherwise a query of a small dataset
# would share its batch with the same queries in every epoch. A larger fraction mixes more and pads more.
_LONGER = 0.1
# AutoGraph has nothing to convert in these functions, and takes long to find that out.
_plain = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """The batch and epoch options of `read_tfrecord`."""

    batch_size: int
    list_size: int | None
    shuffle_buffer: int
    seed: int | None
    num_epochs: int | None
    first_epoch: int
    drop_remainder: bool
    return_ids: bool
    group_by_length: bool

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name, least in (("batch_size", 1), ("shuffle_buffer", 0), ("first_epoch", 0)):
            object.__setattr__(self, name, _arguments.integer(name, getattr(self, name), least=least))
        for name, least in (("list_size", 1), ("seed", 0), ("num_epochs", 1)):
            object.__setattr__(self, name, _arguments.integer_or_none(name, getattr(self, name), least=least))
        for name in ("drop_remainder", "return_ids", "group_by_length"):
            _arguments.boolean(name, getattr(self, name))

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> BatchOptions:
        """Returns the options among the arguments of a reader, which are all named like the fields."""
        return cls(**{field.name: arguments[field.name] for field in dataclasses.fields(cls)})

    @property
    def is_shuffled(self) -> bool:
        """Whether the order of the queries is random."""
        return self.shuffle_buffer > 0

    @_plain
    def grouped(self, lengths: tf.Tensor, chance: tf.Tensor, seed: tf.Tensor | None) -> tf.data.Dataset:
        """Batches queries of similar length.

        Args:
          lengths: int [queries], the lengths of up to `_POOL` batches of queries in their order.
          chance: An integer that differs from epoch to epoch if the queries are shuffled.
          seed: Seed of the order of the batches. None uses a new order each time.

        Returns:
          A dataset of batches of int32 indices into `lengths`.
        """
        places = tf.range(tf.size(lengths))
        rest = tf.size(places) % self.batch_size
        if self.drop_remainder:
            places = places[rest:]  # Queries arrive shuffled, so the dropped ones have any length.
        lengths = tf.cast(tf.gather(lengths, places), tf.float32)
        if self.is_shuffled:
            # The index of a query in the pool is random.
            lengths *= tf.linspace(1.0, 1.0 + _LONGER, tf.size(places))
        by_length = tf.gather(places, tf.argsort(lengths, stable=True))
        if self.drop_remainder:
            batches = tf.data.Dataset.from_tensor_slices(by_length).batch(self.batch_size)
        else:
            # The partial batch is at a random position in the order by length.
            start = self.batch_size * (tf.cast(chance, tf.int32) % (tf.size(places) // self.batch_size + 1))
            full = tf.concat([by_length[:start], by_length[start + rest :]], axis=0)
            batches = tf.data.Dataset.from_tensor_slices(full).batch(self.batch_size)
            few = tf.data.Dataset.from_tensors(by_length[start : start + rest])
            batches = batches.concatenate(few.filter(lambda indices: tf.size(indices) > 0))
        if not self.is_shuffled:
            return batches
        return batches.shuffle(_POOL + 1, seed, reshuffle_each_iteration=seed is None)

    @_plain
    def padded(self, queries: dict[str, Any]) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Pads one batch of queries, ragged tensors by name, and truncates the lists to `list_size`."""
        features = queries["features"]
        features = features.to_tensor(0.0, shape=[None, self.list_size, features.shape[2]])
        labels = queries["labels"]
        labels = labels.to_tensor(-1.0, shape=[None, self.list_size, *labels.shape[2:]])
        ids: tuple[tf.Tensor, ...] = ()
        if self.return_ids:
            ids = (queries["query_id"], queries["doc_id"].to_tensor("", shape=[None, self.list_size]))
        return self.inputs_and_labels(features, labels, *ids)

    def inputs_and_labels(
        self, features: tf.Tensor, labels: tf.Tensor, *ids: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns an element of the dataset from padded arrays."""
        batch = self.batch_size if self.drop_remainder else None
        inputs = {"features": tf.ensure_shape(features, [batch, self.list_size, features.shape[2]])}
        labels = tf.ensure_shape(labels, [batch, self.list_size, *labels.shape[2:]])
        if self.return_ids:
            inputs["query_id"] = tf.ensure_shape(ids[0], [batch])
            inputs["doc_id"] = tf.ensure_shape(ids[1], [batch, self.list_size])
        # The parser rejects negative labels.
        inputs["mask"] = (labels if labels.shape.rank == 2 else labels[:, :, 0]) >= 0.0
        return inputs, labels


class Streamed:
    """Batches from a dataset of unpadded queries: `features`, `labels` and, with `return_ids`, ids.

    Args:
      queries: A dataset of single queries.
      options: The batch and epoch options.
    """

    def __init__(self, queries: tf.data.Dataset, options: BatchOptions) -> None:
        # Only `grouped` uses the numbers.
        self._queries = queries.enumerate() if options.group_by_length else queries
        self._options = options

    def dataset(self) -> tf.data.Dataset:
        """Returns the batches of all epochs."""
        options, queries = self._options, self._queries
        buffer, epochs = options.shuffle_buffer, options.num_epochs
        if options.is_shuffled and options.seed is not None:
            batches = seeded_epochs(queries, buffer, options.seed, options.first_epoch, epochs, self._batches)
        else:
            if options.is_shuffled:
                queries = queries.shuffle(buffer, reshuffle_each_iteration=True)
            batches = self._batches(queries, None).repeat(epochs)
        dataset = batches.map(options.padded)
        if epochs is None:
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
        return prefetched(dataset)

    def _batches(self, queries: tf.data.Dataset, seed: tf.Tensor | None) -> tf.data.Dataset:
        """Batches the queries in their order or, if grouped by length, in an order that depends on the seed."""
        options = self._options
        if not options.group_by_length:
            return queries.ragged_batch(options.batch_size, drop_remainder=options.drop_remainder)

        def grouped(places: tf.Tensor, pool: dict[str, Any]) -> tf.data.Dataset:
            indices = options.grouped(pool["labels"].row_lengths(), places[0], seed)
            return indices.map(lambda batch: {name: tf.gather(values, batch) for name, values in pool.items()})

        return queries.ragged_batch(_POOL * options.batch_size).flat_map(grouped)


def seeded_epochs(
    queries: tf.data.Dataset,
    shuffle_buffer: int,
    seed: int,
    first_epoch: int,
    num_epochs: int | None,
    batches: Callable[[tf.data.Dataset, tf.Tensor | None], tf.data.Dataset],
) -> tf.data.Dataset:
    """Returns the batches of each epoch in an order that depends only on (`seed`, epoch)."""

    @_plain
    def one_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        # tf.data combines the seeds of the graph and the operation. Setting the seed of this function's graph makes the
        # order independent of `tf.random.set_seed`.
        if not tf.executing_eagerly():
            # The seed is taken modulo 2**31 - 1. It must not be 0, which tf.data treats specially.
            tf.compat.v1.set_random_seed(1 + seed % (2**31 - 2))
        return batches(queries.shuffle(shuffle_buffer, epoch, reshuffle_each_iteration=False), epoch)

    end = _MAX_INT64 if num_epochs is None else first_epoch + num_epochs
    return tf.data.Dataset.range(first_epoch, end).flat_map(one_epoch)
