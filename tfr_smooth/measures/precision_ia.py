"""Intent-aware precision at a cutoff."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _lists, _serialization
from tfr_smooth.measures.subtopics import SubtopicMeasure
from tfr_smooth.rankings import Ranking


@_serialization.register
@dataclasses.dataclass(frozen=True)
class PrecisionIA(SubtopicMeasure):
    r"""Intent-aware P@K of each list: the mean of P@K over the subtopics that have a relevant document.

    $$\mathrm{P\text{-}IA@}K = \frac{1}{T K} \sum_t \sum_{r=1}^K y_{rt}$$

    where $y_{rt}$ is 1 if the document at rank r is relevant to subtopic t (label >= 1), and T is the number of
    subtopics with a relevant document in the list (Clarke et al., "Overview of the TREC 2009 Web Track"; Agrawal et
    al., "Diversifying Search Results", WSDM 2009). As in `Precision`, the divisor is K even if the list is shorter.

    Args:
      topn: The cutoff K, >= 1; None for the number of real documents in the list.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time and memory O(K S) per list with S subtopics, in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels = tf.constant([[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]])
      >>> print(measures.PrecisionIA(topn=2)(labels, tf.constant([[3.0, 1.0, 2.0]])).numpy())
      [0.75]
    """

    topn: int | None = 10

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        relevance = tf.cast(labels >= 1.0, labels.dtype)
        found = tf.reduce_sum(self.at_ranks(relevance, scores, mask, ranking, self.topn), axis=[1, 2])
        subtopics = tf.reduce_sum(tf.reduce_max(relevance, axis=1), axis=1)
        cutoff = _lists.count(mask, found.dtype)[:, 0] if self.topn is None else self.topn
        return tf.math.divide_no_nan(found, subtopics * cutoff)
