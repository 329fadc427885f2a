"""A loss over the best scored items of each user instead of the whole catalog."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth import _padded
from tfr_smooth.losses import RankingLoss


class BestItemsLoss(RankingLoss):
    """A loss of each list's relevant documents, its best scored others and its lowest document.

    Other documents get no gradient. The lowest document is included because SmoothI subtracts its score from the
    others. With as many as there are documents, this is the loss itself.

    Args:
      loss: The loss, which sees the chosen documents as the list.
      hard_negatives: Number of the best scored others, >= 1.

    Time O(N log hard_negatives) and memory O(N) per list, besides those of the loss for the chosen documents.
    """

    def __init__(self, loss: RankingLoss, hard_negatives: int) -> None:
        super().__init__(dtype=loss.dtype, name=loss.name, reduction=loss.reduction)
        self.loss, self.hard_negatives = loss, hard_negatives

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch]."""
        lowest = tf.argmin(_padded.fill(scores, mask, scores.dtype.max), axis=1, output_type=tf.int32)
        is_lowest = tf.equal(tf.range(tf.shape(scores)[1]), lowest[:, tf.newaxis])
        is_first = tf.logical_and(mask, tf.logical_or(labels > 0.0, is_lowest))
        counts = tf.reduce_sum(tf.cast(is_first, tf.int32), axis=1) + self.hard_negatives
        size = tf.minimum(tf.reduce_max(tf.pad(counts, [[0, 1]], constant_values=1)), tf.shape(scores)[1])
        order = tf.where(is_first, scores.dtype.max, _padded.fill(scores, mask, scores.dtype.min))
        places = tf.math.top_k(tf.stop_gradient(order), size).indices
        labels, scores, mask = (tf.gather(values, places, batch_dims=1) for values in (labels, scores, mask))
        # The list of a user does not depend on how many relevant documents the others in the batch have.
        mask = tf.logical_and(mask, tf.sequence_mask(counts, size))
        return self.loss.compute(_padded.fill(labels, mask, 0.0), _padded.fill(scores, mask, 0.0), mask)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns which lists are included, [batch] bool."""
        return self.loss.counts(labels, mask)
