"""Hits at a cutoff: whether a relevant document is among the first."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.measures.measure import BinaryMeasure
from tfr_smooth.measures.precision import relevance_found
from tfr_smooth.rankings import Ranking


@_serialization.register
@dataclasses.dataclass(frozen=True)
class Hits(BinaryMeasure):
    r"""Hits@K of each list: $\min(1, \sum_{r=1}^K y_r)$, 1 if a relevant document is among the first K, else 0.

    $y_r$ is 1 if the document at rank r is relevant (label >= 1), else 0. The mean over lists is the hit rate, also
    called success (trec_eval's `success_K`).

    Args:
      topn: The cutoff K, >= 1; None for the whole list: whether the list has a relevant document.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time and memory O(K) per list in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels, scores = tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])
      >>> print(measures.Hits(topn=1)(labels, scores).numpy(), measures.Hits(topn=2)(labels, scores).numpy())
      [0.] [1.]
    """

    topn: int | None = 10

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        return tf.minimum(relevance_found(self.relevance(labels), scores, mask, ranking, self.topn), 1.0)
