"""Average relevance position."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.measures.measure import Measure
from tfr_smooth.rankings import Ranking


@_serialization.register
@dataclasses.dataclass(frozen=True)
class AverageRelevancePosition(Measure):
    r"""ARP of each list: the mean rank of its documents, weighted by label, $\frac{1}{\sum_r y_r} \sum_r r \, y_r$.

    Lower is better. $y_r$ is the label of the document at rank r. In the mean over lists, the weight of a list is
    multiplied by the sum of its labels, as in TF-Ranking: the mean is over all relevant documents of the data set.
    Lists without a relevant document therefore do not count.

    Time and memory O(N) per list in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> arp = measures.AverageRelevancePosition()
      >>> print(arp(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [2.3333]
    """

    lower_is_better: ClassVar[bool] = True

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        total = ranking.discounted_gain(scores, labels, mask, discount=lambda ranks: ranks + 1.0, gain=tf.identity)
        return tf.math.divide_no_nan(total, tf.reduce_sum(labels, axis=1))

    def list_weights(self, sample_weight: tf.Tensor | float | None, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weight of each list times the sum of its labels, [batch]."""
        return super().list_weights(sample_weight, labels, mask) * tf.reduce_sum(labels, axis=1)
