"""What criteria over pairs of documents share."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.ops import lists


def preferences(labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True at (i, j) if both are real and i has the higher label."""
    rows, columns = lists.pairs(labels)
    return tf.logical_and(rows > columns, lists.real_pairs(mask))


def has_preferences(labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch] bool: False for a list whose labels are all the same. In O(N), without the pairs."""
    lowest, highest = lists.extremes(labels, mask)
    return highest > lowest


def logistic(scores: tf.Tensor, weights: tf.Tensor, sigma: float | tf.Tensor) -> tf.Tensor:
    r"""Returns [batch]: $\sum_{ij} w_{ij} \log(1 + e^{-\sigma (s_i - s_j)})$.

    Args:
      scores: [batch, list].
      weights: [batch, list, list], >= 0 and 0 at padding.
      sigma: Slope of the logistic function, > 0.
    """
    behind = scaled_differences(scores, tf.convert_to_tensor(sigma, scores.dtype))
    return tf.reduce_sum(weights * tf.nn.softplus(behind), axis=[1, 2])


def scaled_differences(scores: tf.Tensor, sigma: tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\sigma (s_j - s_i)$ at (i, j)."""
    # So that no product with sigma overflows.
    limit = scores.dtype.max / 4.0 / tf.maximum(sigma, 1.0)
    rows, columns = lists.pairs(tf.clip_by_value(scores, -limit, limit))
    return sigma * (columns - rows)
