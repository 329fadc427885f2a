"""The ordinal loss: one binary classifier per grade."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.losses.multi_score import MultiScoreLoss
from tfr_smooth.losses.pointwise import PointwiseLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class OrdinalLoss(PointwiseLoss, MultiScoreLoss):
    r"""Mean over documents of the binary cross entropies of "the label is at least k", for k = 1, ..., M.

    $$-\frac{1}{N} \sum_i \sum_{k=1}^M \left[t_{ik} \log \sigma(s_{ik}) + (1 - t_{ik}) \log (1 - \sigma(s_{ik}))\right],
      \qquad t_{ik} = [y_i \geq k]$$

    (Niu et al., "Ordinal Regression with Multiple Output CNN for Age Estimation", CVPR 2016; TF-Ranking's
    `OrdinalLoss`.) The sum of $\sigma(s_{ik})$ over k estimates the label. The mean is over the N real documents of
    each list; TF-Ranking's mean is over all documents of the batch, including padding. Lists without a relevant
    document are included, as their labels of 0 are targets too; empty lists are excluded. The loss is at least 0.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list, M].
    Returns a scalar, or [batch] for the reduction "none".

    Args:
      ordinal_size: The number of grades above 0, M >= 1.
      use_fraction_label: Whether a label between two grades is a probability: $t_{ik} = \min(\max(y_i - k + 1, 0), 1)$.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(M N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.2], [0.8, 0.3]]])
      >>> print(losses.OrdinalLoss(ordinal_size=2)(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.6305
    """

    def __init__(
        self, *, ordinal_size: int = 1, use_fraction_label: bool = False, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**options)
        self.ordinal_size = self.num_scores = _arguments.integer("ordinal_size", ordinal_size, least=1)
        self.use_fraction_label = _arguments.boolean("use_fraction_label", use_fraction_label)

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        above = labels[:, :, tf.newaxis] - tf.range(self.ordinal_size, dtype=labels.dtype)  # y - k + 1
        targets = tf.clip_by_value(above, 0.0, 1.0) if self.use_fraction_label else tf.cast(above >= 1.0, labels.dtype)
        return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(targets, scores), axis=2)
