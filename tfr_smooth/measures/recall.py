"""Recall at a cutoff."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.measures.measure import BinaryMeasure
from tfr_smooth.measures.precision import relevance_found
from tfr_smooth.rankings import Ranking


@_serialization.register
@dataclasses.dataclass(frozen=True)
class Recall(BinaryMeasure):
    r"""R@K of each list: $\mathrm{R@}K = \frac{1}{R} \sum_{r=1}^K y_r$.

    $y_r$ is 1 if the document at rank r is relevant (label >= 1), or $\sum_j rel_j I^r_j$ under a smooth ranking; R is
    the number of relevant documents in the list. Position-based rankings weight each document by the degree to which it
    is within the first K. With more than K relevant documents, R@K is below 1 for every order.

    Args:
      topn: The cutoff K, >= 1; None for the whole list, whose recall is 1.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time and memory O(K) per list in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> recall = measures.Recall(topn=2)
      >>> print(recall(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy())
      [0.5]
    """

    topn: int | None = 10

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        relevance = self.relevance(labels)
        found = relevance_found(relevance, scores, mask, ranking, self.topn)
        return tf.math.divide_no_nan(found, tf.reduce_sum(relevance, axis=1))
