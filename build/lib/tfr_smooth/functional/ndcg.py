"""Normalized discounted cumulative gain."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.metric import RankingMetric
from tfr_smooth.ops import Ranking, discounts, lists
from tfr_smooth.ops.discounts import Discount
from tfr_smooth.ops.gains import GAINS, Gain

# The highest label of lists whose ideal order is found without a sort.
_GRADES = 8.0
# So few ranks are sorted as quickly.
_FEW_RANKS = 32


@dataclasses.dataclass(frozen=True)
class NDCG(RankingMetric):
    r"""NDCG@K of each list.

    $$\mathrm{NDCG@}K = \frac{1}{N_K} \sum_{r=1}^K \frac{g(y_r)}{\log_2(r + 1)}, \qquad
      g(y) = 2^y - 1 \text{ or } y$$

    where $y_r$ is the relevance at rank r (the label, or under a smooth ranking $\sum_j rel_j I^r_j$) and $N_K$
    the sum for the ideal order (Eq. 3 and 12 of arXiv:2105.00942). Rankings that know the discount of each document
    sum over documents, $\sum_j g(rel_j) D_j$.

    With the exponential gain and labels that are far apart, such as 0 and 128, NDCG read off the relevance at each rank
    (SmoothI, NeuralSort, SoftSort) is about 0 with about no gradient, unless the ranking is sharp: a mean of such
    labels has next to none of the gain of the largest. That is the formula, not rounding; use `gain="linear"` there.

    Args:
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers, TF-Ranking), "linear" for y (trec_eval).
      discount: "log2" for the formula's; or another to train with (SoftRank, section 4.7), over ranks that count from
        0: "linear" or `ops.ShallowDiscount(alpha)`; a table D[0], D[1], .., and 0 beyond it; or a function from float64
        ranks to their discounts.

    Raises:
      ValueError: If an argument is not one of these.

    Time and memory O(K) per list on top of the ranking's, and O(N log N) for the ideal order.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> ndcg = functional.NDCG()
      >>> print(ndcg(tf.constant([[0.0, 1.0, -1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.6309]
    """

    topn: int | None = None
    gain: str = "exponential"
    discount: Discount = "log2"

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "topn", _arguments.topn(self.topn))
        _arguments.choice("gain", self.gain, GAINS)
        discounts.checked(self.discount)

    def compute(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        gain = Gain.of(self.gain, relevance)
        dcg = ranking.discounted_gain(scores, relevance, mask, discount=self.discount, topn=self.topn, gain=gain)
        return tf.math.divide_no_nan(dcg, ideal_dcg(relevance, mask, self.topn, self.discount, gain))


def ideal_dcg(
    relevance: tf.Tensor, mask: tf.Tensor, topn: int | None, discount: Discount = "log2", gain: Gain | None = None
) -> tf.Tensor:
    r"""Returns the discounted cumulative gain of documents in falling order of relevance, [batch].

    Args:
      relevance: [batch, list], >= 0; 0 at padding.
      mask: [batch, list] bool, False for padding.
      topn: The cut-off K; None for the whole list.
      discount: As in `NDCG`.
      gain: The gain; None for $2^y - 1$.
    """
    relevance, gain = tf.stop_gradient(relevance), gain or Gain.of("exponential", relevance)
    ranks = lists.num_ranks(relevance, topn)
    at_ranks = discounts.at_ranks(discount, ranks, mask)

    def by_sorting() -> tf.Tensor:
        return tf.reduce_sum(gain(tf.math.top_k(relevance, ranks).values) * tf.cast(at_ranks, relevance.dtype), axis=1)

    if isinstance(ranks, int) and ranks <= _FEW_RANKS:
        return by_sorting()
    # Labels are mostly a few whole numbers. Then no sort is needed, which takes as long as all the rest.
    is_graded = tf.logical_and(
        tf.reduce_all(tf.equal(relevance, tf.floor(relevance))), tf.reduce_all(relevance <= _GRADES)
    )
    return tf.cond(is_graded, lambda: _dcg_by_grades(relevance, at_ranks, gain), by_sorting)


def _dcg_by_grades(relevance: tf.Tensor, at_ranks: tf.Tensor, gain: Gain) -> tf.Tensor:
    """Returns the ideal DCG of whole labels: each grade adds a step of the gain at the ranks of all that have it."""
    grades = tf.range(1.0, _GRADES + 1.0, dtype=relevance.dtype)[tf.newaxis]
    counts = tf.reduce_sum(tf.cast(relevance[:, tf.newaxis] >= grades[:, :, tf.newaxis], tf.int32), axis=2)
    sums = tf.pad(tf.cumsum(at_ranks, axis=1), [[0, 0], [1, 0]])
    sums = tf.broadcast_to(sums, [tf.shape(relevance)[0], tf.shape(sums)[1]])
    of_grades = tf.gather(sums, tf.minimum(counts, tf.shape(at_ranks)[1]), batch_dims=1)
    return tf.reduce_sum((gain(grades) - gain(grades - 1.0)) * tf.cast(of_grades, relevance.dtype), axis=1)
