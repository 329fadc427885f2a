"""Reciprocal rank."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.measures.measure import BinaryMeasure
from tfr_smooth.rankings import Ranking


@_serialization.register
@dataclasses.dataclass(frozen=True)
class ReciprocalRank(BinaryMeasure):
    r"""RR@K of each list: the reciprocal rank of the first relevant document, 0 if it is not in the first K.

    $$\mathrm{RR@}K = \sum_{r=1}^K \frac{1}{r} \, y_r \prod_{l<r} (1 - y_l)$$

    where $y_r$ is 1 if the document at rank r is relevant (label >= 1), or $\sum_j rel_j I^r_j$ under a smooth ranking
    (at most 1). Position-based rankings use the sum over documents,
    $\sum_j \frac{rel_j}{\pi_j} \prod_i (1 - rel_i A_{ji})$, where $A_{ji}$ is the degree to which document i precedes
    document j; each term is weighted by the degree to which j is within the first K. The mean over lists is MRR
    (trec_eval's `recip_rank`).

    Args:
      topn: The cutoff K, >= 1; None for the whole list.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time O(K log K), memory O(K) per list in addition to the ranking; O(N^2) under a position-based ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> reciprocal_rank = measures.ReciprocalRank()
      >>> print(reciprocal_rank(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy())
      [0.5]
    """

    topn: int | None = None

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        return reciprocal_rank(self.relevance(labels), scores, mask, ranking, self.topn)


def reciprocal_rank(
    relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking, topn: int | None
) -> tf.Tensor:
    """Returns the expected reciprocal of the rank at which a document stops the user, [batch].

    A document does so with the probability `relevance`, [batch, list], unless an earlier one has.
    """
    # A smooth ranking may place a document at more than one rank.
    steps = ranking.steps(scores, relevance, mask, topn).clipped()
    return tf.reduce_sum(steps.within * steps.relevance / steps.ranks * steps.none_before(), axis=1)
