"""Weights of pairs of documents or of documents by a metric, the argument `lambda_weight` of some losses.

The functions are of ranks, starting at 1; discounts are functions of them, too.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import ClassVar, final

import tensorflow as tf

from tfr_smooth import _arguments, _padded, _serialization
from tfr_smooth.measures import ideal_dcg
from tfr_smooth.rankings.dcg import NDCGGain, log2_discount

Function = Callable[[tf.Tensor], tf.Tensor]


class LambdaWeight(_serialization.Configurable, abc.ABC):
    r"""Base class of the weights of pairs of documents: $w_{ij} = |g_i - g_j| \, R(r_i, r_j)$.

    $r_i$ is the rank of document i by its current score. The weights are constant to the gradient. The weight of a pair
    with tied scores is the mean over all orders of the tied documents; TF-Ranking orders them at random.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> class FirstPair(losses.LambdaWeight):  # only the documents at ranks 1 and 2
      ...     def gains(self, labels, mask):
      ...         return labels
      ...     def of_ranks(self, ranks):
      ...         return tf.cast((ranks[:, None] + ranks[None] == 3.0), ranks.dtype)
      >>> loss = losses.PairwiseHingeLoss(lambda_weight=FirstPair())
      >>> print(loss(tf.constant([[0.0, 1.0, 1.0]]), tf.constant([[3.0, 2.0, 1.0]])).numpy().round(4))
      0.6667
    """

    @abc.abstractmethod
    def gains(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the gains g.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list].
        """

    @abc.abstractmethod
    def of_ranks(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns the function R of two ranks.

        Args:
          ranks: [list] float64, starting at 1.

        Returns:
          [list, list] >= 0; 0 on the diagonal.
        """

    def pair_gains(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the gains whose differences are factors of the weights.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list].
        """
        return self.gains(labels, mask)

    def rank_sums(self, length: tf.Tensor | int) -> tf.Tensor:
        """Returns the sums of R over the leading rows and columns.

        Args:
          length: The number of ranks.

        Returns:
          [length + 1, length + 1], float64.
        """
        return cumulative(self.of_ranks(tf.cast(tf.range(1, length + 1), tf.float64)))

    @final
    def pair_weights(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weights w.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          scores: [batch, list], finite; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list, list] >= 0.
        """
        rows, columns = _padded.pairs(self.pair_gains(labels, mask))
        sums = self.rank_sums(_padded.length(scores))
        return tf.abs(rows - columns) * over_orders_of_ties(sums, tf.stop_gradient(scores), mask)


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelDiffLambdaWeight(LambdaWeight):
    r"""The difference of the labels, $w_{ij} = |y_i - y_j|$ (TF-Ranking's `LabelDiffLambdaWeight`).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.PairwiseLogisticLoss(lambda_weight=losses.LabelDiffLambdaWeight())
      >>> print(loss(tf.constant([[3.0, 1.0]]), tf.constant([[0.0, 0.0]])).numpy().round(4))
      0.6931
    """

    def gains(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the labels."""
        return labels

    def of_ranks(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns 1 for all pairs."""
        return 1.0 - tf.eye(tf.shape(ranks)[0], dtype=ranks.dtype)


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class PrecisionLambdaWeight(LambdaWeight):
    r"""The change of K P@K if two documents are swapped (TF-Ranking's `PrecisionLambdaWeight`).

    $w_{ij} = 1$ if exactly one of the two documents is relevant and exactly one is among the first K, else 0.

    Args:
      topn: The cutoff K, >= 1.
      positive_fn: From labels to bools, True for relevant documents. None uses label >= 1.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.PairwiseHingeLoss(lambda_weight=losses.PrecisionLambdaWeight(topn=1))
      >>> print(loss(tf.constant([[0.0, 1.0, 1.0]]), tf.constant([[1.0, 1.0, 0.0]])).numpy().round(4))
      0.6667
    """

    topn: int
    positive_fn: Function | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.integer("topn", self.topn, least=1)
        _arguments.function("positive_fn", self.positive_fn, optional=True)

    def gains(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns 1 for relevant documents, else 0."""
        return tf.cast(labels >= 1.0 if self.positive_fn is None else self.positive_fn(labels), labels.dtype)

    def of_ranks(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns 1 if one of the ranks is within the cutoff."""
        return swap(tf.ones_like, ranks, self.topn)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _DCGWeight(LambdaWeight):
    """Base class of the weights by the change of DCG, times the number of documents in the list."""

    topn: int | None = None
    gain_fn: Function | None = None
    rank_discount_fn: Function | None = None
    normalized: bool = False
    # Of NDCG: the gain 2^y - 1 and the discount 1 / log2(1 + r) are the defaults.
    _is_ndcg: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.topn(self.topn)
        _arguments.function("gain_fn", self.gain_fn, optional=True)
        _arguments.function("rank_discount_fn", self.rank_discount_fn, optional=True)
        _arguments.boolean("normalized", self.normalized)

    def gains(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the gains, divided by the DCG of the ideal order if normalized."""
        gain = self.gain_fn or (NDCGGain.of("exponential", labels) if self._is_ndcg else tf.identity)
        gains = _padded.fill(gain(labels), mask, 0.0)
        if not self.normalized:
            return gains
        ideal = ideal_dcg(gains, mask, self.topn, lambda ranks: self.discount(ranks + 1.0), gain=tf.identity)
        return tf.math.divide_no_nan(gains, ideal[:, tf.newaxis])

    def discount(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns the discounts D at ranks starting at 1, in their shape and type. Functions of users get float32."""
        if self.rank_discount_fn is not None:
            return tf.cast(self.rank_discount_fn(tf.cast(ranks, tf.float32)), ranks.dtype)
        return log2_discount(ranks - 1.0) if self._is_ndcg else 1.0 / ranks

    def document_weights(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns $g_i D(r_i)$, [batch, list], with the mean discount over tied documents; arguments as above."""
        scores = _padded.fill(tf.stop_gradient(scores), mask, scores.dtype.min)
        ranked, order = tf.math.top_k(scores, _padded.length(scores))
        starts = tf.logical_not(tf.pad(tf.equal(ranked[:, 1:], ranked[:, :-1]), [[0, 0], [1, 0]]))
        discounts = self.discount(tf.cast(tf.range(1, _padded.length(scores) + 1), scores.dtype))
        shared = _padded.Neighbors(starts).mean(tf.broadcast_to(discounts, tf.shape(ranked)))
        return self.gains(labels, mask) * tf.gather(shared, tf.argsort(order, axis=1), batch_dims=1)

    def pair_gains(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the gains times the number of documents in the list."""
        return self.gains(labels, mask) * _padded.count(mask, labels.dtype)


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class DCGLambdaWeight(_DCGWeight):
    r"""The effect of a pair on DCG: $w_{ij} = N |g_i - g_j| \left[(1 - \mu) \, u_{ij} + \mu \, v_{ij}\right]$.

    $$u_{ij} = \left|D(|r_i - r_j|) - D(|r_i - r_j| + 1)\right|, \qquad v_{ij} = |D(r_i) - D(r_j)|$$

    (TF-Ranking's `DCGLambdaWeight`; u: Wang et al., "The LambdaLoss Framework", CIKM 2018; v: LambdaRank.) With a
    cutoff K, u is 0 if both ranks are beyond it, and D in v is 0 beyond it. N is the number of documents in the list;
    in TF-Ranking, it includes padding. In `SoftmaxLoss`, the weight of a document is $g_i D(r_i)$.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain_fn: From labels to gains g, a function of a tensor. None uses the label.
      rank_discount_fn: From ranks, which start at 1, to discounts D, a function of a tensor. None uses 1 / r.
      normalized: Whether the gains are divided by the DCG@K of the ideal order.
      smooth_fraction: The weight $\mu$ of LambdaRank's discount, in [0, 1].

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> weight = losses.DCGLambdaWeight(topn=2, smooth_fraction=0.5)
      >>> loss = losses.PairwiseLogisticLoss(lambda_weight=weight)
      >>> print(loss(tf.constant([[0.0, 1.0, 0.0]]), tf.constant([[3.0, 2.0, 1.0]])).numpy().round(4))
      0.8133
    """

    smooth_fraction: float = 0.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.real("smooth_fraction", self.smooth_fraction, least=0.0, most=1.0)

    def of_ranks(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns the mixture of the discounts of LambdaLoss and LambdaMART."""
        relative = distance(self.discount, ranks)
        if self.topn is not None:
            first, second = ranks[:, tf.newaxis] <= self.topn, ranks[tf.newaxis, :] <= self.topn
            relative = _padded.fill(relative, tf.logical_or(first, second), 0.0)
        swapped = swap(self.discount, ranks, self.topn)
        return (1.0 - self.smooth_fraction) * relative + self.smooth_fraction * swapped


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class NDCGLambdaWeight(DCGLambdaWeight):
    r"""The effect of a pair on NDCG: a normalized `DCGLambdaWeight` with the gain and discount of NDCG.

    $$g(y) = 2^y - 1, \qquad D(r) = 1 / \log_2(1 + r)$$

    (TF-Ranking's `NDCGLambdaWeight`.)

    The arguments are those of `DCGLambdaWeight`; None uses this gain and this discount.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.PairwiseLogisticLoss(lambda_weight=losses.NDCGLambdaWeight())
      >>> print(loss(tf.constant([[0.0, 1.0]]), tf.constant([[0.0, 0.0]])).numpy().round(4))
      0.2558
    """

    normalized: bool = dataclasses.field(default=True, init=False, repr=False)
    _is_ndcg: ClassVar[bool] = True


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class DCGLambdaWeightV2(_DCGWeight):
    r"""The effect of a pair on DCG@K: $w_{ij} = N |g_i - g_j| \, u_{ij} \, m_{ij}$ with u of `DCGLambdaWeight`.

    $m_{ij} = 1 / (1 - D(\max(r_i, r_j)))$ if the larger rank is beyond K, else 1. (Jagerman et al., "On Optimizing
    Top-K Metrics for Neural Ranking Models", SIGIR 2022; `DCGLambdaWeightV2` in TF-Ranking's `losses_impl`.)

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain_fn: From labels to gains g, a function of a tensor. None uses the label.
      rank_discount_fn: From ranks, which start at 1, to discounts D, a function of a tensor. None uses 1 / r.
      normalized: Whether the gains are divided by the DCG@K of the ideal order.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.PairwiseLogisticLoss(lambda_weight=losses.DCGLambdaWeightV2(topn=1))
      >>> print(loss(tf.constant([[0.0, 1.0]]), tf.constant([[0.0, 0.0]])).numpy().round(4))
      0.6931
    """

    def of_ranks(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns the discounts of LambdaLoss, raised beyond the cutoff."""
        beyond = beyond_cutoff(self.discount, later(ranks), self.topn)
        return distance(self.discount, ranks) * beyond


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class NDCGLambdaWeightV2(DCGLambdaWeightV2):
    r"""The effect of a pair on NDCG@K: `DCGLambdaWeightV2` with the gain and discount of NDCG, normalized.

    (TF-Ranking's `NDCGLambdaWeightV2`.)

    The arguments are those of `DCGLambdaWeightV2`; None uses the gain and discount of NDCG.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.PairwiseLogisticLoss(lambda_weight=losses.NDCGLambdaWeightV2(topn=1))
      >>> print(loss(tf.constant([[0.0, 1.0]]), tf.constant([[0.0, 0.0]])).numpy().round(4))
      0.6931
    """

    normalized: bool = dataclasses.field(default=True, init=False, repr=False)
    _is_ndcg: ClassVar[bool] = True


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class YetiDCGLambdaWeight(DCGLambdaWeightV2):
    r"""`DCGLambdaWeightV2` with the gain and discount of NDCG, for neighbors in the ranking; 0 for other pairs.

    (TF-Ranking's `YetiDCGLambdaWeight`, the weight of `YetiLogisticLoss`; Lyzhin et al., "Which Tricks are Important
    for Learning to Rank?", ICML 2023.) In lists with labels above 64, the gains are divided by $2^{\max y - 64}$.

    The arguments are those of `DCGLambdaWeightV2`; None uses the gain and discount of NDCG.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.PairwiseLogisticLoss(lambda_weight=losses.YetiDCGLambdaWeight())
      >>> print(loss(tf.constant([[0.0, 0.0, 1.0]]), tf.constant([[3.0, 2.0, 1.0]])).numpy().round(4))
      0.4847
    """

    _is_ndcg: ClassVar[bool] = True

    def of_ranks(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns the weights of neighbors."""
        apart = tf.abs(ranks[:, tf.newaxis] - ranks[tf.newaxis, :])
        return _padded.fill(super().of_ranks(ranks), tf.equal(apart, 1.0), 0.0)


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class ListMLELambdaWeight(_serialization.Configurable):
    r"""Weights $\alpha_i = D(i)$ of the positions in `ListMLELoss` (TF-Ranking's `ListMLELambdaWeight`).

    Args:
      rank_discount_fn: From positions, which start at 1, to weights >= 0, a function of a tensor.

    Raises:
      ValueError: If `rank_discount_fn` is not a function.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> weight = losses.ListMLELambdaWeight(rank_discount_fn=lambda rank: 1.0 / rank)
      >>> loss = losses.ListMLELoss(lambda_weight=weight)
      >>> print(loss(tf.constant([[2.0, 1.0, 0.0]]), tf.zeros([1, 3])).numpy().round(4))
      1.4452
    """

    rank_discount_fn: Function

    def __post_init__(self) -> None:
        """Checks the argument."""
        _arguments.function("rank_discount_fn", self.rank_discount_fn)


def swap(discount: Function, ranks: tf.Tensor, topn: int | None) -> tf.Tensor:
    r"""Returns the change of the discounts if two documents are swapped, $|D(i) - D(j)|$; D is 0 beyond the cutoff.

    Args:
      discount: D.
      ranks: [list] floats, starting at 1.
      topn: The cutoff K, >= 1; None for the whole list.

    Returns:
      [list, list].
    """
    discounts = discount(ranks)
    if topn is not None:
        discounts = _padded.fill(discounts, ranks <= topn, 0.0)
    return tf.abs(tf.subtract(*_pairs(discounts)))


def distance(discount: Function, ranks: tf.Tensor) -> tf.Tensor:
    r"""Returns $|D(|i - j|) - D(|i - j| + 1)|$, [list, list], and 0 on the diagonal; arguments as in `swap`."""
    first, second = _pairs(ranks)
    apart = tf.maximum(tf.abs(first - second), 1.0)  # D is undefined at 0.
    return tf.where(tf.equal(first, second), tf.zeros_like(apart), tf.abs(discount(apart) - discount(apart + 1.0)))


def beyond_cutoff(discount: Function, ranks: tf.Tensor, topn: int | None) -> tf.Tensor:
    r"""Returns $1 / (1 - D(r))$ at ranks beyond the cutoff, where the whole gain is lost, else 1.

    Args:
      discount: D.
      ranks: Floats of any shape, starting at 1.
      topn: The cutoff K, >= 1; None for the whole list.

    Returns:
      Factors in the shape of the ranks.
    """
    if topn is None:
        return tf.ones_like(ranks)
    lifted = 1.0 / (1.0 - discount(tf.maximum(ranks, 2.0)))  # Undefined at rank 1.
    return _padded.fill(lifted, ranks > topn, 1.0)


def later(ranks: tf.Tensor) -> tf.Tensor:
    """Returns the larger rank of each pair, [list, list]."""
    return tf.maximum(*_pairs(ranks))


def cumulative(weights: tf.Tensor) -> tf.Tensor:
    """Returns the sums over the leading rows and columns, [list + 1, list + 1], of weights [list, list]."""
    return tf.pad(tf.cumsum(tf.cumsum(weights, axis=0), axis=1), [[1, 0], [1, 0]])


def over_orders_of_ties(sums: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the weights at the ranks of each pair of documents, averaged over all orders of tied documents.

    Tied documents share a block of ranks. Over all orders, each document has each rank equally often. So the average is
    the mean over a block of the weights, computed from four of their cumulative sums.

    Args:
      sums: The result of `cumulative` for weights that are 0 on the diagonal, float64.
      scores: [batch, list].
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch, list, list] weights >= 0.
    """
    mine, others = _padded.pairs(scores)
    real = mask[:, tf.newaxis, :]
    above = tf.reduce_sum(tf.cast(tf.logical_and(others > mine, real), tf.int32), axis=2)
    tied = tf.reduce_sum(tf.cast(tf.logical_and(tf.equal(others, mine), real), tf.int32), axis=2)
    rows = tf.gather(sums, above + tied) - tf.gather(sums, above)
    blocks = tf.gather(rows, above + tied, axis=2, batch_dims=1) - tf.gather(rows, above, axis=2, batch_dims=1)
    blocks = _padded.fill(blocks, blocks > 1e-9, 0.0)  # Less is rounding of the sums.
    # Two documents of the same block never have the same rank, so the diagonal (which is 0) is not counted there.
    same = tf.cast(tf.equal(above[:, :, tf.newaxis], above[:, tf.newaxis, :]), tf.int32)
    count = tied[:, :, tf.newaxis] * (tied[:, tf.newaxis, :] - same)
    return tf.cast(tf.math.divide_no_nan(blocks, tf.cast(count, blocks.dtype)), scores.dtype)


def _pairs(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return values[:, tf.newaxis], values[tf.newaxis, :]
