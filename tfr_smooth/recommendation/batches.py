"""Batches of users and their items or sequences, and dense labels of the catalog."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth._compiled import dataset_of
from tfr_smooth.recommendation.interactions import Interactions

# Numbers of candidates are rounded up to multiples of it, so that programs are compiled rarely. Not tuned.
_GRANULE = 512


def user_batches(
    interactions: Interactions,
    *,
    batch_size: int,
    seed: int = 0,
    num_epochs: int = 1,
    first_epoch: int = 0,
) -> tf.data.Dataset:
    """Creates a dataset of batches of users with their items, for training.

    Args:
      interactions: The interactions. Users without items are skipped.
      batch_size: Users per batch, >= 1. The last batch of an epoch may be smaller.
      seed: Seed of the order, >= 0, which is another in each epoch.
      num_epochs: Number of epochs, >= 1.
      first_epoch: Index of the first epoch, >= 0, so that a resumed training sees the same batches.

    Returns:
      A dataset of (users, items, weights): int32 [batch]; int32 [batch, longest] with -1 after the last item; and
      float32 [batch, longest], the weights of the interactions, 1 without weights, 0 after the last item.

    Raises:
      ValueError: If an argument is invalid, or no user has items.

    Memory: one number per user, besides the interactions.

    Example:
      >>> from tfr_smooth import recommendation
      >>> interactions = recommendation.Interactions([[1, 0, 1], [0, 1, 0]])
      >>> for users, items, _ in recommendation.user_batches(interactions, batch_size=2):
      ...     print(users.numpy().tolist(), items.numpy().tolist())
      [0, 1] [[0, 2], [1, -1]]
    """
    orders = _checked_orders(interactions, batch_size, seed, num_epochs, first_epoch)

    def batches() -> Iterator[tuple[np.ndarray, ...]]:
        for _, users in orders():
            yield users, *interactions.padded(users)

    padded = [tf.TensorSpec([None, None], dtype) for dtype in (tf.int32, tf.float32)]
    signature = (tf.TensorSpec([None], tf.int32), *padded)
    return dataset_of(batches, signature).prefetch(2)


def candidate_batches(
    interactions: Interactions,
    *,
    negatives: int,
    batch_size: int,
    seed: int = 0,
    num_epochs: int = 1,
    first_epoch: int = 0,
) -> tf.data.Dataset:
    r"""Creates a dataset of batches of users with sampled items, for catalogs that are too large to score in each step.

    The candidates of a batch are all items U of its users, and a uniform sample S of the other items without
    replacement. They are the same for all users of the batch, so an item of one user is a negative of another. For a
    softmax over a catalog of N items, the offset $\log((N - |U|) / |S|)$ on the scores of S makes the sampled partition
    function unbiased for the batch,

    $$\mathbb{E} \sum_{i \in U \cup S} e^{s_i + o_i} = \sum_{i=1}^{N} e^{s_i}$$

    which is the correction of sampled softmax (Bengio and Senecal, 2008; "logQ") for this sample.

    Args:
      interactions: The interactions. Users without items are skipped.
      negatives: Number of sampled items |S|, >= 1. If fewer items are left, all of them are candidates.
      batch_size: Users per batch, >= 1. The last batch of an epoch may be smaller.
      seed: Seed of the order of the users and of the sample, >= 0.
      num_epochs: Number of epochs, >= 1.
      first_epoch: Index of the first epoch, >= 0, so that a resumed training sees the same batches.

    Returns:
      A dataset of (inputs, labels). Inputs are a dictionary of "users", int32 [batch]; "items", int32 [batch,
      candidates], the same in each row; and "offsets", float32 [batch, candidates]. Labels are float32 [batch,
      candidates]: 1, or its weight, for an item of the user, 0 for others, -1 for padding.

    Raises:
      ValueError: If an argument is invalid, or no user has items.

    Time and memory O(items) per batch, besides batch_size * candidates.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import recommendation
      >>> interactions = recommendation.Interactions([[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]])
      >>> inputs, labels = next(iter(recommendation.candidate_batches(interactions, negatives=2, batch_size=2)))
      >>> inputs["items"].numpy()[0, :2], int(tf.reduce_sum(tf.cast(labels >= 0.0, tf.int32)[0]))
      (array([0, 2], dtype=int32), 4)
    """
    sampled = _arguments.integer("negatives", negatives, least=1)
    orders = _checked_orders(interactions, batch_size, seed, num_epochs, first_epoch)

    def batches() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        for random, users in orders():
            rows = interactions.weighted[users]
            relevant = np.unique(rows.indices)
            items, offsets = sampled_items(relevant, interactions.num_items, sampled, random)
            labels = np.tile(np.where(items < 0, np.float32(-1.0), np.float32(0.0)), [len(users), 1])
            labels[:, : len(relevant)] = rows[:, relevant].toarray()
            inputs = {"users": users, "items": np.tile(np.maximum(items, 0), [len(users), 1])}
            yield inputs | {"offsets": np.tile(offsets, [len(users), 1])}, labels

    integers, numbers = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.float32)
    inputs = {"users": tf.TensorSpec([None], tf.int32), "items": integers, "offsets": numbers}
    return dataset_of(batches, (inputs, numbers)).prefetch(2)


def sampled_items(
    relevant: np.ndarray, num_items: int, negatives: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Returns relevant items, padding with -1 and sampled others, int32, and the offsets of their scores."""
    others = np.delete(np.arange(num_items), relevant)
    sampled = random.choice(others, min(negatives, len(others)), replace=False)
    # Few different shapes, so that programs are compiled rarely.
    padding = np.full(-len(relevant) % _GRANULE, -1)
    items = np.concatenate([relevant, padding, sampled]).astype(np.int32)
    offsets = np.zeros(len(items), np.float32)
    if len(sampled):
        offsets[-len(sampled) :] = np.log(len(others) / len(sampled))
    return items, offsets


