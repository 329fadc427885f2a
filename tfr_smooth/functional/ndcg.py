"""Normalised discounted cumulative gain."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.metric import DocumentRanking, GainRanking, Ranking, RankingMetric
from tfr_smooth.ops import best_order, discounts, gains, lists


@dataclasses.dataclass(frozen=True)
class NDCG(RankingMetric):
    r"""NDCG@K of each list.

    $$\mathrm{NDCG@}K = \frac{1}{N_K} \sum_{r=1}^K \frac{g(y_r)}{\log_2(r + 1)}, \qquad
      g(y) = 2^y - 1 \text{ or } y$$

    where $y_r$ is the relevance found at rank r (its label, or under a smooth ranking $\sum_j rel_j I^r_j$) and $N_K$
    the sum for the best order (Eq. 3 and 12 of arXiv:2105.00942). Rankings that know what each document's place is
    worth sum over documents, $\sum_j g(rel_j) D_j$ with $D_j$ from their `document_discounts`.

    Args:
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers, TF-Ranking), "linear" for y (trec_eval).
      discount: What a rank is worth: "log2" for the formula's, or another to train with (`ops.expected_discount`).

    Raises:
      ValueError: If an argument is not one of these.

    Time and memory O(K) a list on top of the ranking's, and O(N log N) for the best order.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> ndcg = functional.NDCG()
      >>> print(ndcg(tf.constant([[0.0, 1.0, -1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.6309]
    """

    topn: int | None = None
    gain: str = "exponential"
    discount: Any = "log2"

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "topn", _arguments.topn(self.topn))
        _arguments.choice("gain", self.gain, gains.GAINS)
        discounts.checked(self.discount)

    def _value(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        known, _, poison = lists.clean(tf.stop_gradient(relevance), mask)
        at_ranks = self._worth(lists.cut(known, self.topn), mask)
        ideal = poison[:, 0] * best_order.gained(known, at_ranks, self.gain)
        if isinstance(ranking, DocumentRanking):
            worth = ranking.document_discounts(scores, mask, self.discount, self.topn)
            gained = tf.reduce_sum(self._gains(relevance) * worth, axis=1)
        elif isinstance(ranking, GainRanking):
            gained = ranking.gained(scores, relevance, mask, at_ranks, self.gain)
        else:
            found = ranking.relevance(scores, relevance, mask, self.topn)
            gained = tf.reduce_sum(self._gains(found) * tf.cast(at_ranks, found.dtype), axis=1)
        return tf.math.divide_no_nan(gained, ideal)

    def _gains(self, relevance: tf.Tensor) -> tf.Tensor:
        return gains.gained(relevance, self.gain)

    def _worth(self, ranks: int | tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        count = tf.maximum(tf.reduce_sum(tf.cast(mask, tf.float64), axis=1, keepdims=True), 1.0)
        return discounts.at_ranks(discounts.checked(self.discount), ranks, count)
