"""DCG, NDCG and the average relevance position, and measures of diversity, with a label per subtopic."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _arguments, _padded
from tfr_smooth.measures.measure import EXACT_ONLY, MEASURES, Measure
from tfr_smooth.rankings import ExactRanking, Ranking, dcg
from tfr_smooth.rankings.dcg import Discount, NDCGGain, TensorFunction, exponential_gain
from tfr_smooth.rankings.ranking import Gain

# The highest label for a DCG with the gain 2^y - 1.
_LARGEST = 100.0


@MEASURES.register("ndcg")
@dataclasses.dataclass(frozen=True)
class NDCG(Measure):
    r"""NDCG@K of each list.

    $$\mathrm{NDCG@}K = \frac{1}{N_K} \sum_{r=1}^K \frac{g(y_r)}{\log_2(r + 1)}, \qquad
      g(y) = 2^y - 1 \text{ or } y$$

    where $y_r$ is the relevance at rank r (the label, or $\sum_j rel_j I^r_j$ under a smooth ranking) and $N_K$ is the
    sum for the ideal order (Eq. 3 and 12 of arXiv:2105.00942). Rankings with a discount per document use a sum over
    documents, $\sum_j g(rel_j) D_j$.

    With the exponential gain and distant labels, such as 0 and 128, NDCG computed from the relevance at each rank
    (SmoothI, NeuralSort, SoftSort) is about 0 with almost no gradient, unless the ranking is sharp: the gain of a mean
    of such labels is negligible compared to the gain of the largest label. This is a property of the formula, not
    rounding. Use `gain="linear"` in this case.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers, TF-Ranking), "linear" for y (trec_eval).
      discount: "log2" for the discount of the formula, or another discount for training (SoftRank, section 4.7) over
        ranks starting at 0: "linear" or `rankings.ShallowDiscount(alpha)`; a table D[0], D[1], .., with 0 beyond it; or
        a function from float64 ranks, which start at 0, to discounts.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(K) per list in addition to the ranking, and O(N log N) for the ideal order.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> ndcg = measures.NDCG()
      >>> print(ndcg(tf.constant([[0.0, 1.0, -1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.6309]
    """

    topn: int | None = None
    gain: str = "exponential"
    discount: Discount = "log2"

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.choice("gain", self.gain, dcg.GAINS)
        if not isinstance(discount := dcg.checked_discount(self.discount), dcg.ShallowDiscount):
            object.__setattr__(self, "discount", discount)  # a table as a tuple

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        gain = NDCGGain.of(self.gain, labels)
        gained = ranking.discounted_gain(scores, labels, mask, discount=self.discount, topn=self.topn, gain=gain)
        return tf.math.divide_no_nan(gained, ideal_dcg(labels, mask, self.topn, self.discount, gain))


def ideal_dcg(
    relevance: tf.Tensor, mask: tf.Tensor, topn: int | None, discount: Discount = "log2", gain: Gain | None = None
) -> tf.Tensor:
    r"""Returns the discounted cumulative gain of documents in descending order of relevance.

    Args:
      relevance: [batch, list], >= 0; 0 at padding.
      mask: [batch, list] bool, False for padding.
      topn: The cutoff K, >= 1; None for the whole list.
      discount: The discount; see `NDCG`.
      gain: The gain, an elementwise function of relevance. None uses $2^y - 1$.

    Returns:
      [batch].

    Raises:
      ValueError: If `discount` is invalid.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> relevance = tf.constant([[0.0, 1.0, 2.0]])
      >>> print(measures.ideal_dcg(relevance, relevance >= 0.0, topn=2).numpy().round(4))
      [3.6309]
    """
    relevance, gain = tf.stop_gradient(relevance), gain or NDCGGain.of("exponential", relevance)
    at_ranks = dcg.discounts_at_ranks(discount, _padded.num_ranks(relevance, topn), mask)
    highest = tf.math.top_k(relevance, _padded.length(at_ranks)).values
    return tf.reduce_sum(gain(highest) * tf.cast(at_ranks, relevance.dtype), axis=1)


@EXACT_ONLY.register("dcg")
@dataclasses.dataclass(frozen=True)
class DCG(Measure):
    r"""DCG@K of each list, without `NDCG`'s division by the value of the ideal order.

    $$\mathrm{DCG@}K = \sum_{r=1}^K g(y_r) \, D(r)$$

    where $y_r$ is the label of the document at rank r.

    To save models with functions of your own, register them with `tf.keras.utils.register_keras_serializable`.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain_fn: The gain g, an elementwise function of labels. None for $2^y - 1$, for labels up to 100.
      rank_discount_fn: The discount D, an elementwise function of float32 ranks, which start at 1. None for
        $1 / \log_2(r + 1)$.

    Raises:
      ValueError: If an argument is out of range; in a call, if a label is above 100 without `gain_fn` (in a graph:
        `tf.errors.InvalidArgumentError`, which XLA leaves out).

    Time and memory O(K) per list in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels, scores = tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])
      >>> print(measures.DCG()(labels, scores).numpy().round(4))
      [2.3928]
      >>> reciprocal = measures.DCG(gain_fn=tf.identity, rank_discount_fn=tf.math.reciprocal)
      >>> print(reciprocal(labels, scores).numpy().round(4))
      [1.3333]
    """

    topn: int | None = None
    gain_fn: TensorFunction | None = None
    rank_discount_fn: TensorFunction | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.function("gain_fn", self.gain_fn, optional=True)
        _arguments.function("rank_discount_fn", self.rank_discount_fn, optional=True)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        gains = tf.cast(self.gain_fn(labels), labels.dtype) if self.gain_fn else exponential_gain(_small(labels))
        return ranking.discounted_gain(
            scores,
            _padded.fill(gains, mask, 0.0),  # The gain of the label 0 may be another number.
            mask,
            discount=discount_of(self.rank_discount_fn),
            topn=self.topn,
            gain=tf.identity,
        )


def _small(labels: tf.Tensor) -> tf.Tensor:
    """Returns the labels; raises an error if a sum of gains 2^y may exceed the largest float32."""
    expected = f"`labels` must be at most {_LARGEST:g} for the gain 2^y - 1; use `gain_fn` for other labels"
    try:
        check = tf.debugging.assert_less_equal(labels, tf.constant(_LARGEST, labels.dtype), expected)
    except tf.errors.InvalidArgumentError:
        raise ValueError(f"{expected}, got {tf.reduce_max(labels).numpy():g}.") from None
    with tf.control_dependencies([] if check is None else [check]):
        return tf.identity(labels)


def discount_of(rank_discount_fn: TensorFunction | None) -> Discount:
    """Returns the discount of a function of ranks that start at 1; None for NDCG's."""
    if rank_discount_fn is None:
        return "log2"
    return lambda ranks: rank_discount_fn(tf.cast(ranks + 1.0, tf.float32))


@EXACT_ONLY.register("arp")
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


@dataclasses.dataclass(frozen=True)
class SubtopicMeasure(Measure):
    """Base class of measures of diversity: labels are [batch, list, subtopics], and labels >= 1 are relevant.

    A label below 0 marks a subtopic that the list does not have, and a document with only such labels is padding.
    Labels [batch, list] are those of one subtopic. The only ranking is `rankings.ExactRanking()`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels = tf.constant([[[1.0, 0.0], [0.0, 0.0], [-1.0, -1.0]]])
      >>> print(measures.AlphaDCG().is_relevant(labels).numpy())
      [[ True False False]]
    """

    def clean(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> _padded.Batch:
        """Returns clean lists, with labels [batch, list, subtopics]."""
        return _padded.clean_subtopics(labels, scores, mask)

    def is_relevant(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list] bool: True for documents that are relevant to a subtopic."""
        return tf.reduce_any(labels >= 1.0, axis=2)

    def list_weights(self, sample_weight: tf.Tensor | float | None, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weight of each list, [batch], where the label of a document is its highest label."""
        return _padded.list_weights(sample_weight, tf.reduce_max(labels, axis=2), mask)

    def at_ranks(
        self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking, topn: int | None
    ) -> tf.Tensor:
        """Returns the labels of the document at each rank, [batch, K, subtopics]."""
        return _arguments.instance("ranking", ranking, ExactRanking).rank_relevance(scores, labels, mask, topn)


@EXACT_ONLY.register("alpha_dcg")
@dataclasses.dataclass(frozen=True)
class AlphaDCG(SubtopicMeasure):
    r"""Alpha-DCG@K of each list: DCG whose gain falls with each earlier document on the same subtopic.

    $$\sum_{r=1}^K D(r) \sum_t y_{rt} \, (1 - \alpha)^{\sum_{l<r} y_{lt}}$$

    where $y_{rt}$ is the label of the document at rank r for subtopic t (Clarke et al., "Novelty and Diversity in
    Information Retrieval Evaluation", SIGIR 2008).

    To save models with a function of your own, register it with `tf.keras.utils.register_keras_serializable`.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      alpha: The reduction of the gain by each earlier document, in [0, 1]; 0 counts all documents fully.
      rank_discount_fn: The discount D, an elementwise function of float32 ranks, which start at 1. None for
        $1 / \log_2(r + 1)$.
      seed: Has no effect, since ties are not in random order as in TF-Ranking.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(K S) per list with S subtopics, in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels = tf.constant([[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]])
      >>> print(measures.AlphaDCG()(labels, tf.constant([[3.0, 1.0, 2.0]])).numpy().round(4))
      [2.1964]
    """

    topn: int | None = None
    alpha: float = 0.5
    rank_discount_fn: dcg.TensorFunction | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        object.__setattr__(self, "alpha", _arguments.real("alpha", self.alpha, least=0.0, most=1.0))
        _arguments.function("rank_discount_fn", self.rank_discount_fn, optional=True)
        object.__setattr__(self, "seed", _arguments.integer_or_none("seed", self.seed, least=0))

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        found = self.at_ranks(labels, scores, mask, ranking, self.topn)
        seen = tf.cumsum(found, axis=1, exclusive=True)
        gains = tf.reduce_sum(found * tf.pow(tf.constant(1.0 - self.alpha, found.dtype), seen), axis=2)
        discounts = dcg.discounts_at_ranks(discount_of(self.rank_discount_fn), tf.shape(gains)[1], mask)
        return tf.reduce_sum(gains * tf.cast(discounts, gains.dtype), axis=1)


@EXACT_ONLY.register("precision_ia")
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
        cutoff = _padded.count(mask, found.dtype)[:, 0] if self.topn is None else self.topn
        return tf.math.divide_no_nan(found, subtopics * cutoff)
