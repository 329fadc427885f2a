"""Batches of lists: an order of the queries in each epoch, the padded documents of a batch, and their labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments

if TYPE_CHECKING:
    from tfr_smooth.data.lists import Lists

# Batches in a pool that is sorted by length. A larger pool would save little padding and shuffle less.
_POOL = 50
# Each length of a shuffled query is increased by up to this fraction at random. Otherwise a query of a small dataset
# would share its batch with the same queries in every epoch. A larger fraction mixes more and pads more.
_LONGER = 0.1
# The following are not tuned.
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
        padded = tf.concat([places[: start + rest], padding, places[start + rest :]], axis=0)
        batches = tf.reshape(padded, [-1, self.batch_size])
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


class Part(NamedTuple):
    """One array of a batch: its values by row, the value of padding, and whether it has one value per list."""

    values: Any
    fill: Any
    per_list: bool = False

    @property
    def dtype(self) -> tf.DType:
        """The type in TensorFlow."""
        return tf.string if self.values.dtype == object else tf.as_dtype(self.values.dtype)


class RowNumbers:
    """The numbers of the rows as text, the ids of documents without others."""

    dtype = np.dtype(object)
    shape: list[int | None] = []

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Returns the values of rows, int64 [n]."""
        return rows.astype(np.bytes_).astype(object)


def dataset(
    inputs: Mapping[str, Part],
    labels: Sequence[Part],
    weights: Mapping[str, Part],
    *,
    lists: Lists,
    order: Order,
    list_size: int | None,
) -> tf.data.Dataset:
    """Returns the batches of `Lists.batches`.

    Args:
      inputs: The inputs by name.
      labels: The labels.
      weights: The weights by role, "weight" and "propensity", if there are any.
      lists: The lists, of whose rows these are.
      order: The order of the queries.
      list_size: The documents per list, or None for the longest list of each batch.
    """
    parts = [*inputs.values(), *labels, *weights.values()]
    lengths = np.minimum(lists.lengths, list_size or lists.lengths)
    kinds = [part.dtype for part in parts] + [tf.bool]
    batch = order.batch_size if order.drop_remainder else None
    shapes = [[batch] if part.per_list else [batch, list_size, *part.values.shape] for part in parts]
    read = 0

    def copied(queries: np.ndarray) -> list[np.ndarray]:
        """Copies the documents of a batch from the columns, in memory or on disk."""
        nonlocal read
        counts = lengths[queries]
        longest = list_size or int(counts.max(initial=0))
        mask = np.arange(longest) < counts[:, None]
        places = np.zeros(mask.shape, np.int64)
        places[mask] = lists.rows_of(queries, counts)
        rows, padding = places.reshape(-1), ~mask
        arrays = []
        for part in parts:
            if part.per_list:
                arrays.append(part.values(queries))
                continue
            values = part.values(rows)
            values = values.reshape(*mask.shape, *values.shape[1:])
            if not values.flags.writeable:
                values = values.copy()
            values[padding] = part.fill
            arrays.append(values)
        read += sum(array.nbytes for array in arrays) + len(queries) * len(arrays) * _PAGES
        if read > _RELEASED:
            read = 0
            lists.release()
        return [*arrays, mask]

    @_plain
    def load(queries: tf.Tensor) -> tuple[Any, ...]:
        real = queries[: tf.math.count_nonzero(queries >= 0)]
        arrays = tf.numpy_function(copied, [real], kinds, stateful=False)
        for array, shape in zip(arrays, [*shapes, [batch, list_size]], strict=True):
            array.set_shape(shape)
        mask, each = arrays[-1], iter(arrays)
        features = {**{name: next(each) for name in inputs}, "mask": mask}
        targets = [next(each) for _ in labels] or [tf.where(mask, 0.0, -1.0)]
        of_roles = {role: next(each) for role in weights}
        found = features, targets[0] if len(targets) == 1 else tf.stack(targets, axis=2)
        if "propensity" in weights:
            weight = of_roles.get("weight", tf.ones_like(of_roles["propensity"]))
            of_roles["weight"] = tf.math.divide_no_nan(weight, of_roles["propensity"])
        return (*found, of_roles["weight"]) if weights else found

    batches = order.dataset(lengths).map(load, num_parallel_calls=_PARALLEL, deterministic=True)
    if "propensity" in weights:
        batches = batches.map(one_list_per_click)
    return prefetched(batches.apply(tf.data.experimental.assert_cardinality(order.count(len(lengths)))))


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


