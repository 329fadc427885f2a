"""Precision at a cut-off."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.metric import GainRanking, Ranking, RankingMetric, binary
from tfr_smooth.ops import PositionRanking, lists


@dataclasses.dataclass(frozen=True)
class Precision(RankingMetric):
    r"""P@K of each list: $\mathrm{P@}K = \frac{1}{K} \sum_{r=1}^K y_r$.

    $y_r$ is 1 if the document at rank r is relevant (label >= 1), or under a smooth ranking $\sum_j rel_j I^r_j$ (Eq.
    1 and 10 of arXiv:2105.00942). Rankings by positions count a document by how far it is `within` the first K. The
    sum is divided by K also where the list is shorter, as trec_eval does.

    Args:
      topn: The cut-off K; None for the number of real documents in the list.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time and memory O(K) a list on top of the ranking's.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> precision = functional.Precision(topn=2)
      >>> print(precision(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy())
      [0.5]
    """

    topn: int | None = 10

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "topn", _arguments.topn(self.topn))

    def _relevance(self, labels: tf.Tensor) -> tf.Tensor:
        return binary(labels)

    def _value(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        if isinstance(ranking, PositionRanking):
            found = relevance
            if self.topn is not None:
                found *= ranking.within(ranking.positions(scores, mask), self.topn)
            found = tf.reduce_sum(found, axis=1)
        elif isinstance(ranking, GainRanking):
            found = ranking.gained(scores, relevance, mask, tf.ones([1, lists.cut(scores, self.topn)]))
        else:
            found = tf.reduce_sum(ranking.relevance(scores, relevance, mask, self.topn), axis=1)
        depth = self.topn or tf.reduce_sum(tf.cast(mask, found.dtype), axis=1)
        return tf.math.divide_no_nan(found, tf.cast(depth, found.dtype))
