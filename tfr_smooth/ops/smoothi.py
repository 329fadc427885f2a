r"""SmoothI: smooth rank indicators from a recursion of softmaxes.

Thonet, Cinar, Gaussier, Li, Renders: "SmoothI: Smooth Rank Indicators for Differentiable IR Metrics",
arXiv 2021 (arXiv:2105.00942). For positive scores $S_1 .. S_N$, the indicator of document j at rank r is

$$I^r_j = \mathrm{softmax}_j\left(\alpha S_j c^r_j\right), \qquad
  c^r_j = \mathrm{sg}\left[\prod_{l<r} (1 - I^l_j - \delta)\right] \qquad \text{(Eq. 7, 9)}$$

where sg is the stop-gradient. After the rank of a document, its factor c and therefore its logit are reduced to about
delta times their value. Subtracting the list's minimum makes the scores positive. The gradient flows through the
minimum, so values and gradients are invariant to a shift of the scores.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import discounts, lists, smoothi_programs, temperature
from tfr_smooth.ops.discounts import Discount
from tfr_smooth.ops.gains import Gain
from tfr_smooth.ops.ranking import Ranking


@dataclasses.dataclass(frozen=True)
class SmoothI(Ranking):
    r"""The SmoothI ranking: each rank is a softmax that excludes the documents at earlier ranks.

    $I^r_j = \mathrm{softmax}_j(\alpha S_j \, \mathrm{sg}[\prod_{l<r} (1 - I^l_j - \delta)])$
    (Eq. 7 and 9 of arXiv:2105.00942).

    Args:
      alpha: Inverse temperature, > 0. The error decreases exponentially with it (Theorem 2); the paper searches
        {0.1, 1, 10, 100}. A number or a non-trainable `tf.Variable`.
      delta: Share of a document's logit that remains after its rank, in (0, 0.5); the paper uses 0.1.
      stop_gradient: True uses Eq. 9; False differentiates through the recursion (Eq. 7; slower, memory O(K N)). The
        values are the same.
      shift: True subtracts the list's minimum from the scores; False uses unmodified scores, which the theorems require
        to be > 0.

    Raises:
      ValueError: If an argument is out of range.

    Time O(min(K, R) N) per list, with R = log(0.002 / (alpha max|S|)) / log(1 - delta): 55 to 120 ranks for delta =
    0.1, independent of N. Memory O(N + K).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(ops.SmoothI(alpha=100.0).indicators(scores, scores > 0.0).numpy().round(2))
      [[[0. 1. 0.]
        [0. 0. 1.]
        [1. 0. 0.]]]
    """

    alpha: float | tf.Variable = 1.0
    delta: float = 0.1
    stop_gradient: bool = True
    shift: bool = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "alpha", _arguments.temperature("alpha", self.alpha))
        object.__setattr__(self, "delta", _arguments.real("delta", self.delta, above=0.0, below=0.5))
        _arguments.boolean("stop_gradient", self.stop_gradient)
        _arguments.boolean("shift", self.shift)

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns the rank indicators $I^r_j$, which sum to 1 over the documents at each rank.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.

        Time and memory O(K N) per list.
        """
        arguments = scores, mask, lists.num_ranks(scores, topn), *self._hyperparameters()
        rows = smoothi_programs.recursion(tf.identity, *arguments, stop_gradient=self.stop_gradient)
        return tf.transpose(rows, [1, 0, 2])

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        """Returns the relevance at each rank.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding. No gradient flows to it.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K]; 0 at ranks beyond the real documents.
        """
        at_ranks = tf.zeros([1, lists.num_ranks(scores, topn)], scores.dtype)
        arguments = scores, tf.stop_gradient(relevance), mask, at_ranks, *self._hyperparameters()
        if not self.stop_gradient:
            return smoothi_programs.plain_relevance(*arguments, stop_gradient=False)
        return tf.ensure_shape(smoothi_programs.rank_relevance(*arguments), [scores.shape[0], at_ranks.shape[1]])

    def discounted_gain(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        *,
        discount: Discount = "log2",
        topn: int | None = None,
        gain: Gain,
    ) -> tf.Tensor:
        r"""Returns $\sum_{r=1}^K D(r) \, g(y_r)$, with value and gradient in one pass over the ranks.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding. No gradient flows to it.
          mask: [batch, list] bool, False for padding.
          discount: The discount D; see `functional.NDCG`.
          topn: The number of ranks K, >= 1; None for all ranks.
          gain: The gain g, exponential or linear.

        Returns:
          [batch].
        """
        if not self.stop_gradient:
            return super().discounted_gain(scores, relevance, mask, discount=discount, topn=topn, gain=gain)
        at_ranks = tf.cast(discounts.at_ranks(discount, lists.num_ranks(scores, topn), mask), scores.dtype)
        weights = at_ranks, tf.constant(gain.kind == "exponential")
        arguments = scores, tf.stop_gradient(relevance), mask, *weights, *self._hyperparameters()
        return tf.ensure_shape(smoothi_programs.discounted_gain(*arguments), scores.shape[:1])

    def _hyperparameters(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        alpha = temperature.as_tensor(self.alpha, tf.float64)
        return alpha, tf.constant(self.delta, tf.float64), tf.constant(self.shift)
