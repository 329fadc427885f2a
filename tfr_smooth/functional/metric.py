"""What every metric is: labels, scores, mask and a ranking in, [batch] values out."""

from __future__ import annotations

import abc
import dataclasses
from typing import Protocol, runtime_checkable

import tensorflow as tf

from tfr_smooth import ops
from tfr_smooth.functional import inputs
from tfr_smooth.ops import lists
from tfr_smooth.ops.positions import PositionRanking


@runtime_checkable
class IndicatorRanking(Protocol):
    """A way to put documents at ranks: exactly (`ops.ExactRanking`) or smoothly (`ops.SmoothI`)."""

    def relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor | None = None, topn: int | None = None
    ) -> tf.Tensor:
        """Returns [batch, K]: the relevance found at ranks 1..K."""


@runtime_checkable
class DocumentRanking(Protocol):
    """A way to tell what each document's place is worth, which NDCG is read off."""

    def document_discounts(
        self, scores: tf.Tensor, mask: tf.Tensor, discount: str = "log2", topn: int | None = None
    ) -> tf.Tensor:
        """Returns [batch, list]: the discount at each document's place; 0 at padding."""


@runtime_checkable
class GainRanking(Protocol):
    """A ranking that has value and gradient of a sum over ranks quicker than by way of the relevance at each rank."""

    def gained(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, worth: tf.Tensor, gain: str = "linear"
    ) -> tf.Tensor:
        """Returns [batch]: the sum over ranks of `worth` [batch or 1, K] times the gain of the relevance found."""


# A ranking finds relevance at ranks, or gives documents positions (`ops.Approx`).
Ranking = IndicatorRanking | PositionRanking


@dataclasses.dataclass(frozen=True)
class RankingMetric(abc.ABC):
    """A pure function from labels and scores to one value a list.

    The ranking is an argument. With `ops.ExactRanking()` the formula gives the exact metric, with a smooth ranking the
    differentiable one: the two cannot drift apart. An exact value is in [0, 1]; a smooth one may be a little above,
    as a smooth ranking may find a document at more than one rank.
    """

    def __call__(
        self,
        labels: tf.Tensor,
        scores: tf.Tensor,
        mask: tf.Tensor | None = None,
        *,
        ranking: Ranking | None = None,
    ) -> tf.Tensor:
        """Computes the metric of each list.

        Args:
          labels: [batch, list], float or int, >= 0; a negative label is padding.
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for (further) padding.
          ranking: Puts documents at ranks; None is `ops.ExactRanking()`.

        Returns:
          [batch], float64 for float64 scores, else float32; 0 for a list without a relevant document.

        Raises:
          ValueError: If the shapes do not match.
        """
        labels, scores, mask = inputs.clean(labels, scores, mask)
        values = self._value(self._relevance(labels), scores, mask, ranking or ops.ExactRanking())
        # Rankings hand on a NaN, but XLA takes an exponential of what it knows to be NaN for anything.
        return values * lists.clean(scores, mask)[2][:, 0]

    def has_relevant(self, labels: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Returns [batch] bool: False for a list for which the metric says nothing."""
        labels = tf.convert_to_tensor(labels)
        relevance = self._relevance(tf.cast(labels, tf.float32))
        # not(<= 0), so that a list with a NaN label counts and shows it.
        relevant = tf.logical_not(relevance <= 0.0)
        return tf.reduce_any(tf.logical_and(relevant, inputs.real_documents(labels, mask)), axis=1)

    def _relevance(self, labels: tf.Tensor) -> tf.Tensor:
        """What is found at a document with this label: the label itself, unless overridden."""
        return labels

    @abc.abstractmethod
    def _value(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """The formula: [batch] from clean [batch, list] inputs, 0 at padding."""


def binary(labels: tf.Tensor) -> tf.Tensor:
    """Returns 1 for labels >= 1, else 0 (a NaN stays)."""
    return tf.where(labels < 1.0, tf.zeros_like(labels), tf.where(labels >= 1.0, tf.ones_like(labels), labels))
