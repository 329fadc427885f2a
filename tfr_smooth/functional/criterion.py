"""Base class of the baseline losses."""

from __future__ import annotations

import abc
import dataclasses

import tensorflow as tf

from tfr_smooth.functional import inputs


@dataclasses.dataclass(frozen=True)
class Criterion(abc.ABC):
    """Base class of the baseline losses: pure functions of labels and scores, to be minimized.

    A subclass overrides `compute`. It also overrides `counts` if lists without a relevant document are included.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> class HighestScore(functional.Criterion):  # of the documents that are not relevant
      ...     def compute(self, labels, scores, mask):
      ...         return tf.reduce_max(tf.where(mask & (labels < 1.0), scores, scores.dtype.min), axis=1)
      >>> print(HighestScore()(tf.constant([[1, 0, 0, -1]]), tf.constant([[4.0, 1.0, 2.0, 9.0]])).numpy())
      [2.]
    """

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
    def __call__(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Computes the criterion of each list.

        Args:
          labels: [batch, list], float or int, >= 0; negative labels mark padding.
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for additional padding. None adds no padding.

        Returns:
          [batch], float64 for float64 scores, else float32; 0 for excluded lists (see `counts`); NaN for lists with NaN
          among their real labels or scores.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        batch = inputs.clean(labels, scores, mask)
        values = self.compute(batch.labels, batch.scores, batch.mask)
        counts = self.counts(batch.labels, batch.mask)
        return batch.validity * tf.where(counts, values, tf.zeros_like(values))

    @abc.abstractmethod
    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Computes the criterion of clean lists.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          scores: [batch, list], finite, in the type of the labels; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch].
        """

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns which lists are included. By default, lists without a relevant document (label > 0) are excluded.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch] bool, False for excluded lists.
        """
        return tf.reduce_any(tf.logical_and(labels > 0.0, mask), axis=1)
