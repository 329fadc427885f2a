"""Measures of the first K documents: precision, recall and hits."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _padded
from tfr_smooth.measures.measure import EXACT_ONLY, MEASURES, BinaryMeasure
from tfr_smooth.rankings import Ranking
from tfr_smooth.rankings.dcg import NDCGGain


@MEASURES.register("precision")
@dataclasses.dataclass(frozen=True)
class Precision(BinaryMeasure):
    r"""P@K of each list: $\mathrm{P@}K = \frac{1}{K} \sum_{r=1}^K y_r$.

    $y_r$ is 1 if the document at rank r is relevant (label >= 1), or $\sum_j rel_j I^r_j$ under a smooth ranking (Eq.
    1 and 10 of arXiv:2105.00942). Position-based rankings weight each document by the degree to which it is within the
    first K. As in trec_eval, the divisor is K even if the list is shorter.

    Args:
      topn: The cutoff K, >= 1; None for the number of real documents in the list.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time and memory O(K) per list in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> precision = measures.Precision(topn=2)
      >>> print(precision(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy())
      [0.5]
    """

    topn: int | None = 10

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        found = relevance_found(self.relevance(labels), scores, mask, ranking, self.topn)
        return found / (_padded.count(mask, found.dtype)[:, 0] if self.topn is None else self.topn)


def relevance_found(
    relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking, topn: int | None
) -> tf.Tensor:
    """Returns the sum of the relevance of the first K documents, [batch], given that of each document."""
    gain = NDCGGain.of("linear", relevance)
    return ranking.discounted_gain(scores, relevance, mask, discount=tf.ones_like, topn=topn, gain=gain)


@MEASURES.register("recall")
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


@EXACT_ONLY.register("hits")
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
