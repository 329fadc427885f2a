"""Regression EM: clicks as examination times relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.losses.multi_score import MultiScoreLoss
from tfr_smooth.losses.pointwise import PointwiseLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ClickEMLoss(PointwiseLoss, MultiScoreLoss):
    r"""Expectation maximization for clicks with the probability $\sigma(e_i) \, \sigma(s_i)$.

    $$\frac{1}{N} \sum_i \left[w_e \, H\big(P(E_i = 1 \mid c_i), \sigma(e_i)\big)
      + w_s \, H\big(P(R_i = 1 \mid c_i), \sigma(s_i)\big)\right]$$

    (Wang et al., "Position Bias Estimation for Unbiased Learning to Rank in Personal Search", WSDM 2018;
    TF-Ranking's `ClickEMLoss`.) $e_i$ is the logit of the examination of document i and $s_i$ that of its relevance. H
    is the binary cross entropy. The targets are the posterior probabilities by the current scores, constant to the
    gradient: 1 for a click, else $P(E_i = 1 \mid 0) = \sigma(e_i - \log(1 + e^{s_i}))$, and
    $P(R_i = 1 \mid 0) = \sigma(s_i - \log(1 + e^{e_i}))$. Let $e_i$ depend on the position and the context only. The
    mean is over the N real documents of each list; TF-Ranking's mean is over all documents of the batch, including
    padding. Lists without a click are included; empty lists are excluded.

    Call with labels [batch, list] (>= 1 for a click; negative labels mark padding) and scores [batch, list, 2]: the
    examination, then the relevance. Returns a scalar, or [batch] for the reduction "none".

    Args:
      exam_loss_weight: Weight $w_e$ of the examination, >= 0.
      rel_loss_weight: Weight $w_s$ of the relevance, >= 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.9], [0.8, 0.2]]])
      >>> print(losses.ClickEMLoss()(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.1463
    """

    num_scores = 2

    def __init__(
        self, *, exam_loss_weight: float = 1.0, rel_loss_weight: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**options)
        self.exam_loss_weight = _arguments.real("exam_loss_weight", exam_loss_weight, least=0.0)
        self.rel_loss_weight = _arguments.real("rel_loss_weight", rel_loss_weight, least=0.0)

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        exam, relevance = tf.unstack(scores, axis=2)
        clicked = labels >= 1.0

        def cross_entropy(logits: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
            posterior = tf.sigmoid(logits - tf.nn.softplus(others))
            targets = tf.stop_gradient(tf.where(clicked, tf.ones_like(posterior), posterior))
            return tf.nn.sigmoid_cross_entropy_with_logits(targets, logits)

        return self.exam_loss_weight * cross_entropy(exam, relevance) + self.rel_loss_weight * cross_entropy(
            relevance, exam
        )
