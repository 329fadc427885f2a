"""The pairwise squared error of differences of scores as estimates of differences of labels."""

from __future__ import annotations

from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _about, _lists
from tfr_smooth.losses.mean_squared import squares
from tfr_smooth.losses.pairwise import PairwiseLoss


class PairwiseMSELoss(PairwiseLoss):
    r"""Squared error of the differences of scores as estimates of the differences of labels, over all pairs.

    $$\frac{1}{N} \sum_{i \neq j} w_{ij} \left(\frac{s_i - s_j}{\tau} - (y_i - y_j)\right)^2$$

    (TF-Ranking's `PairwiseMSELoss`.) N is the number of documents in the list, and w is 1 or the `lambda_weight`. With
    w = 1, this is $2 \sum_i (e_i - \bar e)^2$ with the errors $e_i = s_i / \tau - y_i$: the variance of the errors.
    TF-Ranking divides the sum over a batch by its number of documents, including padding; without padding, the losses
    are equal. Lists with fewer than two documents are excluded. Errors are clipped to the largest value with a finite
    square.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      lambda_weight: Weights of the pairs, such as `NDCGLambdaWeight()`. None uses 1.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list, O(N^2) with a `lambda_weight`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[0.6, 0.8, 9.0]])
      >>> print(losses.PairwiseMSELoss(reduction="none")(labels, scores).numpy().round(4))
      [1.44]
    """

    about: ClassVar = _about.AboutLoss(name="pairwise_mse", citation="TF-Ranking's PairwiseMSELoss", cost=("N", "N"))

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the squares of the differences of two errors, [batch, list, list]."""
        return squares(behind, tf.square(4.0 * tf.cast(_lists.length(behind), behind.dtype)))

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        count = _lists.count(mask, scores.dtype)
        limit = scores.dtype.max / 8.0 * min(self.temperature, 1.0)
        # No quotients: TensorFlow also computes their derivatives by the divisor, which overflow.
        errors = tf.clip_by_value(scores, -limit, limit) * (1.0 / self.temperature) - labels  # 0 at padding
        if self.lambda_weight is None:
            mean = tf.reduce_sum(errors * tf.math.reciprocal(count), axis=1, keepdims=True)
            centered = _lists.fill(errors - mean, mask, 0.0)
            return 2.0 * tf.reduce_sum(squares(centered, count), axis=1)
        rows, columns = _lists.pairs(errors)
        weights = _lists.fill(self.lambda_weight.pair_weights(labels, scores, mask), _lists.different_pairs(mask), 0.0)
        return tf.reduce_sum(weights / count[:, :, tf.newaxis] * self.pair_losses(rows - columns), axis=[1, 2])

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with fewer than two documents."""
        return tf.reduce_sum(tf.cast(mask, tf.int32), axis=1) > 1
