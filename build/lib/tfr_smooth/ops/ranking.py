"""What a ranking is: a way to place the documents of a list at ranks, exactly or smoothly."""

from __future__ import annotations

import abc
import copy
import dataclasses

import tensorflow as tf

from tfr_smooth.ops import discounts, lists
from tfr_smooth.ops.discounts import Discount
from tfr_smooth.ops.gains import Gain
from tfr_smooth.ops.products import exclusive_product


class Ranking:
    r"""Base class of the rankings: every metric of `tfr_smooth.functional` reads any of them.

    A subclass overrides `indicators`, or `rank_relevance` where it needs no matrix of indicators; a ranking by
    positions extends `PositionRanking` instead. The other methods are overridden where a ranking knows better, such as
    the expected discount of each document (`SoftRank`).

    Inputs of all methods are clean, as `functional` makes them: scores [batch, list] in float32 or float64 without NaN,
    relevance of the same type, both 0 at padding; a mask [batch, list] bool, False for padding.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional, ops
      >>> class OneSoftmax(ops.Ranking):  # every rank is the same softmax over the documents
      ...     def indicators(self, scores, mask, topn=None):
      ...         weights = tf.where(mask, tf.exp(scores), 0.0)
      ...         weights /= tf.reduce_sum(weights, axis=1, keepdims=True)
      ...         return tf.repeat(weights[:, tf.newaxis], topn or scores.shape[1], axis=1)
      >>> print(functional.Precision(topn=1)(tf.constant([[1, 0]]), tf.zeros([1, 2]), ranking=OneSoftmax()).numpy())
      [0.5]
    """

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns [batch, K, list]: how much of each document is at ranks 1..K.

        Args:
          scores: [batch, list].
          mask: [batch, list] bool.
          topn: The number of ranks K; None for the length of the list.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither `indicators` nor `rank_relevance`.")

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        r"""Returns [batch, K]: the relevance at each rank, $y_r = \sum_j rel_j I^r_j$; 0 beyond the documents.

        Args:
          scores: [batch, list].
          relevance: [batch, list]; a constant, no gradient flows to it.
          mask: [batch, list] bool.
          topn: The number of ranks K; None for the length of the list.
        """
        return tf.linalg.matvec(self.indicators(scores, mask, topn), tf.stop_gradient(relevance))

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
        r"""Returns [batch]: the discounted cumulative gain, $\sum_{r=1}^K D(r) \, g(y_r)$.

        Args:
          scores: [batch, list].
          relevance: [batch, list].
          mask: [batch, list] bool.
          discount: D; see `NDCG`.
          topn: The number of ranks K; None for all.
          gain: g.
        """
        gains = gain(self.rank_relevance(scores, relevance, mask, topn))
        ranks = lists.num_ranks(scores, topn)
        return tf.reduce_sum(gains * tf.cast(discounts.at_ranks(discount, ranks, mask), gains.dtype), axis=1)

    def steps(self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> Steps:
        """Returns the ranking read from the top, for metrics of a user who stops somewhere."""
        return RankSteps(self.rank_relevance(scores, relevance, mask, topn))


class Steps(abc.ABC):
    """A ranking read from the top. A step is a rank, or a document at its position.

    Attributes:
      relevance: [batch, S], the relevance at each step.
      ranks: [S] or [batch, S], the rank of each step, >= 1.
      within: [batch, S], how far each step is within the cut-off, in [0, 1].
    """

    relevance: tf.Tensor
    ranks: tf.Tensor
    within: tf.Tensor

    @abc.abstractmethod
    def relevance_before(self) -> tf.Tensor:
        """Returns [batch, S]: the sum of the relevance before each step."""

    @abc.abstractmethod
    def none_before(self) -> tf.Tensor:
        """Returns [batch, S]: the product of 1 - relevance over what is before each step."""

    def clipped(self) -> Steps:
        """Returns the steps with a relevance of at most 1, as `none_before` needs it."""
        steps = copy.copy(self)
        steps.relevance = tf.minimum(self.relevance, 1.0)
        return steps


class RankSteps(Steps):
    """The ranks, with the relevance at each, [batch, K]."""

    def __init__(self, rank_relevance: tf.Tensor) -> None:
        self.relevance = rank_relevance
        self.ranks = tf.cast(tf.range(1, tf.shape(rank_relevance)[1] + 1), rank_relevance.dtype)
        self.within = tf.ones_like(rank_relevance)

    def relevance_before(self) -> tf.Tensor:
        """Returns the exclusive cumulative sum."""
        # In float64: a running sum over a long list loses digits.
        sums = tf.cumsum(tf.cast(self.relevance, tf.float64), axis=1, exclusive=True)
        return tf.cast(sums, self.relevance.dtype)

    def none_before(self) -> tf.Tensor:
        """Returns the exclusive cumulative product."""
        return exclusive_product(self.relevance)


class DocumentRanking(Ranking):
    """Base class of rankings that know the discount of each document; a subclass defines `document_discounts`."""

    @abc.abstractmethod
    def document_discounts(
        self, scores: tf.Tensor, mask: tf.Tensor, *, discount: Discount = "log2", topn: int | None = None
    ) -> tf.Tensor:
        """Returns [batch, list]: the discount of each document; 0 at padding."""

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
        r"""Returns [batch]: $\sum_j g(rel_j)$ times the discount of document j."""
        of_documents = self.document_discounts(scores, mask, discount=discount, topn=topn)
        return tf.reduce_sum(gain(relevance) * of_documents, axis=1)


@dataclasses.dataclass(frozen=True)
class PositionRanking(DocumentRanking, abc.ABC):
    r"""Base class of rankings that give each document a position $\pi_j$ in [1, n]; a subclass defines `positions`.

    Whether a position is before another is a sigmoid (Qin et al. 2010), placed half a rank behind so that its sharp
    limit is exact: document j is among the first K by $\sigma(\beta (K + \tfrac12 - \pi_j))$, and not before document
    i by $\sigma(\beta (\pi_j - \tfrac12 - \pi_i))$.
    """

    @property
    @abc.abstractmethod
    def beta(self) -> float:
        """The inverse temperature of comparisons of positions."""

    @abc.abstractmethod
    def positions(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list]: the position of each document; any finite number at padding."""

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns [batch, K, list]: the share of each document between the edges r - 1/2 and r + 1/2 of each rank."""
        ranks = lists.num_ranks(scores, topn)
        edges = tf.cast(tf.range(ranks + 1), scores.dtype)[:, tf.newaxis] + 0.5
        below = tf.sigmoid(self.beta * (edges - self.positions(scores, mask)[:, tf.newaxis]))
        real = tf.logical_and(lists.rank_mask(mask, ranks)[:, :, tf.newaxis], mask[:, tf.newaxis])
        return lists.fill(below[:, 1:] - below[:, :-1], real, 0.0)

    def document_discounts(
        self, scores: tf.Tensor, mask: tf.Tensor, *, discount: Discount = "log2", topn: int | None = None
    ) -> tf.Tensor:
        r"""Returns [batch, list]: the discount of each document, $D(\pi_j) \, \sigma(\beta (K + \tfrac12 - \pi_j))$.

        Args:
          scores: [batch, list].
          mask: [batch, list] bool.
          discount: D; see `NDCG`.
          topn: The cut-off K; None for no cut.
        """
        positions = lists.fill(self.positions(scores, mask), mask, 1.0)
        of_documents = tf.cast(discounts.at(discount, positions - 1.0, mask), scores.dtype)
        if topn is not None:
            of_documents *= self._within(positions, topn)
        return lists.fill(of_documents, mask, 0.0)

    def steps(self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> Steps:
        """Returns the documents at their positions."""
        positions = lists.fill(self.positions(scores, mask), mask, 1.0)
        within = tf.ones_like(positions) if topn is None else self._within(positions, topn)
        return _DocumentSteps(relevance, positions, within, self.beta)

    def _within(self, positions: tf.Tensor, topn: int) -> tf.Tensor:
        return tf.sigmoid(self.beta * (topn + 0.5 - positions))


class _DocumentSteps(Steps):
    """The documents, [batch, list]; those at padding have no relevance."""

    def __init__(self, relevance: tf.Tensor, positions: tf.Tensor, within: tf.Tensor, beta: float) -> None:
        self.relevance, self.ranks, self.within = relevance, positions, within
        later, earlier = lists.pairs(positions)
        before = tf.sigmoid(beta * (later - 0.5 - earlier))
        # Not set_diag, whose gradient XLA takes only where the graph knows the length.
        self._before = before * (1.0 - tf.eye(tf.shape(positions)[1], dtype=before.dtype))

    def relevance_before(self) -> tf.Tensor:
        return tf.linalg.matvec(self._before, self.relevance)

    def none_before(self) -> tf.Tensor:
        return tf.reduce_prod(1.0 - self.relevance[:, tf.newaxis] * self._before, axis=2)
