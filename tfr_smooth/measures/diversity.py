"""Measures of diversity, for labels by subtopic: alpha-DCG and intent-aware precision."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _padded
from tfr_smooth.measures.cumulative_gain import discount_of
from tfr_smooth.measures.measure import EXACT_ONLY, Measure
from tfr_smooth.rankings import ExactRanking, Ranking, dcg


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
