"""Batches of users and their items, and dense labels of the catalog."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth._compiled import dataset_of
from tfr_smooth.recommendation.interactions import Interactions

# Numbers of candidates are rounded up to multiples of it.
_GRANULE = 512


def user_batches(
    interactions: Interactions,
    *,
    batch_size: int,
    shuffle: bool = True,
    seed: int = 0,
    num_epochs: int | None = 1,
    first_epoch: int = 0,
) -> tf.data.Dataset:
    """Creates a dataset of batches of users with their items, for training.

    Args:
      interactions: The interactions. Users without items are skipped.
      batch_size: Users per batch, >= 1. The last batch of an epoch may be smaller.
      shuffle: Whether to shuffle the users, differently in each epoch.
      seed: Seed of the order, >= 0.
      num_epochs: Number of epochs, >= 1. None repeats forever.
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
      >>> for users, items, _ in recommendation.user_batches(interactions, batch_size=2, shuffle=False):
      ...     print(users.numpy().tolist(), items.numpy().tolist())
      [0, 1] [[0, 2], [1, -1]]
    """
    shuffle = _arguments.boolean("shuffle", shuffle)
    orders = _checked_orders(interactions, batch_size, shuffle, seed, num_epochs, first_epoch)

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
    num_epochs: int | None = 1,
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
      num_epochs: Number of epochs, >= 1. None repeats forever.
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
    orders = _checked_orders(interactions, batch_size, True, seed, num_epochs, first_epoch)

    def batches() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        for random, users in orders():
            rows = interactions.weighted[users]
            relevant = np.unique(rows.indices)
            items, offsets = sampled_items(relevant, interactions.num_items, sampled, random)
            labels = np.tile(np.where(items < 0, np.float32(-1.0), np.float32(0.0)), [len(users), 1])
            labels[np.repeat(np.arange(len(users)), np.diff(rows.indptr)), np.searchsorted(relevant, rows.indices)] = (
                rows.data
            )
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


def _checked_orders(
    interactions: Interactions, batch_size: int, shuffle: bool, seed: int, num_epochs: int | None, first_epoch: int
) -> Callable[[], Iterator[tuple[np.random.Generator, np.ndarray]]]:
    """Returns a function that yields the users of each batch, int32 [batch], with the random numbers of their epoch."""
    size = _arguments.integer("batch_size", batch_size, least=1)
    _arguments.integer("seed", seed, least=0)
    _arguments.integer_or_none("num_epochs", num_epochs, least=1)
    first = _arguments.integer("first_epoch", first_epoch, least=0)
    if interactions.num_interactions == 0:
        raise ValueError("`interactions` must have a user with items, got none.")

    def orders() -> Iterator[tuple[np.random.Generator, np.ndarray]]:
        users = np.flatnonzero(interactions.items_per_user).astype(np.int32)
        for epoch in itertools.count(first) if num_epochs is None else range(first, first + num_epochs):
            random = np.random.default_rng([seed, epoch])
            order = random.permutation(users) if shuffle else users
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
