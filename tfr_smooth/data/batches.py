"""Batches of `Lists`: an order of the queries in each epoch, and the padded documents of a batch of queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data import column_values
from tfr_smooth.data.labels import one_list_per_click

if TYPE_CHECKING:
    from tfr_smooth.data.lists import Lists

# Batches in a pool that is sorted by length. A larger pool would save little padding and shuffle less.
_POOL = 50
# Each length of a shuffled query is increased by up to this fraction at random. Otherwise a query of a small dataset
# would share its batch with the same queries in every epoch. A larger fraction mixes more and pads more.
_LONGER = 0.1
# Copying dominates the time: one thread copies while another fills the next batch.
_PARALLEL = 2
# Batches to prepare ahead. Fixed, as autotuning is off.
_PREFETCH = 2
_RELEASED = 1 << 28  # bytes read, after which memory-mapped columns no longer count as memory of this process
_PAGES = 1 << 16  # bytes that the operating system maps for one list and column
_MAX_INT64 = 2**63 - 1
# AutoGraph has nothing to convert in these functions, and takes long to find that out.
_plain = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True)
class Order:
    """The batches of queries in each epoch; see `Lists.batches` for the arguments."""

    batch_size: int
    shuffle: bool
    seed: int | None
    first_epoch: int
    num_epochs: int | None
    group_by_length: bool
    drop_remainder: bool

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name, least in (("batch_size", 1), ("first_epoch", 0)):
            object.__setattr__(self, name, _arguments.integer(name, getattr(self, name), least=least))
        for name, least in (("seed", 0), ("num_epochs", 1)):
            object.__setattr__(self, name, _arguments.integer_or_none(name, getattr(self, name), least=least))
        for name in ("shuffle", "group_by_length", "drop_remainder"):
            _arguments.boolean(name, getattr(self, name))

    def count(self, queries: int) -> int:
        """Returns the number of batches of all epochs."""
        if self.num_epochs is None:
            return tf.data.INFINITE_CARDINALITY
        full, rest = divmod(queries, self.batch_size)
        return self.num_epochs * (full + (rest > 0 and not self.drop_remainder))

    def dataset(self, lengths: np.ndarray) -> tf.data.Dataset:
        """Returns the batches of all epochs as int64 [batch_size], indices of queries; -1 in the partial batch."""
        if self.shuffle and self.seed is None:
            epochs = tf.data.Dataset.random(rerandomize_each_iteration=True)
            epochs = epochs if self.num_epochs is None else epochs.take(self.num_epochs)
        else:
            end = _MAX_INT64 if self.num_epochs is None else self.first_epoch + self.num_epochs
            epochs = tf.data.Dataset.range(self.first_epoch, end)
        known = tf.constant(lengths, tf.float32) if self.group_by_length else len(lengths)
        return epochs.flat_map(_plain(lambda epoch: tf.data.Dataset.from_tensor_slices(self._epoch(epoch, known))))

    @_plain
    def _epoch(self, epoch: tf.Tensor, lengths: Any) -> tf.Tensor:
        """Returns the batches of an epoch, int64 [batches, batch_size]."""
        queries = tf.size(lengths, tf.int64) if self.group_by_length else tf.constant(lengths, tf.int64)
        seed = tf.stack([tf.constant((self.seed or 0) % 2**63, tf.int64), tf.cast(epoch, tf.int64)])

        def shuffled(values: tf.Tensor, salt: int) -> tf.Tensor:
            return tf.random.experimental.stateless_shuffle(values, seed + tf.constant([salt, 0], tf.int64), "philox")

        places = tf.range(queries)
        if self.shuffle:
            places = shuffled(places, 0)
        rest = queries % self.batch_size
        if self.drop_remainder:
            places = places[: queries - rest]
            rest = tf.zeros_like(rest)
        full = tf.size(places, tf.int64) // self.batch_size
        if self.group_by_length:
            places = self._by_length(places, tf.gather(lengths, places))
        few = tf.zeros([], tf.int64) + full  # the number of batches before the partial one
        if self.group_by_length and self.shuffle:
            # The partial batch is at a random position in the order by length.
            few = tf.random.stateless_uniform([], seed, maxval=full + 1, dtype=tf.int64, alg="philox")
        start = few * self.batch_size
        padding = tf.fill([tf.where(rest > 0, self.batch_size - rest, 0)], tf.constant(-1, tf.int64))
        batches = tf.reshape(
            tf.concat([places[: start + rest], padding, places[start + rest :]], axis=0), [-1, self.batch_size]
        )
        return shuffled(batches, 1) if self.group_by_length and self.shuffle else batches

    def _by_length(self, places: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Sorts queries by length within each pool; their order is random if they are shuffled."""
        count = tf.size(places)
        order = tf.range(count)
        size = _POOL * self.batch_size
        if self.shuffle:
            lengths *= 1.0 + _LONGER * tf.cast(order % size, tf.float32) / tf.cast(tf.minimum(size, count), tf.float32)
        by_length = tf.argsort(lengths, stable=True)
        pools = tf.gather(order // size, by_length)
        return tf.gather(places, tf.gather(by_length, tf.argsort(pools, stable=True)))


class _Part(NamedTuple):
    """One array of a batch: its values by row, the value of padding, and whether it has one value per list."""

    values: Any
    fill: Any
    per_list: bool = False

    @property
    def dtype(self) -> tf.DType:
        """The type in TensorFlow."""
        return tf.string if self.values.dtype == object else tf.as_dtype(self.values.dtype)


def dataset(lists: Lists, order: Order, list_size: int | None, ids: bool, portable: bool) -> tf.data.Dataset:
    """Implements `Lists.batches`."""
    parts, pack = _parts(lists, ids)
    lengths = np.minimum(lists.lengths, list_size or lists.lengths)
    source = (_Portable if portable else _Mapped)(lists, parts, lengths, list_size)
    batch = order.batch_size if order.drop_remainder else None

    @_plain
    def load(queries: tf.Tensor) -> tuple[Any, ...]:
        arrays = source(queries[: tf.math.count_nonzero(queries >= 0)])
        for part, array in zip(parts, arrays[:-1], strict=True):
            array.set_shape([batch, *([] if part.per_list else [list_size, *part.values.shape])])
        arrays[-1].set_shape([batch, list_size])  # the mask
        return pack(arrays)

    batches = order.dataset(lengths).map(load, num_parallel_calls=_PARALLEL, deterministic=True)
    if lists.roles.propensity is not None:
        batches = batches.map(one_list_per_click)
    batches = batches.apply(tf.data.experimental.assert_cardinality(order.count(len(lists))))
    return prefetched(batches)


def _parts(lists: Lists, ids: bool) -> tuple[list[_Part], Callable[[list[tf.Tensor]], tuple[Any, ...]]]:
    """Returns the arrays of a batch, and a function that makes the element of the dataset from them and the mask."""
    roles, parts, names = lists.roles, [], []

    def add(name: str, *part: Any) -> None:
        names.append(name)
        parts.append(_Part(*part))

    for name in roles.features:
        values = lists.column(name)
        add(name, values, b"" if values.dtype == object else 0)
    if roles.position is not None:
        add("position", lists.column(roles.position), 0)
    if ids:
        both = {"query_id", "doc_id"} & {*names}
        if both:
            raise ValueError(f"`ids` must be False, as there are features of these names, got True and {sorted(both)}.")
        texts = lists.query_ids
        texts = texts if column_values.is_text(texts.type) else texts.cast(pa.string())
        add("query_id", column_values.ColumnValues(pa.chunked_array([texts])), b"", True)
        add("doc_id", _Rows() if roles.document_id is None else lists.column(roles.document_id), b"")
    inputs = len(names)
    for name in roles.labels:
        add(name, lists.column(name), -1)
    for name in filter(None, (roles.weight, roles.propensity)):
        add(name, lists.column(name), 0)

    def pack(arrays: list[tf.Tensor]) -> tuple[Any, ...]:
        *arrays, mask = arrays
        features = {**dict(zip(names[:inputs], arrays, strict=False)), "mask": mask}
        labels = arrays[inputs : inputs + len(roles.labels)]
        if not labels:
            return features, tf.where(mask, 0.0, -1.0)
        labels = labels[0] if len(labels) == 1 else tf.stack(labels, axis=2)
        others = arrays[inputs + len(roles.labels) :]
        weights = others[0] if roles.weight is not None else None
        if roles.propensity is not None:
            weights = tf.math.divide_no_nan(tf.ones_like(others[-1]) if weights is None else weights, others[-1])
        return (features, labels) if weights is None else (features, labels, weights)

    return parts, pack


class _Rows:
    """The numbers of the rows as text."""

    dtype = np.dtype(object)
    shape: list[int | None] = []

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return rows.astype(np.bytes_).astype(object)


class _Mapped:
    """Copies the documents of a batch from the columns, in memory or on disk, in Python."""

    def __init__(self, lists: Lists, parts: list[_Part], lengths: np.ndarray, list_size: int | None) -> None:
        self._lists, self._parts, self._lengths, self._list_size = lists, parts, lengths, list_size
        self._read = 0
        self._kinds = [*(part.dtype for part in parts), tf.bool]

    def __call__(self, queries: tf.Tensor) -> list[tf.Tensor]:
        return tf.numpy_function(self._arrays, [queries], self._kinds, stateful=False)

    def _arrays(self, queries: np.ndarray) -> list[np.ndarray]:
        lengths = self._lengths[queries]
        longest = self._list_size or int(lengths.max(initial=0))
        mask = np.arange(longest) < lengths[:, None]
        places = np.zeros(mask.shape, np.int64)
        places[mask] = self._lists.rows_of(queries, lengths)
        rows, padding = places.reshape(-1), ~mask
        arrays = []
        for part in self._parts:
            if part.per_list:
                arrays.append(part.values(queries))
                continue
            values = part.values(rows)
            values = values.reshape(*mask.shape, *values.shape[1:])
            if not values.flags.writeable:
                values = values.copy()
            values[padding] = part.fill
            arrays.append(values)
        self._read += sum(array.nbytes for array in arrays) + len(queries) * len(arrays) * _PAGES
        if self._read > _RELEASED:
            self._read = 0
            self._lists.release()
        return [*arrays, mask]


class _Portable:
    """Copies the documents of a batch from constants, in TensorFlow."""

    def __init__(self, lists: Lists, parts: list[_Part], lengths: np.ndarray, list_size: int | None) -> None:
        self._parts, self._list_size = parts, list_size
        rows, queries = lists.rows, np.arange(len(lists))
        with tf.device("CPU:0"):
            self._lengths, self._starts = tf.constant(lengths), tf.constant(lists.starts[:-1])
            self._constants = [tf.constant(part.values(queries if part.per_list else rows)) for part in parts]

    def __call__(self, queries: tf.Tensor) -> list[tf.Tensor]:
        lengths = tf.gather(self._lengths, queries)
        longest = self._list_size or tf.reduce_max(lengths)
        mask = tf.sequence_mask(lengths, longest)
        rows = tf.where(mask, tf.gather(self._starts, queries)[:, None] + tf.range(longest, dtype=tf.int64), 0)
        arrays = []
        for part, constant in zip(self._parts, self._constants, strict=True):
            if part.per_list:
                arrays.append(tf.gather(constant, queries))
                continue
            real = tf.reshape(mask, [-1, longest, *[1] * (constant.shape.rank - 1)])
            arrays.append(tf.where(real, tf.gather(constant, rows), tf.cast(part.fill, constant.dtype)))
        return [*arrays, mask]


def share_by_data(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Shards each batch over workers; sharding by file, the default, needs one file per worker and pads differently."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Prefetches batches of a dataset without `tf.data.AUTOTUNE`, and shards each batch over workers."""
    options = tf.data.Options()
    # With nothing to tune, the tuning thread only adds cost: closing an iterator may wait for it for many seconds.
    options.autotune.enabled = False
    return share_by_data(dataset.prefetch(_PREFETCH)).with_options(options)
