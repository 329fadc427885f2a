"""What every metric is: labels, scores and a ranking in, one value per list out."""

from __future__ import annotations

import abc
import dataclasses

import tensorflow as tf

from tfr_smooth.functional import inputs
from tfr_smooth.ops import ExactRanking, Ranking


@dataclasses.dataclass(frozen=True)
class RankingMetric(abc.ABC):
    """Base class of the metrics: pure functions of labels, scores and a ranking.

    With `ops.ExactRanking()` the formula gives the exact metric, with a smooth ranking the differentiable one: the two
    cannot drift apart. An exact value is in [0, 1]; a smooth one may be a little above, as a smooth ranking may have a
    document at more than one rank.

    A subclass overrides `compute`, and `relevance` if labels are not what it reads. A frozen dataclass with a
    `get_config`, registered with `tf.keras.utils.register_keras_serializable`, survives saving.

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

    # AutoGraph has nothing to convert here, and takes seconds to find out.
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
          labels: [batch, list], float or int, >= 0; a negative label is padding.
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for further padding.
          ranking: Places documents at ranks; None for `ops.ExactRanking()`.

        Returns:
          [batch], float64 for float64 scores, else float32; 0 for a list without a relevant document; NaN for a list
          with a NaN among its real labels or scores.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        batch = inputs.clean(labels, scores, mask)
        relevance = self.relevance(batch.labels)
        return batch.validity * self.compute(relevance, batch.scores, batch.mask, ranking or ExactRanking())

    def relevance(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns the relevance of documents with these labels, [batch, list]: the labels, unless overridden."""
        return labels

    @abc.abstractmethod
    def compute(self, relevance: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Computes the metric of clean lists.

        Args:
          relevance: [batch, list], >= 0; 0 at padding.
          scores: [batch, list], of the same float type, finite; 0 at padding.
          mask: [batch, list] bool, False for padding.
          ranking: Places documents at ranks.

        Returns:
          [batch].
        """

    def has_relevant(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists for which the metric says nothing.

        Args:
          labels: [batch, list] floats, 0 at padding.
          mask: [batch, list] bool, False for padding.
        """
        return tf.reduce_any(tf.logical_and(self.relevance(labels) > 0.0, mask), axis=1)


def binary(labels: tf.Tensor) -> tf.Tensor:
    """Returns 1 for labels >= 1, else 0."""
    return tf.cast(labels >= 1.0, labels.dtype)
