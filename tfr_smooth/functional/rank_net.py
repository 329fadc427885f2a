"""RankNet, and what every loss over pairs of documents shares."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import inputs
from tfr_smooth.ops import lists


def rank_net(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, sigma: float = 1.0) -> tf.Tensor:
    r"""RankNet of each list: the mean of $\log(1 + e^{-\sigma (s_i - s_j)})$ over its pairs with $y_i > y_j$.

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.)

    Args:
      labels: [batch, list], float or int, >= 0; a negative label is padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for (further) padding.
      sigma: Slope of the logistic function, > 0.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for a list without such a pair.

    Raises:
      ValueError: If the shapes do not match.

    Time and memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.functional.rank_net import rank_net
      >>> print(rank_net(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])).numpy().round(4))
      [0.6931]
    """
    labels, scores, mask, poison = clean(labels, scores, mask)
    weights = tf.cast(preferences(labels, mask), scores.dtype)
    weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, axis=[1, 2], keepdims=True))
    return poison * logistic(scores, weights, sigma)


def clean(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns `inputs.clean`'s (labels, scores, mask) without NaN among the scores, and the poison [batch].

    The poison is NaN for a list with a NaN among its labels or scores, which comparisons of pairs would hide, else 1.

    Raises:
      ValueError: If the shapes do not match or the scores are no floats.
    """
    labels, scores, mask = inputs.clean(labels, scores, mask)
    scores, mask, poison = lists.clean(tf.where(tf.math.is_nan(labels), labels, scores), mask)
    return labels, scores, mask, poison[:, 0]


def real_pairs(mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True for two real documents."""
    return tf.logical_and(mask[:, :, tf.newaxis], mask[:, tf.newaxis, :])


def preferences(labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True at (i, j) if both are real and i has the higher label."""
    return tf.logical_and(labels[:, :, tf.newaxis] > labels[:, tf.newaxis, :], real_pairs(mask))


def has_preferences(labels: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
    """Returns [batch] bool: False for a list whose labels are all the same. In O(N), without the pairs."""
    labels = tf.cast(tf.convert_to_tensor(labels), tf.float32)
    real = inputs.real_documents(labels, mask)
    highest = tf.reduce_max(lists.filled(labels, real, float("-inf")), axis=1)
    lowest = tf.reduce_min(lists.filled(labels, real, float("inf")), axis=1)
    # A list with a NaN label counts and shows it.
    unknown = tf.reduce_any(tf.logical_and(real, tf.math.is_nan(labels)), axis=1)
    return tf.logical_or(highest > lowest, unknown)


def logistic(scores: tf.Tensor, weights: tf.Tensor, sigma: float) -> tf.Tensor:
    r"""Returns [batch]: $\sum_{ij} w_{ij} \log(1 + e^{-\sigma (s_i - s_j)})$.

    Args:
      scores: [batch, list], without NaN.
      weights: [batch, list, list], >= 0 and 0 at padding.
      sigma: Slope of the logistic function, > 0.
    """
    gaps = lists.filled(scores[:, :, tf.newaxis] - scores[:, tf.newaxis, :], weights > 0.0, 0.0)
    return tf.reduce_sum(weights * tf.nn.softplus(-sigma * gaps), axis=[1, 2])
