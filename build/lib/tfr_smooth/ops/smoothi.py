r"""SmoothI: smooth rank indicators by a recursion of softmaxes.

Thonet, Cinar, Gaussier, Li, Renders: "SmoothI: Smooth Rank Indicators for Differentiable IR Metrics",
AAAI 2022 (arXiv:2105.00942). For positive scores $S_1 .. S_N$ the indicator "document j is at rank r" is

$$I^r_j = \mathrm{softmax}_j\left(\alpha S_j c^r_j\right), \qquad
  c^r_j = \mathrm{sg}\left[\prod_{l<r} (1 - I^l_j - \delta)\right] \qquad \text{(Eq. 7, 9)}$$

where sg is the stop-gradient. A document at a lower rank has its factor c, and with it its input to the softmax,
reduced to about delta. Scores are made positive by subtracting the list's minimum, through which the gradient flows;
so everything here is invariant to a shift of the scores.
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
    r"""The SmoothI ranking: each rank is a softmax over the documents that are not at lower ranks.

    $I^r_j = \mathrm{softmax}_j(\alpha S_j \, \mathrm{sg}[\prod_{l<r} (1 - I^l_j - \delta)])$
    (Eq. 7 and 9 of arXiv:2105.00942).

    Args:
      alpha: Inverse temperature, > 0. The error falls exponentially in it (Theorem 2); the paper searches
        {0.1, 1, 10, 100}. A number or a non-trainable `tf.Variable`.
      delta: In (0, 0.5): what remains of a document's weight after its rank; the paper uses 0.1.
      stop_gradient: True for Eq. 9, False to differentiate through the recursion (Eq. 7; slower, memory O(K N)). The
        values are the same.
      shift: True makes the scores positive by subtracting the list's minimum; False takes them as they are (the
        theorems ask for scores > 0).

    Raises:
      ValueError: If an argument is out of its range.

    Time O(min(K, R) N) per list, with R = log(0.002 / (alpha max|S|)) / log(1 - delta): 55 to 120 ranks at delta = 0.1
    whatever N is. Memory O(N + K).

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
        """Returns [batch, K, list]: each real rank sums to 1 over the real documents. Time and memory O(K N)."""
        arguments = scores, mask, lists.num_ranks(scores, topn), *self._hyperparameters()
        rows = smoothi_programs.recursion(tf.identity, *arguments, stop_gradient=self.stop_gradient)
        return tf.transpose(rows, [1, 0, 2])

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        """Returns [batch, K]: the relevance at each rank."""
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
        r"""Returns [batch]: $\sum_{r=1}^K D(r) \, g(y_r)$, value and gradient in one pass over the ranks."""
        if not self.stop_gradient:
            return super().discounted_gain(scores, relevance, mask, discount=discount, topn=topn, gain=gain)
        at_ranks = tf.cast(discounts.at_ranks(discount, lists.num_ranks(scores, topn), mask), scores.dtype)
        weights = at_ranks, tf.constant(gain.kind == "exponential")
        arguments = scores, tf.stop_gradient(relevance), mask, *weights, *self._hyperparameters()
        return tf.ensure_shape(smoothi_programs.discounted_gain(*arguments), scores.shape[:1])

    def _hyperparameters(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        alpha = temperature.as_tensor(self.alpha, tf.float64)
        return alpha, tf.constant(self.delta, tf.float64), tf.constant(self.shift)
