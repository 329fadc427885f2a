"""The mean squared error of scores as estimates of labels."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import inputs


def mean_squared(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
    r"""Mean squared error of each list: $\frac{1}{N} \sum_j (y_j - s_j)^2$ over its N real documents.

    (The pointwise regression of Cossock and Zhang, "Subset Ranking Using Regression", COLT 2006.)

    Args:
      labels: [batch, list], float or int, >= 0; a negative label is padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for (further) padding.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for a list of padding.

    Raises:
      ValueError: If the shapes do not match.

    Time and memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.functional.mean_squared import mean_squared
      >>> print(mean_squared(tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 2.0, 9.0]])).numpy())
      [2.5]
    """
    labels, scores, mask = inputs.clean(labels, scores, mask)
    # At padding both are 0, and so is their difference.
    total = tf.reduce_sum(tf.math.squared_difference(labels, scores), axis=1)
    return tf.math.divide_no_nan(total, tf.reduce_sum(tf.cast(mask, scores.dtype), axis=1))
