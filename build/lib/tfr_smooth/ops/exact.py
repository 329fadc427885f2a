"""The exact ranking: documents by falling score, ties as trec_eval breaks them."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth.ops import lists
from tfr_smooth.ops.ranking import Ranking


@dataclasses.dataclass(frozen=True)
class ExactRanking(Ranking):
    """The sorted list: the sharp limit of every smooth ranking, and what the exact metrics read.

    Tied documents are in falling order of their position in the list. That is trec_eval's rule (falling document
    name) for documents named by their position.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> scores, relevance = tf.constant([[1.0, 3.0, 1.0]]), tf.constant([[5.0, 6.0, 7.0]])
      >>> print(ops.ExactRanking().rank_relevance(scores, relevance, scores > 0.0).numpy())
      [[6. 7. 5.]]
    """

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns [batch, K, list]: 1 for the document at each rank, else 0."""
        ranks = lists.num_ranks(scores, topn)
        rows = tf.one_hot(descending_order(scores, mask, ranks), lists.length(scores), dtype=scores.dtype)
        return rows * tf.cast(lists.rank_mask(mask, ranks), scores.dtype)[:, :, tf.newaxis]

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        """Returns [batch, K]: the relevance of the document at each rank; 0 at ranks beyond the documents."""
        order = descending_order(scores, mask, lists.num_ranks(scores, topn))
        return tf.gather(relevance, order, batch_dims=1)


def descending_order(scores: tf.Tensor, mask: tf.Tensor, ranks: int | tf.Tensor | None = None) -> tf.Tensor:
    """Returns document indices by falling score; ties by falling index; padding last.

    Args:
      scores: [batch, list] finite floats.
      mask: [batch, list] bool, False for padding.
      ranks: How many of them, K; None for all.

    Returns:
      [batch, K] int32.
    """
    # XLA sorts -0.0 below 0.0, and drops an addition of 0.
    scores = lists.fill(scores, tf.not_equal(scores, 0.0), 0.0)
    scores = lists.fill(scores, mask, scores.dtype.min)
    # Reversed: of two tied documents, top_k takes the earlier one first.
    length = tf.shape(scores)[1]
    backwards = tf.math.top_k(tf.reverse(scores, axis=[1]), length if ranks is None else ranks).indices
    return length - 1 - backwards


def unsort(values: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] values, given in sorted order, in the order of their documents.

    Args:
      values: [batch, list].
      order: [batch, list] int32, from `descending_order`.
    """
    shape = tf.shape(order)
    places = order + shape[1] * tf.range(shape[0])[:, tf.newaxis]
    # Faster than the inverse order, which takes a sort.
    scattered = tf.scatter_nd(tf.reshape(places, [-1, 1]), tf.reshape(values, [-1]), tf.size(places)[tf.newaxis])
    return tf.ensure_shape(tf.reshape(scattered, shape), values.shape)
