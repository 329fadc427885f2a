"""The exact ranking: documents by descending score, with trec_eval's order of ties."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _padded, _serialization
from tfr_smooth.rankings.ranking import Ranking


@_serialization.register
@dataclasses.dataclass(frozen=True)
class ExactRanking(Ranking):
    """The exact ranking by descending score: the limit of every smooth ranking, used by the exact metrics.

    Tied documents are ranked by descending index in the list. This is trec_eval's rule (descending document name) for
    documents named by their index.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores, relevance = tf.constant([[1.0, 3.0, 1.0]]), tf.constant([[5.0, 6.0, 7.0]])
      >>> print(rankings.ExactRanking().rank_relevance(scores, relevance, scores > 0.0).numpy())
      [[6. 7. 5.]]
    """

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns the permutation matrix of the ranking: 1 for the document at each rank, else 0.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        ranks = _padded.num_ranks(scores, topn)
        rows = tf.one_hot(descending_order(scores, mask, ranks), _padded.length(scores), dtype=scores.dtype)
        return rows * tf.cast(_padded.rank_mask(mask, ranks), scores.dtype)[:, :, tf.newaxis]

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        """Returns the relevance of the document at each rank.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K]; 0 at ranks beyond the real documents.
        """
        order = descending_order(scores, mask, _padded.num_ranks(scores, topn))
        return tf.gather(relevance, order, batch_dims=1)


def descending_order(scores: tf.Tensor, mask: tf.Tensor, ranks: int | tf.Tensor | None = None) -> tf.Tensor:
    """Returns document indices by descending score; ties by descending index; padding last.

    Args:
      scores: [batch, list] finite floats.
      mask: [batch, list] bool, False for padding.
      ranks: The number of indices K; None for all.

    Returns:
      [batch, K] int32.
    """
    # XLA sorts -0.0 below 0.0, and optimizes away an addition of 0.
    scores = _padded.fill(scores, tf.not_equal(scores, 0.0), 0.0)
    scores = _padded.fill(scores, mask, scores.dtype.min)
    # Reversed: top_k ranks the earlier of two tied documents first.
    length = tf.shape(scores)[1]
    backwards = tf.math.top_k(tf.reverse(scores, axis=[1]), length if ranks is None else ranks).indices
    return length - 1 - backwards


def average_ranks(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the ranks by descending value, from 1 on; tied documents share the mean of their ranks.

    Args:
      values: [batch, list] finite floats.
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch, list], in the type of the values, without a gradient; 0 at padding.
    """
    order = descending_order(values, mask)
    falling = tf.gather(values, order, batch_dims=1)
    # `tf.vectorized_map` pads booleans with False whatever the constant is.
    starts = tf.concat([tf.ones_like(mask[:, :1]), tf.not_equal(falling[:, 1:], falling[:, :-1])], axis=1)
    places = tf.gather(mask, order, batch_dims=1)  # padding comes last
    starts = tf.logical_or(starts, tf.logical_not(places))
    ranks = tf.broadcast_to(tf.range(1, tf.shape(values)[1] + 1), tf.shape(values))
    means = _padded.Neighbors(starts).mean(tf.cast(ranks, tf.float64))
    return unsort(tf.cast(_padded.fill(means, places, 0.0), values.dtype), order)


def unsort(values: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    """Maps values from sorted order to the original order of the documents.

    Args:
      values: [batch, list], in sorted order.
      order: [batch, list] int32, from `descending_order`.

    Returns:
      [batch, list].
    """
    shape = tf.shape(order)
    places = order + shape[1] * tf.range(shape[0])[:, tf.newaxis]
    # Faster than inverting the order, which needs a sort.
    scattered = tf.scatter_nd(tf.reshape(places, [-1, 1]), tf.reshape(values, [-1]), tf.size(places)[tf.newaxis])
    return tf.ensure_shape(tf.reshape(scattered, shape), values.shape)
