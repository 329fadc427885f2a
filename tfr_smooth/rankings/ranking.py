"""Base classes of rankings, which place the documents of a list at ranks, exactly or smoothly."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, TypeAlias

import tensorflow as tf

from tfr_smooth import _padded, _serialization
from tfr_smooth.rankings.dcg import Discount, TensorFunction, discounts_at, discounts_at_ranks
from tfr_smooth.rankings.steps import DocumentSteps, RankSteps, Steps

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
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        *,
        discount: Discount = "log2",
        topn: int | None = None,
        gain: Gain,
    ) -> tf.Tensor:
        r"""Returns the discounted cumulative gain, $\sum_j g(rel_j) D_j$ with the discount $D_j$ of each document.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          discount: The discount D; see `measures.NDCG`.
          topn: The cutoff K, >= 1; None for no cutoff.
          gain: The gain g, an elementwise function of relevance.

        Returns:
          [batch].
        """
        of_documents = self.document_discounts(scores, mask, discount=discount, topn=topn)
        return tf.reduce_sum(gain(relevance) * of_documents, axis=1)


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
