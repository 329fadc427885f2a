"""The dual learning algorithm: a ranker and a model of examination that weight each other's clicks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import tensorflow as tf

from tfr_smooth import _arguments, _lists
from tfr_smooth.losses.multi_score import MultiScoreLoss
from tfr_smooth.losses.ranking_loss import LossOptions
from tfr_smooth.losses.softmax import cross_entropy

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DualLearningLoss(MultiScoreLoss):
    r"""Dual learning algorithm: softmax losses of relevance and examination, each weighted by the inverse of the other.

    $$-\sum_{i: c_i = 1} \left[\frac{\max_j g_j}{g_i} \log f_i + \frac{\max_j f_j}{f_i} \log g_i\right], \qquad
      g = \mathrm{softmax}(e), \quad f = \mathrm{softmax}(s)$$

    (Ai et al., "Unbiased Learning to Rank with Unbiased Propensity Estimation", SIGIR 2018.) $e_i$ is the logit of the
    examination of document i and $s_i$ that of its relevance. The weights are constant to the gradient. The paper's
    weights are relative to the first document, $g_1 / g_i$ and $f_1 / f_i$; here they are relative to the highest
    probability, so the order of the documents in the tensor does not matter. The two differ by a factor per list that
    does not depend on the clicks. Let $e_i$ depend on the position only. Lists without a click are excluded.

    Call with labels [batch, list] (> 0 for a click; negative labels mark padding) and scores [batch, list, 2]: the
    examination, then the relevance. Returns a scalar, or [batch] for the reduction "none".

    Args:
      max_weight: Maximum of the weights, >= 1. Lower values reduce the variance and add bias.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.9], [0.8, 0.2]]])
      >>> print(losses.DualLearningLoss()(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.2906
    """

    num_scores = 2

    def __init__(self, *, max_weight: float = 20.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.max_weight = _arguments.real("max_weight", max_weight, least=1.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        # Avoids overflow of the weighted sums.
        limit = scores.dtype.max / 16.0 / self.max_weight / _lists.count(mask, scores.dtype)[:, :, tf.newaxis]
        exam, relevance = tf.unstack(tf.clip_by_value(scores, -limit, limit), axis=2)
        clicks = tf.cast(labels > 0.0, scores.dtype)

        def weighted(logits: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
            highest = tf.reduce_max(_lists.fill(others, mask, others.dtype.min), axis=1, keepdims=True)
            gaps = tf.minimum(highest - others, math.log(self.max_weight))
            weights = tf.stop_gradient(clicks * tf.exp(gaps))
            total = tf.reduce_sum(weights, axis=1)
            targets = tf.math.divide_no_nan(weights, total[:, tf.newaxis])
            return total * cross_entropy(targets, logits, mask, 1.0)

        return weighted(relevance, exam) + weighted(exam, relevance)
