"""Measures of the first K documents: precision, recall, hits, average precision and reciprocal ranks."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _padded
from tfr_smooth.measures.measure import EXACT_ONLY, MEASURES, BinaryMeasure, Measure
from tfr_smooth.rankings import Ranking
from tfr_smooth.rankings.dcg import NDCGGain, exponential_gain


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


@MEASURES.register("map")
@dataclasses.dataclass(frozen=True)
class AveragePrecision(BinaryMeasure):
    r"""AP@K of each list: $\mathrm{AP@}K = \frac{1}{R} \sum_{r=1}^K y_r \, \mathrm{P@}r$.

    $y_r$ is 1 if the document at rank r is relevant (label >= 1), or $\sum_j rel_j I^r_j$ under a smooth ranking; R
    is the number of relevant documents in the list (Eq. 2 and 11 of arXiv:2105.00942, for K = N). As in trec_eval, the
    divisor is R even if it is larger than K. Under a position-based ranking the sum is over documents,
    $\frac{1}{R} \sum_j \frac{rel_j}{\pi_j} (1 + \sum_i rel_i A_{ji})$, where $A_{ji}$ is the degree to which document i
    precedes document j (Qin, Liu, Li 2010); each term is weighted by the degree to which j is within the first K.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.

    Raises:
      ValueError: If `topn` is not an integer >= 1 or None.

    Time and memory O(K) per list in addition to the ranking; O(N^2) under a position-based ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> average_precision = measures.AveragePrecision()
      >>> print(average_precision(tf.constant([[1.0, 0.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.8333]
    """

    topn: int | None = None

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        relevance = self.relevance(labels)
        steps = ranking.steps(scores, relevance, mask, self.topn)
        # A document's own relevance is 0 or 1 and therefore equals its square.
        precisions = (steps.relevance + steps.relevance_before()) / steps.ranks
        total = tf.reduce_sum(steps.within * steps.relevance * precisions, axis=1)
        return tf.math.divide_no_nan(total, tf.reduce_sum(relevance, axis=1))


@MEASURES.register("mrr")
@dataclasses.dataclass(frozen=True)
class ReciprocalRank(BinaryMeasure):
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
      >>> from tfr_smooth import measures
      >>> reciprocal_rank = measures.ReciprocalRank()
      >>> print(reciprocal_rank(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy())
      [0.5]
    """

    topn: int | None = None

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        return reciprocal_rank(self.relevance(labels), scores, mask, ranking, self.topn)


def reciprocal_rank(
    relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking, topn: int | None
) -> tf.Tensor:
    """Returns the expected reciprocal of the rank at which a document stops the user, [batch].

    A document does so with the probability `relevance`, [batch, list], unless an earlier one has.
    """
    # A smooth ranking may place a document at more than one rank.
    steps = ranking.steps(scores, relevance, mask, topn).clipped()
    return tf.reduce_sum(steps.within * steps.relevance / steps.ranks * steps.none_before(), axis=1)


@MEASURES.register("err")
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
