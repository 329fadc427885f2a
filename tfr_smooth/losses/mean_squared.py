"""The mean squared error of scores as estimates of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _lists
from tfr_smooth.losses.pointwise import PointwiseLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class MeanSquaredLoss(PointwiseLoss):
    r"""Mean squared error of the scores as estimates of the labels: $\frac{1}{N} \sum_j (y_j - s_j)^2$.

    (The pointwise regression of Cossock and Zhang, "Subset Ranking Using Regression", COLT 2006.) The mean is over the
    N real documents of each list; TF-Ranking's mean is over all documents of the batch, including padding. Lists
    without a relevant document are included, as their labels of 0 are regression targets too; empty lists are excluded.
    The loss is at least 0. Errors are clipped to the largest value with a finite square.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 2.0, 9.0]])
      >>> print(losses.MeanSquaredLoss(reduction="none")(labels, scores).numpy())
      [2.5]
    """

    about: ClassVar = _about.AboutLoss(name="mean_squared", citation="Cossock, Zhang 2006", cost=("N", "N"))

    def __init__(self, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        return squares(labels - scores, _lists.count(mask, scores.dtype))


def squares(errors: tf.Tensor, terms: tf.Tensor) -> tf.Tensor:
    """Returns the squares of errors, clipped to the largest value for which a sum of squares is finite.

    Args:
      errors: Floats of any shape.
      terms: The number of squares in the sum, >= 1, in a shape that broadcasts to that of the errors.
    """
    largest = tf.sqrt(errors.dtype.max / 4.0 / terms)
    # Not errors + stop_gradient(clipped - errors), which rounds to 0 where the error is much larger.
    return tf.square(tf.grad_pass_through(lambda errors: tf.clip_by_value(errors, -largest, largest))(errors))
