"""Mixture EM: each list of clicks comes from one of several models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfr_smooth import _arguments, _lists
from tfr_smooth.losses.multi_score import MultiScoreLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class MixtureEMLoss(MultiScoreLoss):
    r"""Expectation maximization for a mixture of M models, each list of clicks from one of them.

    $$\sum_m p_m L_m, \qquad L_m = \sum_i H(y_i, \sigma(s_{im} / \tau)), \qquad p = \mathrm{softmax}(-\alpha L)$$

    (Yan et al., "Revisiting Two-tower Models for Unbiased Learning to Rank", SIGIR 2022; TF-Ranking's `MixtureEMLoss`.)
    H is the binary cross entropy. The probabilities $p_m$ of the models are constant to the gradient. TF-Ranking
    ignores its `temperature`. The loss is at least 0 for labels in [0, 1]. Lists without a click are excluded.

    Call with labels [batch, list] (1 for a click, 0 for none; negative labels mark padding) and scores
    [batch, list, M]. Returns a scalar, or [batch] for the reduction "none".

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      alpha: Sharpness of the probabilities of the models, >= 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(M N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.9], [0.8, 0.2]]])
      >>> print(losses.MixtureEMLoss()(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.3199
    """

    def __init__(self, *, temperature: float = 1.0, alpha: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)
        self.alpha = _arguments.real("alpha", alpha, least=0.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        # Avoids overflow of the sums.
        limit = labels.dtype.max / 16.0 / _lists.count(mask, labels.dtype)[:, :, tf.newaxis]
        limit = tf.minimum(limit, limit * self.temperature) / max(self.alpha, 1.0)
        logits = tf.clip_by_value(scores, -limit, limit) / self.temperature
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            tf.broadcast_to(labels[:, :, tf.newaxis], tf.shape(logits)), logits
        )
        of_models = tf.reduce_sum(tf.where(mask[:, :, tf.newaxis], losses, tf.zeros_like(losses)), axis=1)
        return tf.reduce_sum(tf.stop_gradient(tf.nn.softmax(-self.alpha * of_models)) * of_models, axis=1)
