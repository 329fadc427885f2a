"""The mean squared error of scores as estimates of labels."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth.functional.criterion import Criterion
from tfr_smooth.ops import lists


def mean_squared(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
    """Computes the mean squared error of each list, [batch]; see `MeanSquaredCriterion`.

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

    (The pointwise regression of Cossock and Zhang, "Subset Ranking Using Regression", COLT 2006.) The mean over the N
    real documents of each list; TF-Ranking's is over the padded documents of the batch. Lists without a relevant
    document count: that their scores should be 0 is as much information as any. At least 0; errors count as the
    largest whose square the float type holds, if they are larger.

    Time and memory O(N) per list.
    """

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        count = lists.count(mask, scores.dtype)
        errors = labels - scores  # 0 at padding
        largest = tf.sqrt(scores.dtype.max / 4.0 / count)
        # The clipped error itself: a sum with the difference of the two rounds to 0 where the error is much larger.
        errors = tf.grad_pass_through(lambda errors: tf.clip_by_value(errors, -largest, largest))(errors)
        return tf.reduce_sum(tf.square(errors), axis=1) / count[:, 0]

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists of padding."""
        return tf.reduce_any(mask, axis=1)
