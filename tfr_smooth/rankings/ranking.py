"""Base classes of rankings, which place the documents of a list at ranks, exactly or smoothly."""

from __future__ import annotations

import abc
import copy
import dataclasses
from typing import Any, ClassVar, TypeAlias

import tensorflow as tf

from tfr_smooth import _compiled, _padded, _serialization
from tfr_smooth.rankings.dcg import Discount, TensorFunction, discounts_at, discounts_at_ranks

Gain: TypeAlias = TensorFunction


class Ranking(_serialization.Configurable):
    r"""Base class of rankings, from which every measure of `tfr_smooth.measures` can be computed.

    A subclass overrides `indicators`, or `rank_relevance` if it does not need the matrix of indicators. Rankings based
    on positions extend `PositionRanking` instead. Subclasses override the other methods for more accurate or faster
    results, such as the expected discount of each document in `SoftRank`.

    Rankings are frozen dataclasses. To save models with one of your own, register it with
    `tf.keras.utils.register_keras_serializable`. The first field is the temperature.

    The inputs of all methods are clean, as the measures prepare them: scores [batch, list] in float32 or float64
    without NaN; relevance [batch, list] of the same type; both 0 at padding; a mask [batch, list] bool, False for
    padding.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures, rankings
      >>> class OneSoftmax(rankings.Ranking):  # every rank is the same softmax over the documents
      ...     def indicators(self, scores, mask, topn=None):
      ...         weights = tf.where(mask, tf.exp(scores), 0.0)
      ...         weights /= tf.reduce_sum(weights, axis=1, keepdims=True)
      ...         return tf.repeat(weights[:, tf.newaxis], topn or scores.shape[1], axis=1)
      >>> print(measures.Precision(topn=1)(tf.constant([[1, 0]]), tf.zeros([1, 2]), ranking=OneSoftmax()).numpy())
      [0.5]
    """

    # Whether adding a constant to all scores of a list changes nothing.
    shift_invariant: ClassVar[bool] = True

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns the rank indicators: the share of each document at ranks 1..K.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither `indicators` nor `rank_relevance`.")

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        r"""Returns the relevance at each rank, $y_r = \sum_j rel_j I^r_j$.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding. No gradient flows to it.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K]; 0 at ranks beyond the real documents.
        """
        indicators, expected = self.indicators(scores, mask, topn), [scores.shape[0], None, scores.shape[1]]
        if not indicators.shape.is_compatible_with(expected):
            raise ValueError(
                f"`{type(self).__name__}.indicators` must return the shape [batch, K, list] for scores of the shape "
                f"{scores.shape}, got {indicators.shape}."
            )
        return tf.linalg.matvec(indicators, tf.stop_gradient(relevance))

    def discounted_gain(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        *,
        discount: Discount = "log2",
        topn: int | None = None,
        gain: Gain,
    ) -> tf.Tensor:
        r"""Returns the discounted cumulative gain, $\sum_{r=1}^K D(r) \, g(y_r)$.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          discount: The discount D; see `measures.NDCG`.
          topn: The number of ranks K, >= 1; None for all ranks.
          gain: The gain g, an elementwise function of relevance.

        Returns:
          [batch].
        """
        gains = gain(self.rank_relevance(scores, relevance, mask, topn))
        ranks = _padded.num_ranks(scores, topn)
        return tf.reduce_sum(gains * tf.cast(discounts_at_ranks(discount, ranks, mask), gains.dtype), axis=1)

    def steps(self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> Steps:
        """Returns the ranking as a sequence of steps from the top, for metrics such as reciprocal rank.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          topn: The cutoff K, >= 1; None for no cutoff.

        Returns:
          The steps.
        """
        return RankSteps(self.rank_relevance(scores, relevance, mask, topn))


class DocumentRanking(Ranking):
    """Base class of rankings with a discount per document; a subclass defines `document_discounts`."""

    @abc.abstractmethod
    def document_discounts(
        self, scores: tf.Tensor, mask: tf.Tensor, *, discount: Discount = "log2", topn: int | None = None
    ) -> tf.Tensor:
        """Returns the discount of each document.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          discount: The discount D; see `measures.NDCG`.
          topn: The cutoff K, >= 1; None for no cutoff.

        Returns:
          [batch, list]; 0 at padding.
        """

    def discounted_gain(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, *, gain: Gain, **options: Any
    ) -> tf.Tensor:
        r"""Returns the discounted cumulative gain, $\sum_j g(rel_j) D_j$ with the discount $D_j$ of each document.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          gain: The gain g, an elementwise function of relevance.
          **options: `discount` and `topn`, as for `document_discounts`.

        Returns:
          [batch].
        """
        return tf.reduce_sum(gain(relevance) * self.document_discounts(scores, mask, **options), axis=1)


@dataclasses.dataclass(frozen=True)
class PositionRanking(DocumentRanking, abc.ABC):
    r"""Base class of rankings that assign each document a position $\pi_j$ in [1, n].

    A subclass defines `positions` and `beta`. Positions are compared by sigmoids (Qin et al. 2010) with an offset of
    half a rank, which makes their sharp limit exact. Document j is among the first K to the degree
    $\sigma(\beta (K + \tfrac12 - \pi_j))$, and document i precedes it to the degree
    $\sigma(\beta (\pi_j - \tfrac12 - \pi_i))$.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures, rankings
      >>> class Hard(rankings.PositionRanking):  # a position is the number of documents with at least this score
      ...     beta = 10.0
      ...     def positions(self, scores, mask):
      ...         is_ahead = (scores[:, :, tf.newaxis] >= scores[:, tf.newaxis]) & mask[:, :, tf.newaxis]
      ...         return tf.reduce_sum(tf.cast(is_ahead, scores.dtype), axis=1)
      >>> labels, scores = tf.constant([[0, 2, 1]]), tf.constant([[2.0, 1.0, 0.0]])
      >>> print(measures.NDCG()(labels, scores, ranking=Hard()).numpy().round(2))
      [0.66]
    """

    @property
    @abc.abstractmethod
    def beta(self) -> float:
        """Inverse temperature of the comparisons of positions, > 0."""

    @abc.abstractmethod
    def positions(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the position of each document.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list], in [1, n] for n real documents; any finite number at padding.
        """

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns the rank indicators: the share of each document between r - 1/2 and r + 1/2 for each rank r.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        ranks = _padded.num_ranks(scores, topn)
        edges = tf.cast(tf.range(ranks + 1), scores.dtype)[:, tf.newaxis] + 0.5
        below = tf.sigmoid(self.beta * (edges - self.positions(scores, mask)[:, tf.newaxis]))
        real = tf.logical_and(_padded.rank_mask(mask, ranks)[:, :, tf.newaxis], mask[:, tf.newaxis])
        return _padded.fill(below[:, 1:] - below[:, :-1], real, 0.0)

    def document_discounts(
        self, scores: tf.Tensor, mask: tf.Tensor, *, discount: Discount = "log2", topn: int | None = None
    ) -> tf.Tensor:
        r"""Returns the discount of each document, $D(\pi_j) \, \sigma(\beta (K + \tfrac12 - \pi_j))$.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          discount: The discount D; see `measures.NDCG`.
          topn: The cutoff K, >= 1; None for no cutoff.

        Returns:
          [batch, list]; 0 at padding.
        """
        positions = self._positions(scores, mask)
        of_documents = tf.cast(discounts_at(discount, positions - 1.0, mask), scores.dtype)
        return _padded.fill(of_documents * self._within(positions, topn), mask, 0.0)

    def steps(self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> Steps:
        """Returns one step per document, at its position.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          topn: The cutoff K, >= 1; None for no cutoff.

        Returns:
          The steps.
        """
        positions = self._positions(scores, mask)
        return DocumentSteps(relevance, positions, self._within(positions, topn), self.beta)

    def _positions(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the positions, [batch, list]; 1 at padding."""
        positions = self.positions(scores, mask)
        if not positions.shape.is_compatible_with(scores.shape):
            raise ValueError(
                f"`{type(self).__name__}.positions` must return the shape [batch, list] of the scores, {scores.shape}, "
                f"got {positions.shape}."
            )
        return _padded.fill(positions, mask, 1.0)

    def _within(self, positions: tf.Tensor, topn: int | None) -> tf.Tensor:
        """Returns the degree to which each document is within the cutoff, [batch, list]."""
        return tf.ones_like(positions) if topn is None else tf.sigmoid(self.beta * (topn + 0.5 - positions))


# The relaxations by name, the first word of the names of their losses.
RANKINGS: _serialization.Registry[Ranking] = _serialization.Registry()


class Steps(abc.ABC):
    """A ranking as a sequence of steps from the top. A step is a rank, or a document at its position.

    `Ranking.steps` returns one. A subclass sets the attributes and defines `relevance_before` and `none_before`.

    Attributes:
      relevance: [batch, S], the relevance at each step.
      ranks: [S] or [batch, S], the rank of each step, >= 1.
      within: [batch, S], the degree to which each step is within the cutoff, in [0, 1].

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores, relevance = tf.constant([[1.0, 3.0, 2.0]]), tf.constant([[1.0, 0.0, 1.0]])
      >>> steps = rankings.ExactRanking().steps(scores, relevance, scores > 0.0)
      >>> print(steps.relevance.numpy(), steps.relevance_before().numpy(), steps.none_before().numpy())
      [[0. 1. 1.]] [[0. 0. 1.]] [[1. 1. 0.]]
    """

    relevance: tf.Tensor
    ranks: tf.Tensor
    within: tf.Tensor

    @abc.abstractmethod
    def relevance_before(self) -> tf.Tensor:
        """Returns the sum of the relevance before each step.

        Returns:
          [batch, S].
        """

    @abc.abstractmethod
    def none_before(self) -> tf.Tensor:
        """Returns the product of 1 - relevance over everything before each step.

        Returns:
          [batch, S].
        """

    def clipped(self) -> Steps:
        """Returns a copy with the relevance clipped to at most 1, for use with `none_before`.

        Returns:
          The steps.
        """
        steps = copy.copy(self)
        steps.relevance = tf.minimum(self.relevance, 1.0)
        return steps


class RankSteps(Steps):
    """The steps of a ranking by rank.

    Args:
      rank_relevance: [batch, K], the relevance at each rank.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> print(rankings.RankSteps(tf.constant([[0.5, 1.0, 0.5]])).none_before().numpy())
      [[1.  0.5 0. ]]
    """

    def __init__(self, rank_relevance: tf.Tensor) -> None:
        self.relevance = rank_relevance
        self.ranks = tf.cast(tf.range(1, tf.shape(rank_relevance)[1] + 1), rank_relevance.dtype)
        self.within = tf.ones_like(rank_relevance)

    def relevance_before(self) -> tf.Tensor:
        """Returns the exclusive cumulative sum of the relevance, [batch, K]."""
        # In float64: a running sum over a long list loses precision.
        sums = tf.cumsum(tf.cast(self.relevance, tf.float64), axis=1, exclusive=True)
        return tf.cast(sums, self.relevance.dtype)

    def none_before(self) -> tf.Tensor:
        """Returns the exclusive cumulative product of 1 - relevance, [batch, K]."""
        return exclusive_product(self.relevance)


class DocumentSteps(Steps):
    """The documents at their positions, [batch, list]; padding has no relevance."""

    def __init__(self, relevance: tf.Tensor, positions: tf.Tensor, within: tf.Tensor, beta: float) -> None:
        self.relevance, self.ranks, self.within = relevance, positions, within
        later, earlier = _padded.pairs(positions)
        before = tf.sigmoid(beta * (later - 0.5 - earlier))
        # Not set_diag: XLA only supports its gradient with a static length.
        self._before = before * (1.0 - tf.eye(tf.shape(positions)[1], dtype=before.dtype))

    def relevance_before(self) -> tf.Tensor:
        """Returns the sum of the relevance before each document, [batch, list]."""
        return tf.linalg.matvec(self._before, self.relevance)

    def none_before(self) -> tf.Tensor:
        """Returns the product of 1 - relevance before each document, [batch, list]."""
        return tf.reduce_prod(1.0 - self.relevance[:, tf.newaxis] * self._before, axis=2)


def exclusive_product(probabilities: tf.Tensor) -> tf.Tensor:
    r"""Returns the exclusive product $\prod_{l<r} (1 - p_l)$: the probability that no earlier event occurs.

    Args:
      probabilities: [batch, K], in [0, 1].

    Returns:
      [batch, K], in the type of the probabilities.

    The gradient of TensorFlow's cumulative product divides by its factors. This one is correct where a factor is 0.

    Time O(K log K), memory O(K) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.rankings.ranking import exclusive_product
      >>> print(exclusive_product(tf.constant([[0.5, 1.0, 0.5]])).numpy())
      [[1.  0.5 0. ]]
    """
    return tf.ensure_shape(_exclusive_product(probabilities), probabilities.shape)


@_compiled.differentiable
def _exclusive_product(probabilities: tf.Tensor) -> _compiled.WithGradient:
    factors = 1.0 - probabilities
    products = tf.math.cumprod(factors, axis=1, exclusive=True)
    return products, lambda upstream: -products * sum_after(upstream, factors)


def sum_after(values: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    r"""Returns $V_m = \sum_{r>m} u_r \prod_{m<l<r} f_l$ for values u and factors f, [batch, K] each.

    Solves $V_m = u_{m+1} + f_{m+1} V_{m+1}$ by doubling: after t rounds, each sum covers the next $2^t$ ranks.
    """
    ranks = tf.shape(values)[1]
    every = tf.range(ranks)  # outside of the loop, where XLA knows its length

    def later(tensor: tf.Tensor, reach: tf.Tensor) -> tf.Tensor:
        places = every + reach
        moved = tf.gather(tensor, tf.minimum(places, ranks - 1), axis=1)
        return tf.where(places < ranks, moved, tf.zeros_like(moved))

    def double(reach: tf.Tensor, sums: tf.Tensor, products: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return 2 * reach, sums + products * later(sums, reach), products * later(products, reach)

    start = (tf.constant(1), later(values, tf.constant(1)), later(factors, tf.constant(1)))
    return tf.while_loop(lambda reach, *_: reach < ranks, double, start)[1]
