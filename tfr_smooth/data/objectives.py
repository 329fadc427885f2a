"""Labels of several objectives, reduced to one label per list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments


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
      >>> lists = data.Lists.from_arrays([[0.1], [0.2], [0.3]], labels, ["a", "a", "b"])
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
