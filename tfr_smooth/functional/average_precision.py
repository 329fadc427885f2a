"""Average precision."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth.functional.metric import Ranking, RankingMetric, binary
from tfr_smooth.ops import PositionRanking, lists


@dataclasses.dataclass(frozen=True)
class AveragePrecision(RankingMetric):
    r"""AP of each list: $\mathrm{AP} = \frac{1}{R} \sum_{K=1}^N y_K \, \mathrm{P@}K$.

    $y_K$ is 1 if the document at rank K is relevant (label >= 1), or under a smooth ranking $\sum_j rel_j I^K_j$; R
    is the number of relevant documents (Eq. 2 and 11 of arXiv:2105.00942).

    Time and memory O(N) a list on top of the ranking's.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> average_precision = functional.AveragePrecision()
      >>> print(average_precision(tf.constant([[1.0, 0.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.8333]
    """

    def _relevance(self, labels: tf.Tensor) -> tf.Tensor:
        return binary(labels)

    def _value(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        relevant = tf.reduce_sum(relevance, axis=1)
        if isinstance(ranking, PositionRanking):
            positions = ranking.positions(scores, mask)
            ahead = tf.linalg.matvec(ranking.ahead(positions), relevance)
            at_document = (1.0 + ahead) / lists.filled(positions, mask, 1.0)
            return tf.math.divide_no_nan(tf.reduce_sum(relevance * at_document, axis=1), relevant)
        # In float64: a running sum over a long list loses digits.
        found = tf.cast(ranking.relevance(scores, relevance, mask, None), tf.float64)
        ranks = tf.cast(tf.range(1, tf.shape(found)[1] + 1), found.dtype)
        precisions = tf.cumsum(found, axis=1) / ranks
        total = tf.cast(tf.reduce_sum(found * precisions, axis=1), relevance.dtype)
        return tf.math.divide_no_nan(total, relevant)
