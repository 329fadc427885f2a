"""Discounted cumulative gain of novel subtopics."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.measures.dcg import discount_of
from tfr_smooth.measures.subtopics import SubtopicMeasure
from tfr_smooth.rankings import Ranking, dcg
from tfr_smooth.rankings.dcg import TensorFunction


@_serialization.register
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
    rank_discount_fn: TensorFunction | None = None
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
