"""Average precision."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.measures.measure import BinaryMeasure
from tfr_smooth.rankings import Ranking


@_serialization.register
@dataclasses.dataclass(frozen=True)
class AveragePrecision(BinaryMeasure):
    r"""AP@K of each list: $\mathrm{AP@}K = \frac{1}{R} \sum_{r=1}^K y_r \, \mathrm{P@}r$.

    $y_r$ is 1 if the document at rank r is relevant (label >= 1), or $\sum_j rel_j I^r_j$ under a smooth ranking; R
    is the number of relevant documents in the list (Eq. 2 and 11 of arXiv:2105.00942, for K = N). As in trec_eval, the
    divisor is R even if it is larger than K. Under a position-based ranking the sum is over documents,
    $\frac{1}{R} \sum_j \frac{rel_j}{\pi_j} (1 + \sum_i rel_i A_{ji})$, where $A_{ji}$ is the degree to which document i
    precedes document j (Qin, Liu, Li 2010); each term is weighted by the degree to which j is within the first K.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time and memory O(K) per list in addition to the ranking; O(N^2) under a position-based ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> average_precision = measures.AveragePrecision()
      >>> print(average_precision(tf.constant([[1.0, 0.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.8333]
    """

    topn: int | None = None

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        relevance = self.relevance(labels)
        steps = ranking.steps(scores, relevance, mask, self.topn)
        # A document's own relevance is 0 or 1 and therefore equals its square.
        precisions = (steps.relevance + steps.relevance_before()) / steps.ranks
        total = tf.reduce_sum(steps.within * steps.relevance * precisions, axis=1)
        return tf.math.divide_no_nan(total, tf.reduce_sum(relevance, axis=1))
