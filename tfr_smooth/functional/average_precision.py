"""Average precision."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth.functional.metric import RankingMetric, binary
from tfr_smooth.ops import Ranking


@dataclasses.dataclass(frozen=True)
class AveragePrecision(RankingMetric):
    r"""AP of each list: $\mathrm{AP} = \frac{1}{R} \sum_{K=1}^N y_K \, \mathrm{P@}K$.

    $y_K$ is 1 if the document at rank K is relevant (label >= 1), or $\sum_j rel_j I^K_j$ under a smooth ranking; R
    is the number of relevant documents (Eq. 2 and 11 of arXiv:2105.00942). Under a position-based ranking the sum is
    over documents, $\frac{1}{R} \sum_j \frac{rel_j}{\pi_j} (1 + \sum_i rel_i A_{ji})$, where $A_{ji}$ is the degree to
    which document i precedes document j (Qin, Liu, Li 2010).

    Time and memory O(N) per list in addition to the ranking; O(N^2) under a position-based ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> average_precision = functional.AveragePrecision()
      >>> print(average_precision(tf.constant([[1.0, 0.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.8333]
    """

    def relevance(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns 1 for labels >= 1, else 0."""
        return binary(labels)

    def compute(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        steps = ranking.steps(scores, relevance, mask)
        # A document's own relevance is 0 or 1 and therefore equals its square.
        precisions = (steps.relevance + steps.relevance_before()) / steps.ranks
        total = tf.reduce_sum(steps.relevance * precisions, axis=1)
        return tf.math.divide_no_nan(total, tf.reduce_sum(relevance, axis=1))
