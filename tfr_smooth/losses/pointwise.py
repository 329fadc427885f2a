"""Base class of the losses that compare each score with a target of its own."""

from __future__ import annotations

import abc

import tensorflow as tf

from tfr_smooth import _lists
from tfr_smooth.losses.ranking_loss import RankingLoss


class PointwiseLoss(RankingLoss):
    """Base class of means over documents. Only empty lists are excluded, as labels of 0 are targets too."""

    @abc.abstractmethod
    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document.

        Args:
          labels: [batch, list], with 0 for padding.
          scores: [batch, list] (or [batch, list, num_scores]), float32 or float64, with 0 for padding.
          mask: [batch, list], bool, False for padding.

        Returns:
          [batch, list]. Values of padding have no effect.
        """

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        losses = _lists.fill(self.document_losses(labels, scores, mask), mask, 0.0)
        # Divided before they are summed, so that the sum does not overflow.
        return tf.reduce_sum(losses / _lists.count(mask, losses.dtype), axis=1)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for empty lists."""
        return tf.reduce_any(mask, axis=1)
