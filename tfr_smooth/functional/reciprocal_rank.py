"""Reciprocal rank and expected reciprocal rank."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.metric import RankingMetric, binary
from tfr_smooth.ops import Ranking
from tfr_smooth.ops.gains import exponential_gain


@dataclasses.dataclass(frozen=True)
class ReciprocalRank(RankingMetric):
    r"""RR@K of each list: the reciprocal rank of the first relevant document, 0 if it is not in the first K.

    $$\mathrm{RR@}K = \sum_{r=1}^K \frac{1}{r} \, y_r \prod_{l<r} (1 - y_l)$$

    where $y_r$ is 1 if the document at rank r is relevant (label >= 1), or $\sum_j rel_j I^r_j$ under a smooth ranking
    (at most 1). Position-based rankings use the sum over documents,
    $\sum_j \frac{rel_j}{\pi_j} \prod_i (1 - rel_i A_{ji})$, where $A_{ji}$ is the degree to which document i precedes
    document j; each term is weighted by the degree to which j is within the first K. The mean over lists is MRR
    (trec_eval's `recip_rank`).

    Args:
      topn: The cutoff K, >= 1; None for the whole list.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time O(K log K), memory O(K) per list in addition to the ranking; O(N^2) under a position-based ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> reciprocal_rank = functional.ReciprocalRank()
      >>> print(reciprocal_rank(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy())
      [0.5]
    """

    topn: int | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "topn", _arguments.topn(self.topn))

    def relevance(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns 1 for labels >= 1, else 0."""
        return binary(labels)

    def compute(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        # A smooth ranking may place a document at more than one rank.
        steps = ranking.steps(scores, relevance, mask, self.topn).clipped()
        return tf.reduce_sum(steps.within * steps.relevance / steps.ranks * steps.none_before(), axis=1)


@dataclasses.dataclass(frozen=True)
class ExpectedReciprocalRank(ReciprocalRank):
    r"""ERR@K of each list: the expected reciprocal of the rank at which a user is satisfied.

    $$\mathrm{ERR@}K = \sum_{r=1}^K \frac{1}{r} \, R_r \prod_{l<r} (1 - R_l), \qquad R = \frac{2^y - 1}{2^{y_{max}}}$$

    (Chapelle, Metzler, Zhang, Grinspan, "Expected Reciprocal Rank for Graded Relevance", CIKM 2009.)
    Under a smooth ranking $R_r$ is $\sum_j R_j I^r_j$ (at most 1). Under a position-based ranking the sum is over
    documents, as in `ReciprocalRank`.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      max_grade: The highest label of the data set, > 0; higher labels are clipped to it. 4 for MSLR-WEB30K and Yahoo's
        data, 2 for LETOR 4.0.

    Raises:
      ValueError: If an argument is out of range.

    Time O(K log K), memory O(K) per list in addition to the ranking; O(N^2) under a position-based ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> err = functional.ExpectedReciprocalRank(max_grade=2)
      >>> print(err(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.3958]
    """

    max_grade: float = 4.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        object.__setattr__(self, "max_grade", _arguments.real("max_grade", self.max_grade, above=0.0))

    def relevance(self, labels: tf.Tensor) -> tf.Tensor:
        r"""Returns $(2^y - 1) / 2^{y_{max}}$."""
        highest = tf.constant(self.max_grade, labels.dtype)
        return exponential_gain(tf.minimum(labels, highest), highest)
