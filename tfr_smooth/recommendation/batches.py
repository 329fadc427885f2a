"""Batches of users and their items, and dense labels of the catalog."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.recommendation.interactions import Interactions


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
      A dataset of (users, items): int32 [batch], and int32 [batch, longest] with -1 after the last item.

    Raises:
      ValueError: If an argument is invalid, or no user has items.

    Memory: one number per user, besides the interactions.

    Example:
      >>> from tfr_smooth import recommendation
      >>> interactions = recommendation.Interactions([[1, 0, 1], [0, 1, 0]])
      >>> for users, items in recommendation.user_batches(interactions, batch_size=2, shuffle=False):
      ...     print(users.numpy().tolist(), items.numpy().tolist())
      [0, 1] [[0, 2], [1, -1]]
    """
    size = _arguments.integer("batch_size", batch_size, least=1)
    shuffle = _arguments.boolean("shuffle", shuffle)
    seed = _arguments.integer("seed", seed, least=0)
    num_epochs = _arguments.integer_or_none("num_epochs", num_epochs, least=1)
    first = _arguments.integer("first_epoch", first_epoch, least=0)
    users = np.flatnonzero(interactions.items_per_user).astype(np.int32)
    if len(users) == 0:
        raise ValueError("`interactions` must have a user with items, got none.")

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for epoch in itertools.count(first) if num_epochs is None else range(first, first + num_epochs):
            order = np.random.default_rng([seed, epoch]).permutation(users) if shuffle else users
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                yield batch, interactions.padded(batch)

    signature = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, None], tf.int32)
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(2)


def dense_labels(items: tf.Tensor, num_items: int) -> tf.Tensor:
    """Returns labels of the whole catalog, as losses take them.

    Args:
      items: Indices of the relevant items, [batch, longest], below 0 for padding.
      num_items: Number of items of the catalog.

    Returns:
      float32 [batch, num_items]: 1 for relevant items, 0 for others.

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
    labels = tf.tensor_scatter_nd_max(labels, tf.stack([rows, columns], axis=-1), tf.ones_like(items, tf.float32))
    return labels[:, 1:]
