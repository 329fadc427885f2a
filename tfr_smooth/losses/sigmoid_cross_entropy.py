"""The sigmoid cross entropy of scores as logits of binary labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about
from tfr_smooth.losses.pointwise import PointwiseLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SigmoidCrossEntropyLoss(PointwiseLoss):
    r"""Mean binary cross entropy of the labels and the sigmoids of the scores.

    $$-\frac{1}{N} \sum_j \left[y_j \log \sigma(s_j) + (1 - y_j) \log (1 - \sigma(s_j))\right]$$

    (TF-Ranking's `SigmoidCrossEntropyLoss`.) The mean is over the N real documents of each list; TF-Ranking's mean is
    over all documents of the batch, including padding. Labels are probabilities, in [0, 1]; with larger labels, the
    loss has no lower bound. Lists without a relevant document are included, as their labels of 0 are targets too; empty
    lists are excluded.

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
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[0.6, 0.8, 9.0]])
      >>> print(losses.SigmoidCrossEntropyLoss(reduction="none")(labels, scores).numpy().round(4))
      [0.8043]
    """

    about: ClassVar = _about.AboutLoss(
        name="sigmoid_cross_entropy", citation="TF-Ranking's SigmoidCrossEntropyLoss", cost=("N", "N")
    )

    def __init__(self, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, scores)
