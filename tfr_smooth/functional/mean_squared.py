"""The mean squared error of scores as estimates of labels."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth.functional.criterion import Criterion
from tfr_smooth.ops import lists


def mean_squared(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
    """Computes the mean squared error of each list; see `MeanSquaredCriterion` for the formula.

    Args:
      labels: [batch, list], float or int, >= 0; negative labels mark padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for additional padding. None adds no padding.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for excluded lists.

    Raises:
      ValueError: If the shapes do not match or the scores are not floats.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> print(functional.mean_squared(tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 2.0, 9.0]])).numpy())
      [2.5]
    """
    return MeanSquaredCriterion()(labels, scores, mask)


@dataclasses.dataclass(frozen=True)
class MeanSquaredCriterion(Criterion):
    r"""Mean squared error of the scores as estimates of the labels: $\frac{1}{N} \sum_j (y_j - s_j)^2$.

    (The pointwise regression of Cossock and Zhang, "Subset Ranking Using Regression", COLT 2006.) The mean is over the
    N real documents of each list; TF-Ranking's mean is over all documents of the batch, including padding. Lists
    without a relevant document are included, as their labels of 0 are regression targets too; empty lists are excluded.
    The loss is at least 0. Errors are clipped to the largest value with a finite square.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> labels, scores = tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 2.0, 9.0]])
      >>> print(functional.MeanSquaredCriterion()(labels, scores).numpy())
      [2.5]
    """

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        count = lists.count(mask, scores.dtype)
        errors = labels - scores  # 0 at padding
        largest = tf.sqrt(scores.dtype.max / 4.0 / count)
        # Not errors + stop_gradient(clipped - errors), which rounds to 0 where the error is much larger.
        errors = tf.grad_pass_through(lambda errors: tf.clip_by_value(errors, -largest, largest))(errors)
        return tf.reduce_sum(tf.square(errors), axis=1) / count[:, 0]

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for empty lists."""
        return tf.reduce_any(mask, axis=1)