def expected_candidates(interactions: Interactions, negatives: int, batch_size: int) -> float:
    """Returns about how many candidates a batch of `candidate_batches` has, with padding."""
    shares = interactions.users_per_item / max(1, np.count_nonzero(interactions.items_per_user))
    relevant = (1.0 - (1.0 - shares) ** batch_size).sum()
    return float(np.ceil(relevant / _GRANULE) * _GRANULE + negatives)


def _checked_orders(
    interactions: Interactions, batch_size: int, seed: int, num_epochs: int, first_epoch: int
) -> Callable[[], Iterator[tuple[np.random.Generator, np.ndarray]]]:
    """Returns a function that yields the users of each batch, int32 [batch], with the random numbers of their epoch."""
    size = _arguments.integer("batch_size", batch_size, least=1)
    _arguments.integer("seed", seed, least=0)
    _arguments.integer("num_epochs", num_epochs, least=1)
    first = _arguments.integer("first_epoch", first_epoch, least=0)
    if interactions.num_interactions == 0:
        raise ValueError("`interactions` must have a user with items, got none.")

    def orders() -> Iterator[tuple[np.random.Generator, np.ndarray]]:
        users = np.flatnonzero(interactions.items_per_user).astype(np.int32)
        for epoch in range(first, first + num_epochs):
            random = np.random.default_rng([seed, epoch])
            order = random.permutation(users)
            for start in range(0, len(order), size):
                yield random, order[start : start + size]

    return orders


