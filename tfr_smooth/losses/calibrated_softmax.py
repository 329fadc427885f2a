"""The calibrated softmax loss: a softmax loss whose scores are also estimates of the labels' scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments
from tfr_smooth.losses.lambda_weights import DCGLambdaWeight
from tfr_smooth.losses.ranking_loss import LossOptions
from tfr_smooth.losses.softmax import SoftmaxLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class CalibratedSoftmaxLoss(SoftmaxLoss):
    r"""Softmax cross entropy with a virtual document of score 0, which fixes the scale of the scores.

    $$-\sum_j y_j \log \frac{e^{s_j / \tau}}{1 + \sum_l e^{s_l / \tau}}
      - y_0 \log \frac{1}{1 + \sum_l e^{s_l / \tau}}$$

    (Yan et al., "Scale Calibration of Deep Ranking Models", KDD 2022, Eq. 8; TF-Ranking's `CalibratedSoftmaxLoss`.) At
    the minimum, $e^{s_j / \tau} = y_j / y_0$. The loss is at least 0. Lists without a relevant document are excluded
    if `virtual_label` is 0; else they lower their scores.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      virtual_label: The label $y_0$ of the virtual document, >= 0.
      lambda_weight: Weights of the documents, including the virtual one; see `SoftmaxLoss`. None uses the labels.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.CalibratedSoftmaxLoss(virtual_label=0.1)
      >>> print(loss(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]])).numpy().round(4))
      1.1808
    """

    about: ClassVar = _about.AboutLoss(name="calibrated_softmax", citation="Yan et al. 2022, Eq. 8", cost=("N", "N"))

    def __init__(
        self,
        *,
        virtual_label: float = 0.0,
        lambda_weight: DCGLambdaWeight | None = None,
        temperature: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(lambda_weight=lambda_weight, temperature=temperature, **options)
        self.virtual_label = _arguments.real("virtual_label", virtual_label, least=0.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        column = tf.reduce_sum(tf.zeros_like(scores), axis=1, keepdims=True)  # the score of the virtual document
        labels = tf.concat([column + self.virtual_label, labels], axis=1)
        return super().compute(labels, tf.concat([column, scores], axis=1), tf.concat([column == 0.0, mask], axis=1))

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists that have no gradient."""
        return tf.reduce_any(mask, axis=1) if self.virtual_label else super().counts(labels, mask)
