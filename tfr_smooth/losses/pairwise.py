"""Base class and helpers of losses over pairs of documents."""

from __future__ import annotations

import abc

import tensorflow as tf

from tfr_smooth import _lists
from tfr_smooth.losses.ranking_loss import RankingLoss


class PairwiseLoss(RankingLoss):
    """Base class of means over the pairs of documents with different labels; lists without such pairs are excluded."""

    @abc.abstractmethod
    def pair_losses(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list, list]: the loss at (i, j) if i should be ranked above j."""

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        weights = tf.cast(preferences(labels, mask), scores.dtype)
        total = tf.reduce_sum(weights * self.pair_losses(scores), axis=[1, 2])
        return tf.math.divide_no_nan(total, tf.reduce_sum(weights, axis=[1, 2]))

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return has_preferences(labels, mask)


def preferences(labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True at (i, j) if both documents are real and i has the higher label."""
    rows, columns = _lists.pairs(labels)
    return tf.logical_and(rows > columns, _lists.real_pairs(mask))


def has_preferences(labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch] bool: False for lists with only one distinct label. Takes O(N), as it needs no pairs."""
    lowest, highest = _lists.extremes(labels, mask)
    return highest > lowest


def logistic(scores: tf.Tensor, sigma: float | tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\log(1 + e^{-\sigma (s_i - s_j)})$ at (i, j).

    Args:
      scores: [batch, list].
      sigma: Slope of the logistic function, > 0.
    """
    return tf.nn.softplus(scaled_differences(scores, tf.convert_to_tensor(sigma, scores.dtype)))


def scaled_differences(scores: tf.Tensor, sigma: tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\sigma (s_j - s_i)$ at (i, j)."""
    # Avoids overflow of the products with sigma.
    limit = scores.dtype.max / 4.0 / tf.maximum(sigma, 1.0)
    rows, columns = _lists.pairs(tf.clip_by_value(scores, -limit, limit))
    return sigma * (columns - rows)
