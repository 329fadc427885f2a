"""Weights of pairs of documents by the ranks of the two documents, and their means over orders of tied documents."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _padded

# From ranks, starting at 1, to discounts.
RankDiscount = Callable[[tf.Tensor], tf.Tensor]


def swap(discount: RankDiscount, ranks: tf.Tensor, topn: int | None) -> tf.Tensor:
    r"""Returns the change of the discounts if two documents are swapped, $|D(i) - D(j)|$; D is 0 beyond the cutoff.

    Args:
      discount: D.
      ranks: [list] floats, starting at 1.
      topn: The cutoff K, >= 1; None for the whole list.

    Returns:
      [list, list].
    """
    discounts = discount(ranks)
    if topn is not None:
        discounts = _padded.fill(discounts, ranks <= topn, 0.0)
    return tf.abs(tf.subtract(*_pairs(discounts)))


def distance(discount: RankDiscount, ranks: tf.Tensor) -> tf.Tensor:
    r"""Returns $|D(|i - j|) - D(|i - j| + 1)|$, [list, list], and 0 on the diagonal; arguments as in `swap`."""
    first, second = _pairs(ranks)
    apart = tf.maximum(tf.abs(first - second), 1.0)  # D is undefined at 0.
    return tf.where(tf.equal(first, second), tf.zeros_like(apart), tf.abs(discount(apart) - discount(apart + 1.0)))


def beyond_cutoff(discount: RankDiscount, ranks: tf.Tensor, topn: int | None) -> tf.Tensor:
    r"""Returns $1 / (1 - D(r))$ at ranks beyond the cutoff, where the whole gain is lost, else 1.

    Args:
      discount: D.
      ranks: Floats of any shape, starting at 1.
      topn: The cutoff K, >= 1; None for the whole list.

    Returns:
      Factors in the shape of the ranks.
    """
    if topn is None:
        return tf.ones_like(ranks)
    lifted = 1.0 / (1.0 - discount(tf.maximum(ranks, 2.0)))  # Undefined at rank 1.
    return _padded.fill(lifted, ranks > topn, 1.0)


def later(ranks: tf.Tensor) -> tf.Tensor:
    """Returns the larger rank of each pair, [list, list]."""
    return tf.maximum(*_pairs(ranks))


def cumulative(weights: tf.Tensor) -> tf.Tensor:
    """Returns the sums over the leading rows and columns, [list + 1, list + 1], of weights [list, list]."""
    return tf.pad(tf.cumsum(tf.cumsum(weights, axis=0), axis=1), [[1, 0], [1, 0]])


def over_orders_of_ties(sums: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the weights at the ranks of each pair of documents, averaged over all orders of tied documents.

    Tied documents share a block of ranks. Over all orders, each document has each rank equally often. So the average is
    the mean over a block of the weights, computed from four of their cumulative sums.

    Args:
      sums: The result of `cumulative` for weights that are 0 on the diagonal, float64.
      scores: [batch, list].
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch, list, list] weights >= 0.
    """
    mine, others = _padded.pairs(scores)
    real = mask[:, tf.newaxis, :]
    above = tf.reduce_sum(tf.cast(tf.logical_and(others > mine, real), tf.int32), axis=2)
    tied = tf.reduce_sum(tf.cast(tf.logical_and(tf.equal(others, mine), real), tf.int32), axis=2)
    rows = tf.gather(sums, above + tied) - tf.gather(sums, above)
    blocks = tf.gather(rows, above + tied, axis=2, batch_dims=1) - tf.gather(rows, above, axis=2, batch_dims=1)
    blocks = _padded.fill(blocks, blocks > 1e-9, 0.0)  # Less is rounding of the sums.
    # Two documents of the same block never have the same rank, so the diagonal (which is 0) is not counted there.
    same = tf.cast(tf.equal(above[:, :, tf.newaxis], above[:, tf.newaxis, :]), tf.int32)
    count = tied[:, :, tf.newaxis] * (tied[:, tf.newaxis, :] - same)
    return tf.cast(tf.math.divide_no_nan(blocks, tf.cast(count, blocks.dtype)), scores.dtype)


def _pairs(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return values[:, tf.newaxis], values[tf.newaxis, :]
