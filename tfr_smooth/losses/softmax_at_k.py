"""SL@K, the softmax loss with weights for the documents among the first K."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss
from tfr_smooth.losses.softmax import log_softmax

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SoftmaxAtKLoss(RankingLoss):
    r"""SL@K: a softmax loss for NDCG@K, in which relevant documents near or above rank K count most.

    $$-\sum_j y_j \, \sigma\!\left(\frac{s_j - \beta}{\tau_w}\right) \log \mathrm{softmax}(s / \tau)_j$$

    where $\beta$ is the K-th highest score and $\sigma$ the sigmoid (Yang et al., "Breaking the Top-K Barrier", KDD
    2025). The authors estimate $\beta$ from samples every few epochs, as a constant. Here it is exact, with its
    gradient, so that a step along the gradient lowers the loss. Invariant to a shift of the scores. The loss is at
    least 0. Lists without a relevant document are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      topn: The cutoff K, >= 1. In shorter lists, beta is the lowest score.
      weight_temperature: $\tau_w$, the divisor of the scores in the weights, > 0. The larger, the nearer to half the
        `SoftmaxLoss`.
      temperature: $\tau$, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(N log K) and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.SoftmaxAtKLoss(topn=1)
      >>> print(loss(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 1.0, 9.0]])).numpy().round(4))
      0.3466
    """

    about: ClassVar = _about.AboutLoss(name="softmax_at_k", citation="Yang et al. 2025", cost=("N log K", "N"))

    def __init__(
        self,
        *,
        topn: int = 20,
        weight_temperature: float = 1.0,
        temperature: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        self.topn = _arguments.integer("topn", topn, least=1)
        self.weight_temperature = _arguments.real("weight_temperature", weight_temperature, above=0.0)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        size = _lists.num_ranks(scores, self.topn)
        ranked = tf.math.top_k(tf.stop_gradient(_lists.fill(scores, mask, scores.dtype.min)), size).values
        lowest = _lists.extremes(ranked, _lists.rank_mask(mask, size))[0][:, tf.newaxis]
        # Tied documents share the gradient of the threshold. Their mean difference from it is 0. The mean of the scores
        # themselves has the same gradient, but TensorFlow also derives it by the number of ties, which would overflow.
        is_at_k = tf.logical_and(mask, tf.equal(scores, lowest))
        differences = tf.where(is_at_k, scores, lowest) - lowest
        ties = _lists.count(is_at_k, scores.dtype)
        threshold = lowest + tf.reduce_sum(differences, axis=1, keepdims=True) / ties
        weights = tf.sigmoid((scores - threshold) / self.weight_temperature)
        return -tf.reduce_sum(labels * weights * log_softmax(scores, mask, self.temperature), axis=1)
