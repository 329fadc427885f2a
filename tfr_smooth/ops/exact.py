"""The exact ranking: documents by falling score, ties as trec_eval breaks them."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import lists


@dataclasses.dataclass(frozen=True)
class ExactRanking:
    """The sorted list: every smooth ranking's sharp limit, and what the exact metrics are read off.

    Tied documents stand in falling order of their position in the list. That is trec_eval's rule (falling document
    name) for documents named by their position.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> scores, relevance = tf.constant([[1.0, 3.0, 1.0]]), tf.constant([[5.0, 6.0, 7.0]])
      >>> print(ops.ExactRanking().relevance(scores, relevance).numpy())
      [[6. 7. 5.]]
    """

    def relevance(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor | None = None,
        topn: int | None = None,
    ) -> tf.Tensor:
        """The relevance of the document at each rank.

        Args:
          scores: [batch, list], any float type.
          relevance: [batch, list], what is found at a document.
          mask: [batch, list] bool, False for padding. None: all documents are real.
          topn: The number of ranks K; None or more than the list has: the list's length.

        Returns:
          [batch, K]; ranks beyond the number of real documents hold 0; NaN for a list with a NaN among its scores.

        Raises:
          ValueError: If `topn` is out of its range or the shapes do not match.

        Time O(N log N), memory O(N) a list.
        """
        topn = _arguments.topn(topn)
        scores, mask, poison = lists.clean(scores, mask)
        relevance = lists.aligned("relevance", relevance, scores, mask)
        ranks = lists.cut(scores, topn)
        order = descending_order(scores, mask, ranks)
        return poison * tf.gather(relevance, order, batch_dims=1)


def descending_order(scores: tf.Tensor, mask: tf.Tensor, ranks: int | tf.Tensor | None = None) -> tf.Tensor:
    """Returns positions by falling score; ties by falling position; padding last.

    Args:
      scores: [batch, list] floats without NaN.
      mask: [batch, list] bool, False for padding.
      ranks: How many of them, K; None: all.

    Returns:
      [batch, K] int32.
    """
    # Padding must come after every real document, also after one whose score is -inf. (And XLA sorts -0.0 below 0.0.)
    lowest = tf.constant(scores.dtype.min, scores.dtype)
    scores = lists.filled(tf.maximum(scores, lowest), tf.not_equal(scores, 0.0), 0.0)
    scores = lists.filled(scores, mask, float("-inf"))
    # Reversed: of two tied documents, top_k takes the earlier one first.
    length = tf.shape(scores)[1]
    backwards = tf.math.top_k(tf.reverse(scores, axis=[1]), length if ranks is None else ranks).indices
    return length - 1 - backwards


def unsorted(values: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] values, which are in sorted order, at the places of their documents.

    Args:
      values: [batch, list].
      order: [batch, list] int32, from `descending_order`.
    """
    shape = tf.shape(order)
    places = order + shape[1] * tf.range(shape[0])[:, tf.newaxis]
    # Quicker than finding the inverse order, which is a sort.
    scattered = tf.scatter_nd(tf.reshape(places, [-1, 1]), tf.reshape(values, [-1]), tf.size(places)[tf.newaxis])
    return tf.ensure_shape(tf.reshape(scattered, shape), values.shape)
