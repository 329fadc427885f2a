"""What every baseline is: labels and scores in, one value per list out, to minimize."""

from __future__ import annotations

import abc
import dataclasses

import tensorflow as tf

from tfr_smooth.functional import inputs


@dataclasses.dataclass(frozen=True)
class Criterion(abc.ABC):
    """Base class of the baselines: pure functions of labels and scores, to minimize.

    A subclass overrides `compute`, and `counts` if lists without a relevant document count.
    """

    # AutoGraph has nothing to convert here, and takes seconds to find out.
    @tf.autograph.experimental.do_not_convert
    def __call__(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Computes the criterion of each list.

        Args:
          labels: [batch, list], float or int, >= 0; a negative label is padding.
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for further padding.

        Returns:
          [batch], float64 for float64 scores, else float32; 0 for a list that does not count; NaN for a list with a NaN
          among its real labels or scores.

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
          scores: [batch, list], of the same float type, finite; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch].
        """

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists that do not count, here those without a relevant document."""
        return tf.reduce_any(tf.logical_and(labels > 0.0, mask), axis=1)
