"""Base class of the metrics."""

from __future__ import annotations

import abc
import dataclasses

import tensorflow as tf

from tfr_smooth.functional import inputs
from tfr_smooth.ops import ExactRanking, Ranking


@dataclasses.dataclass(frozen=True)
class RankingMetric(abc.ABC):
    """Base class of the metrics: pure functions of labels, scores and a ranking.

    The same formula computes the exact metric with `ops.ExactRanking()` and the differentiable metric with a smooth
    ranking. Exact values are in [0, 1]. Smooth values may be slightly above 1, as a smooth ranking may place a document
    at more than one rank.

    A subclass overrides `compute`, and `relevance` if it does not use the labels themselves. To save models with a
    metric of your own, make it a frozen dataclass with a `get_config` and register it with
    `tf.keras.utils.register_keras_serializable`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional, ops
      >>> class Success(functional.RankingMetric):  # is the first document relevant?
      ...     def relevance(self, labels):
      ...         return tf.cast(labels >= 1.0, labels.dtype)
      ...     def compute(self, relevance, scores, mask, ranking):
      ...         return ranking.rank_relevance(scores, relevance, mask, topn=1)[:, 0]
      >>> labels, scores = tf.constant([[0, 2, 1]]), tf.constant([[2.0, 1.0, 0.0]])
      >>> print(Success()(labels, scores).numpy(), Success()(labels, scores, ranking=ops.SmoothI()).numpy().round(2))
      [0.] [0.33]
    """

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
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
          labels: [batch, list], float or int, >= 0; negative labels mark padding.
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for additional padding. None adds no padding.
          ranking: The ranking. None uses `ops.ExactRanking()`.

        Returns:
          [batch], float64 for float64 scores, else float32; 0 for lists without a relevant document; NaN for lists with
          NaN among their real labels or scores.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        batch = inputs.clean(labels, scores, mask)
        relevance = self.relevance(batch.labels)
        return batch.validity * self.compute(relevance, batch.scores, batch.mask, ranking or ExactRanking())

    def relevance(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns the relevance of documents; by default, their labels.

        Args:
          labels: [batch, list] floats, >= 0; 0 at padding.

        Returns:
          [batch, list], >= 0; 0 at padding.
        """
        return labels

    @abc.abstractmethod
    def compute(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Computes the metric of clean lists.

        Args:
          relevance: [batch, list], >= 0; 0 at padding.
          scores: [batch, list], finite, in the type of the relevance; 0 at padding.
          mask: [batch, list] bool, False for padding.
          ranking: The ranking.

        Returns:
          [batch].
        """

    def has_relevant(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns which lists have a relevant document; the metric is undefined for the others.

        Args:
          labels: [batch, list] floats, >= 0; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch] bool.
        """
        return tf.reduce_any(tf.logical_and(self.relevance(labels) > 0.0, mask), axis=1)


def binary(labels: tf.Tensor) -> tf.Tensor:
    """Returns 1 for labels >= 1, else 0."""
    return tf.cast(labels >= 1.0, labels.dtype)
