"""Average precision."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _about
from tfr_smooth.measures.measure import BinaryMeasure
from tfr_smooth.rankings import Ranking


@dataclasses.dataclass(frozen=True)
class AveragePrecision(BinaryMeasure):
    r"""AP of each list: $\mathrm{AP} = \frac{1}{R} \sum_{K=1}^N y_K \, \mathrm{P@}K$.

    $y_K$ is 1 if the document at rank K is relevant (label >= 1), or $\sum_j rel_j I^K_j$ under a smooth ranking; R
    is the number of relevant documents (Eq. 2 and 11 of arXiv:2105.00942). Under a position-based ranking the sum is
    over documents, $\frac{1}{R} \sum_j \frac{rel_j}{\pi_j} (1 + \sum_i rel_i A_{ji})$, where $A_{ji}$ is the degree to
    which document i precedes document j (Qin, Liu, Li 2010).

    Time and memory O(N) per list in addition to the ranking; O(N^2) under a position-based ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> average_precision = measures.AveragePrecision()
      >>> print(average_precision(tf.constant([[1.0, 0.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.8333]
    """

    about: ClassVar = _about.AboutMeasure(
        suffix="MAP",
        title="average precision",
        formula=r"\frac{1}{R} \sum_{K=1}^N y_K \frac{1}{K} \sum_{r=1}^K y_r",
        position_formula=r"\frac{1}{R} \sum_j \frac{rel_j}{\pi_j} \left(1 + \sum_i rel_i A_{ji}\right)",
        citation="Thonet et al. 2021, Eq. 2 and 11",
        exact="MeanAveragePrecisionMetric",
        example=0.5833,
    )

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        relevance = self.relevance(labels)
        steps = ranking.steps(scores, relevance, mask)
        # A document's own relevance is 0 or 1 and therefore equals its square.
        precisions = (steps.relevance + steps.relevance_before()) / steps.ranks
        total = tf.reduce_sum(steps.relevance * precisions, axis=1)
        return tf.math.divide_no_nan(total, tf.reduce_sum(relevance, axis=1))
