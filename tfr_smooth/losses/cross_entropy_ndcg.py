"""The cross entropy whose targets are random gains."""

from __future__ import annotations

import math

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _padded
from tfr_smooth.losses import gumbel
from tfr_smooth.losses.ranking_loss import HIGHEST_GRADE, LOSSES, LossOptions, RankingLoss
from tfr_smooth.losses.softmax import cross_entropy


@LOSSES.register("xe_ndcg")
class XENDCGLoss(RankingLoss):
    r"""XE-NDCG: cross entropy of softmax and random gains, a convex bound of NDCG.

    $$-\sum_j \frac{2^{y_j} - \gamma_j}{\sum_l (2^{y_l} - \gamma_l)} \log \mathrm{softmax}(s / \tau)_j$$

    (Bruch, "An Alternative Cross Entropy Loss for Learning-to-Rank", WWW 2021; LightGBM's `rank_xendcg`, whose gradient
    has two more terms.) The $\gamma_j$ are uniform in (0, 1), drawn at each call. Invariant to a shift of the scores.
    The loss is at least 0. Lists without a relevant document are excluded. Weights of documents become one weight per
    list (`list_weights`).

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      seed: Seed of the noise, >= 0; see `GumbelLoss`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> print(losses.XENDCGLoss()(tf.constant([[3.0, 0.0]]), tf.zeros([1, 2])).numpy().round(4))  # for any noise
      0.6931
    """

    shift_invariant = True
    highest_label = HIGHEST_GRADE

    def __init__(self, *, temperature: float = 1.0, seed: int | None = None, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.temperature = _arguments.scale("temperature", temperature)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        noise = gumbel.uniform_noise(labels, 1, self.seed)[:, 0]
        # Divided by the largest 2^y, which may overflow.
        highest = tf.reduce_max(labels, axis=1, keepdims=True)
        gains = tf.exp(math.log(2.0) * (labels - highest)) - noise * tf.exp(-math.log(2.0) * highest)
        gains = _padded.fill(tf.nn.relu(gains), mask, 0.0)
        targets = tf.math.divide_no_nan(gains, tf.reduce_sum(gains, axis=1, keepdims=True))
        return cross_entropy(targets, scores, mask, self.temperature)
