"""The epochs of a dataset: its options and the order of the queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.batches import Batching, Source
from tfr_smooth.data.options import prefetched

_MAX_INT64 = 2**63 - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """The batch and epoch options of `read_letor`."""

    batch_size: int
    list_size: int | None = None
    shuffle_buffer: int = 0
    seed: int | None = None
    num_epochs: int | None = 1
    first_epoch: int = 0
    drop_remainder: bool = False
    return_ids: bool = False
    group_by_length: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        checked = {
            "batch_size": _arguments.integer("batch_size", self.batch_size, least=1),
            "list_size": _arguments.integer_or_none("list_size", self.list_size, least=1),
            "shuffle_buffer": _arguments.integer("shuffle_buffer", self.shuffle_buffer, least=0),
            "seed": _arguments.integer_or_none("seed", self.seed, least=0),
            "num_epochs": _arguments.integer_or_none("num_epochs", self.num_epochs, least=1),
            "first_epoch": _arguments.integer("first_epoch", self.first_epoch, least=0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for name in ("drop_remainder", "return_ids", "group_by_length"):
            _arguments.boolean(name, getattr(self, name))

    @property
    def batching(self) -> Batching:
        """The options of a single batch."""
        return Batching(
            self.batch_size,
            self.list_size,
            self.drop_remainder,
            self.return_ids,
            self.group_by_length,
            self.shuffle_buffer > 0,
        )

    def dataset(self, source: Source, count: int | None) -> tf.data.Dataset:
        """Returns the batches of all epochs; `count` is the number of queries, None if unknown."""
        queries = source.queries
        if self.shuffle_buffer and self.seed is not None:
            batches = seeded_epochs(
                queries, self.shuffle_buffer, self.seed, self.first_epoch, self.num_epochs, source.batches
            )
        else:
            if self.shuffle_buffer:
                queries = queries.shuffle(self.shuffle_buffer, reshuffle_each_iteration=True)
            batches = source.batches(queries, None).repeat(self.num_epochs)
        dataset = source.load(batches)
        if self.num_epochs is None:
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
        elif count is not None:
            total = self.num_epochs * self.batching.count(count)
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(total))
        return prefetched(dataset)


def seeded_epochs(
    queries: tf.data.Dataset,
    shuffle_buffer: int,
    seed: int,
    first_epoch: int,
    num_epochs: int | None,
    batches: Callable[[tf.data.Dataset, tf.Tensor | None], tf.data.Dataset],
) -> tf.data.Dataset:
    """Returns the batches of each epoch in an order that depends only on (`seed`, epoch)."""

    @tf.autograph.experimental.do_not_convert  # AutoGraph has nothing to convert here, and takes long to find that out.
    def one_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        # tf.data combines the seeds of the graph and the operation. Setting the seed of this function's graph makes the
        # order independent of `tf.random.set_seed`.
        if not tf.executing_eagerly():
            # The seed is taken modulo 2**31 - 1. It must not be 0, which tf.data treats specially.
            tf.compat.v1.set_random_seed(1 + seed % (2**31 - 2))
        return batches(queries.shuffle(shuffle_buffer, epoch, reshuffle_each_iteration=False), epoch)

    end = _MAX_INT64 if num_epochs is None else first_epoch + num_epochs
    return tf.data.Dataset.range(first_epoch, end).flat_map(one_epoch)