def dense_labels(items: tf.Tensor, num_items: int, weights: tf.Tensor | None = None) -> tf.Tensor:
    """Returns labels of the whole catalog, as losses take them.

    Args:
      items: Indices of the relevant items, [batch, longest], below 0 for padding.
      num_items: Number of items of the catalog.
      weights: The labels of the relevant items, [batch, longest], > 0. None: 1.

    Returns:
      float32 [batch, num_items]: the labels of relevant items, 0 for others.

    Example:
      >>> from tfr_smooth import recommendation
      >>> recommendation.dense_labels([[0, 2], [1, -1]], num_items=3).numpy().tolist()
      [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    items = tf.convert_to_tensor(items)
    # All padding goes to a column before the first item: static shapes, which XLA needs.
    columns = tf.maximum(items + 1, 0)
    rows = tf.broadcast_to(tf.range(tf.shape(items)[0], dtype=items.dtype)[:, tf.newaxis], tf.shape(items))
    labels = tf.zeros([tf.shape(items)[0], num_items + 1])
    weights = tf.ones_like(items, tf.float32) if weights is None else weights
    labels = tf.tensor_scatter_nd_max(labels, tf.stack([rows, columns], axis=-1), weights)
    return labels[:, 1:]


class SequenceBatches:
    """The sequences of all users as batches of rows; each position of a row predicts an item.

    A user with n items has n positions: the first one predicts the first item from an empty history, and the others
    follow an item and predict the next one. Sequences longer than a row are cut into windows from their end, so that
    all items are predicted, and the last window has what serving sees. Windows are packed into rows, largest first,
    each into the fullest row with room. The number of rows depends on the lengths only: it is equal in all epochs.

    Args:
      interactions: The interactions, whose events have an order.
      length: Positions per row, >= 1.
      batch_size: Rows per batch, >= 1.
      negatives: Number of sampled items per batch; None for the whole catalog. See `candidate_batches`.
      seed: Seed of the order of windows and rows, and of the sample.

    Attributes:
      steps: Batches per epoch.

    Time O(events + windows * length) per epoch, on another thread than the training.
    """

    def __init__(
        self, interactions: Interactions, *, length: int, batch_size: int, negatives: int | None, seed: int
    ) -> None:
        self._items, self._weights, starts = interactions.sequences()
        self._num_items, self._length, self._batch_size = interactions.num_items, length, batch_size
        self._negatives, self._seed = negatives, seed
        counts = np.diff(starts)
        windows = -(-counts // length)
        # Windows of a user are numbered from the last one, which ends with the user's last item.
        number = np.arange(windows.sum()) - np.repeat(np.cumsum(windows) - windows, windows)
        ends = np.repeat(starts[1:], windows) - length * number
        begins = np.maximum(ends - length, np.repeat(starts[:-1], windows))
        self._begins, self._sizes = begins, ends - begins
        self._before = np.append(np.int32(-1), self._items[:-1])
        self._before[starts[:-1][counts > 0]] = -1
        self.steps = -(-len(self._packed(np.arange(len(ends)))) // batch_size)

    def dataset(self, num_epochs: int, first_epoch: int) -> tf.data.Dataset:
        """Creates the dataset of batches of some epochs.

        Args:
          num_epochs: Number of epochs, >= 1.
          first_epoch: Index of the first epoch, >= 0, so that a resumed training sees the same batches.

        Returns:
          A dataset of (inputs, items). Inputs are a dictionary of "items", int32 [batch, length], the item before each
          position, or -1; "segments", int32 [batch, length], equal for the positions of one window, or -1 for padding;
          "weights", float32 [batch, length], of the items to predict; and for sampled items "candidates", int32
          [batch, candidates], -1 for padding, and "offsets", float32 [batch, candidates], the same in each row. The
          others are the items to predict, int32 [batch, length]: indices, or places among the candidates; -1 for
          padding.
        """
        integers, numbers = tf.TensorSpec([None, self._length], tf.int32), tf.TensorSpec([None, self._length])
        inputs = {"items": integers, "segments": integers, "weights": numbers}
        if self._negatives is not None:
            inputs |= {"candidates": tf.TensorSpec([None, None], tf.int32), "offsets": tf.TensorSpec([None, None])}

        def batches() -> Iterator[Any]:
            for epoch in range(first_epoch, first_epoch + num_epochs):
                yield from self._epoch(np.random.default_rng([self._seed, epoch]))

        return dataset_of(batches, (inputs, integers)).prefetch(2)

    def _epoch(self, random: np.random.Generator) -> Iterator[Any]:
        packed = self._packed(random.permutation(len(self._sizes)))
        random.shuffle(packed)
        for first in range(0, len(packed), self._batch_size):
            rows = packed[first : first + self._batch_size]
            windows = np.array([window for row in rows for window in row])
            sizes = self._sizes[windows]
            segments = np.concatenate([np.arange(len(row)) for row in rows])
            # The places in the batch and among the events.
            row = np.repeat(np.arange(len(rows)), [self._sizes[row].sum() for row in rows])
            within = np.arange(len(row)) - np.searchsorted(row, row)
            event = np.arange(len(row)) + np.repeat(self._begins[windows] - (np.cumsum(sizes) - sizes), sizes)
            shape = len(rows), self._length
            inputs = {"items": np.full(shape, -1, np.int32), "segments": np.full(shape, -1, np.int32)}
            inputs["weights"] = np.zeros(shape, np.float32)
            following = np.full(shape, -1, np.int32)
            inputs["items"][row, within] = self._before[event]
            inputs["segments"][row, within] = np.repeat(segments, sizes)
            inputs["weights"][row, within] = self._weights[event]
            following[row, within] = self._items[event]
            if self._negatives is not None:
                relevant = np.unique(self._items[event])
                candidates, offsets = sampled_items(relevant, self._num_items, self._negatives, random)
                following[row, within] = np.searchsorted(relevant, self._items[event])
                tiled = {"candidates": candidates, "offsets": offsets}
                inputs |= {name: np.tile(values, [len(rows), 1]) for name, values in tiled.items()}
            yield inputs, following

    def _packed(self, order: np.ndarray) -> list[list[int]]:
        """Returns the windows of each row; windows of equal size are in the given order."""
        order = order[np.argsort(-self._sizes[order], kind="stable")]
        rows: list[list[int]] = []
        with_space: list[list[int]] = [[] for _ in range(self._length + 1)]  # the rows by their space
        for window, size in zip(order.tolist(), self._sizes[order].tolist(), strict=True):
            space = next(itertools.chain((room for room in range(size, self._length) if with_space[room]), [0]))
            if space:
                row = with_space[space].pop()
            else:
                row, space = len(rows), self._length
                rows.append([])
            rows[row].append(window)
            with_space[space - size].append(row)
        return rows
