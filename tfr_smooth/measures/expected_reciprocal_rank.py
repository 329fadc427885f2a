"""Expected reciprocal rank."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.measures.measure import Measure
from tfr_smooth.measures.reciprocal_rank import reciprocal_rank
from tfr_smooth.rankings import Ranking
from tfr_smooth.rankings.dcg import exponential_gain


@_serialization.register
@dataclasses.dataclass(frozen=True)
class ExpectedReciprocalRank(Measure):
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
      >>> from tfr_smooth import measures
      >>> err = measures.ExpectedReciprocalRank(max_grade=2)
      >>> print(err(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.3958]
    """

    topn: int | None = None
    max_grade: float = 4.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        object.__setattr__(self, "max_grade", _arguments.real("max_grade", self.max_grade, above=0.0))

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        highest = tf.constant(self.max_grade, labels.dtype)
        satisfied = exponential_gain(tf.minimum(labels, highest), highest)
        return reciprocal_rank(satisfied, scores, mask, ranking, self.topn)