def one_list_per_click(inputs: dict[str, Any], clicks: tf.Tensor, weights: tf.Tensor | None = None) -> tuple[Any, ...]:
    """Creates one list per click, with the clicked document as the only relevant one and its weight.

    Losses take one weight per list and reduce document weights to `sum(w y) / sum(y)`, so the clicks of one list share
    a weight. With one list per click, a loss weighted by inverse propensities is the estimator of Joachims, Swaminathan
    and Schnabel (WSDM 2017), and for additive metrics that of Agarwal et al. (SIGIR 2019). Its expectation over clicks
    is the sum over documents of relevance times the loss of a list where only that document is relevant.

    Args:
      inputs: Tensors of a batch by name, [batch, ...], with "mask" [batch, list].
      clicks: [batch, list], > 0 for clicked documents, 0 for other documents, negative for padding.
      weights: [batch, list], >= 0, such as inverse propensities of the clicked documents. None for no weights.

    Returns:
      (inputs, labels), or (inputs, labels, weights) if `weights` is given: inputs with one row per click; labels
      float32 [clicks, list] with values 1, 0 or -1; weights [clicks]. A batch without clicks has no rows.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import data
      >>> features, clicks, positions = np.ones([3, 2]), np.array([1, 0, 1]), np.array([1, 2, 3])
      >>> propensities = 1.0 / positions
      >>> dataset = data.from_arrays(features, clicks, ["a"] * 3, weights=1.0 / propensities).batches(8)
      >>> inputs, labels, weights = next(iter(dataset.map(data.one_list_per_click)))
      >>> labels.numpy().tolist(), weights.numpy().tolist()
      ([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 3.0])
    """
    places = tf.where(clicks > 0)
    rows = {name: tf.gather(tensor, places[:, 0]) for name, tensor in inputs.items()}
    clicked = tf.one_hot(places[:, 1], tf.shape(clicks)[1])
    labels = tf.ensure_shape(tf.where(rows["mask"], clicked, -1.0), [None, clicks.shape[1]])
    return (rows, labels) if weights is None else (rows, labels, tf.gather_nd(weights, places))


def draw_labels(
    dataset: tf.data.Dataset, weights: Sequence[float], *, seed: int, first_batch: int = 0
) -> tf.data.Dataset:
    r"""Draws the objective whose labels a list has: stochastic label aggregation.

    Objective k is drawn with the probability $p_k = w_k / \sum_j w_j$, for all documents of a list, each time that the
    list is in a batch (Carmel et al., "Multi-Objective Ranking Optimization for Product Search Using Stochastic Label
    Aggregation", WWW 2020). Any loss of one label can then train on several: the expected loss and gradient of a list
    are those of the linear scalarization $\sum_k p_k L(y_k, s)$; see `losses.MultiObjectiveLoss`.

    Args:
      dataset: Batches of (inputs, labels) or (inputs, labels, weights) with labels [batch, list, objectives], such as
        from `Lists.batches`.
      weights: One weight w >= 0 per objective, not all 0.
      seed: Seed of the draws, >= 0. A draw depends only on it, the number of the batch, and the place in the batch.
      first_batch: The number of the first batch, >= 0; for resumed training, that of the batches already seen. If `fit`
        iterates over the dataset once per epoch, each epoch has the same draws; let the dataset contain all epochs, by
        `num_epochs`, for new ones.

    Returns:
      The dataset with labels [batch, list].

    Raises:
      ValueError: If an argument is invalid, or the labels have another shape.

    Time and memory O(batch * list).

    Example:
      >>> from tfr_smooth import data
      >>> labels = [[2, 0], [1, 1], [0, 0]]  # relevance and purchase of three documents
      >>> lists = data.from_arrays([[0.1], [0.2], [0.3]], labels, ["a", "a", "b"])
      >>> dataset = lists.batches(2, num_epochs=3)
      >>> for inputs, drawn in data.draw_labels(dataset, [0.5, 0.5], seed=1):
      ...     print(drawn.numpy().tolist())
      [[2.0, 1.0], [0.0, -1.0]]
      [[0.0, 1.0], [0.0, -1.0]]
      [[0.0, 1.0], [0.0, -1.0]]
    """
    weights = _arguments.weights("weights", weights)
    seed = _arguments.integer("seed", seed, least=0)
    shape = dataset.element_spec[1].shape
    if shape.rank != 3 or shape[2] not in (None, len(weights)):
        raise ValueError(f"`dataset` must have labels [batch, list, {len(weights)}], one per weight, got {shape}.")
    logits = tf.math.log(tf.constant([weights]))

    @tf.autograph.experimental.do_not_convert
    def drawn(number: tf.Tensor, batch: tuple[Any, ...]) -> tuple[Any, ...]:
        inputs, labels, *others = batch
        seeds = tf.stack([tf.constant(seed % 2**63, tf.int64), number])
        objectives = tf.random.stateless_categorical(logits, tf.shape(labels)[0], seeds)[0]
        return inputs, tf.gather(labels, objectives, axis=2, batch_dims=1), *others

    return dataset.enumerate(_arguments.integer("first_batch", first_batch, least=0)).map(drawn)
