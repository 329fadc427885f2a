"""The LambdaLoss framework: pairwise logistic losses weighted by what a pair's order means to a metric."""

from __future__ import annotations

import math

import tensorflow as tf

from tfr_smooth import _arguments, ops
from tfr_smooth.functional import rank_net
from tfr_smooth.functional.metric import binary
from tfr_smooth.ops import lists
from tfr_smooth.ops.discounts import log2_discount
from tfr_smooth.ops.gains import exponential_gain

METRICS = ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2++", "lambda_rank", "precision")


def lambda_loss(
    labels: tf.Tensor,
    scores: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    metric: str = "ndcg_loss2++",
    sigma: float = 1.0,
    mu: float = 10.0,
    topn: int | None = None,
) -> tf.Tensor:
    r"""LambdaLoss of each list: $\sum_{ij} w_{ij} \log_2(1 + e^{-\sigma (s_i - s_j)})$.

    The weights are constants to the gradient. `losses.LambdaLoss` states them for each metric.

    Args:
      labels: [batch, list], float or int, >= 0; a negative label is padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for (further) padding.
      metric: One of `METRICS`.
      sigma: Slope of the logistic function, > 0.
      mu: Weight of NDCG-Loss2 beside LambdaRank in "ndcg_loss2++", > 0.
      topn: The metric's cut-off; None for the whole list. "precision" needs one.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for a list without a pair.

    Raises:
      ValueError: If the shapes do not match, or "precision" has no cut-off.

    Time and memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.functional.lambda_loss import lambda_loss
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])
      >>> print(lambda_loss(labels, scores, metric="lambda_rank").numpy().round(4))
      [0.3691]
    """
    labels, scores, mask, poison = rank_net.clean(labels, scores, mask)
    labels, topn = relevance(labels, metric), cut_off(metric, topn)
    discounts = _over_orders_of_ties(_rank_discounts(tf.shape(scores)[1], metric, mu, topn), scores, mask)
    if metric == "ndcg_loss1":
        gains = _normalised_gains(labels, mask, topn)[:, :, tf.newaxis]
        others = tf.logical_not(tf.eye(tf.shape(scores)[1], dtype=tf.bool))
        pairs = tf.logical_and(rank_net.real_pairs(mask), others)
    else:
        gains = labels if metric == "precision" else _normalised_gains(labels, mask, topn)
        gains = tf.abs(gains[:, :, tf.newaxis] - gains[:, tf.newaxis, :])
        pairs = rank_net.preferences(labels, mask)
    weights = lists.filled(gains * discounts, pairs, 0.0)
    return poison * rank_net.logistic(scores, tf.stop_gradient(weights), sigma) / math.log(2.0)


def cut_off(metric: str, topn: int | None) -> int | None:
    """Returns `topn` if it is one for the metric.

    Raises:
      ValueError: If it is not an integer >= 1, or None where the metric has a meaning without one.
    """
    if metric == "precision" and topn is None:
        raise ValueError('`topn` must be an integer >= 1 for the metric "precision", got None.')
    return _arguments.topn(topn)


def relevance(labels: tf.Tensor, metric: str) -> tf.Tensor:
    """Returns the labels as the metric sees them: 0 or 1 for precision."""
    return binary(labels) if metric == "precision" else labels


def _normalised_gains(labels: tf.Tensor, mask: tf.Tensor, topn: int | None) -> tf.Tensor:
    """G_i = (2^(y_i) - 1) / maxDCG@K, [batch, list]."""
    gains = exponential_gain(labels)
    ideal = ops.ExactRanking().relevance(labels, gains, mask, topn)
    ranks = tf.cast(tf.range(1, tf.shape(ideal)[1] + 1), ideal.dtype)
    return tf.math.divide_no_nan(gains, tf.reduce_sum(ideal * _inverse_discount(ranks), axis=1, keepdims=True))


def _inverse_discount(ranks: tf.Tensor) -> tf.Tensor:
    """1 / D_r = 1 / log2(1 + r)."""
    return log2_discount(ranks - 1.0)


def _rank_discounts(length: tf.Tensor | int, metric: str, mu: float, topn: int | None) -> tf.Tensor:
    """The metric's weight of a pair of ranks but for the gains, [list, list]: 0 on the diagonal."""
    # float64, for the sums over blocks below.
    ranks = tf.cast(tf.range(1, length + 1), tf.float64)
    first, second = ranks[:, tf.newaxis], ranks[tf.newaxis, :]
    within = tf.ones_like(ranks) if topn is None else tf.cast(ranks <= topn, ranks.dtype)
    inverse = _inverse_discount(ranks)
    if metric == "precision":
        return tf.abs(within[:, tf.newaxis] - within[tf.newaxis, :]) / tf.cast(topn or length, ranks.dtype)

    def beyond(rank: tf.Tensor) -> tf.Tensor:
        # What lifts the weights below the cut-off, where a gain is lost whole: at rank 1 there is no such thing.
        lifted = 1.0 / (1.0 - _inverse_discount(tf.maximum(rank, 2.0)))
        return tf.ones_like(rank) if topn is None else lists.filled(lifted, rank > topn, 1.0)

    apart = tf.maximum(tf.abs(first - second), 1.0)
    loss2 = (_inverse_discount(apart) - _inverse_discount(apart + 1.0)) * beyond(tf.maximum(first, second))
    visible = within * inverse
    swap = tf.abs(visible[:, tf.newaxis] - visible[tf.newaxis, :])
    discounts = {
        "ndcg_loss1": tf.broadcast_to((inverse * beyond(ranks))[:, tf.newaxis], tf.shape(apart)),
        "ndcg_loss2": loss2,
        "ndcg_loss2++": swap + mu * loss2,
        "lambda_rank": swap,
    }[metric]
    return tf.where(tf.equal(first, second), tf.zeros_like(discounts), discounts)


def _over_orders_of_ties(discounts: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """`discounts` at the ranks of each pair of documents, [batch, list, list]; at ties its mean over their orders.

    Tied documents hold a block of ranks, of which each order gives every document each rank equally often: so the mean
    is that over a block of the matrix, and the differences of four running sums give it.
    """
    mine, others = scores[:, :, tf.newaxis], scores[:, tf.newaxis, :]
    real = mask[:, tf.newaxis, :]
    above = tf.reduce_sum(tf.cast(tf.logical_and(others > mine, real), tf.int32), axis=2)
    tied = tf.reduce_sum(tf.cast(tf.logical_and(tf.equal(others, mine), real), tf.int32), axis=2)
    sums = tf.pad(tf.cumsum(tf.cumsum(discounts, axis=0), axis=1), [[1, 0], [1, 0]])
    rows = tf.gather(sums, above + tied) - tf.gather(sums, above)
    blocks = tf.gather(rows, above + tied, axis=2, batch_dims=1) - tf.gather(rows, above, axis=2, batch_dims=1)
    blocks = lists.filled(blocks, blocks > 1e-9, 0.0)  # Less is rounding of the sums.
    # Two documents of one block never have the same rank: there the diagonal, which is 0, is not counted.
    same = tf.cast(tf.equal(above[:, :, tf.newaxis], above[:, tf.newaxis, :]), tf.int32)
    count = tied[:, :, tf.newaxis] * (tied[:, tf.newaxis, :] - same)
    return tf.cast(tf.math.divide_no_nan(blocks, tf.cast(count, blocks.dtype)), scores.dtype)
