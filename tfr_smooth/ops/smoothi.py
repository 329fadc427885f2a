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
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import compiled, discounts, lists, smoothi_programs, temperature
from tfr_smooth.ops.discounts import Discount
from tfr_smooth.ops.gains import Gain
from tfr_smooth.ops.ranking import Ranking

# Up to this size of the softmax's inputs float32 gives 1e-6 (value) and 1e-5 (gradient), and no exponential overflows.
# A sharper softmax multiplies the rounding of its inputs, so such a batch is computed in float64.
_FLOAT32_RANGE = 32.0


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
        return tf.transpose(self._over_ranks(lambda indicators: indicators, scores, mask, topn), [1, 0, 2])

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        """Returns [batch, K]: the relevance at each rank."""
        relevance = tf.stop_gradient(relevance)

        def plain(scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
            return tf.transpose(
                self._over_ranks(lambda row: tf.reduce_sum(relevance * row, axis=1), scores, mask, topn)
            )

        if not self.stop_gradient:
            return plain(scores, relevance, mask)
        ranks = lists.num_ranks(scores, topn)

        def value(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            at_ranks = tf.zeros([1, ranks], scores.dtype)
            by_rank = self._run(smoothi_programs.rank_relevance, scores, relevance, mask, at_ranks)

            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                is_exponential = tf.constant(False)
                return self._run(smoothi_programs.discounted_gain, scores, relevance, mask, upstream, is_exponential)[1]

            return by_rank, gradient

        return compiled.differentiable(value, plain, [relevance, mask])(scores)

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
        relevance = tf.stop_gradient(relevance)

        def plain(scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, shift: tf.Tensor) -> tf.Tensor:
            shifted = Gain(gain.kind, shift)
            return Ranking.discounted_gain(self, scores, relevance, mask, discount=discount, topn=topn, gain=shifted)

        if not self.stop_gradient:
            return plain(scores, relevance, mask, gain.shift)
        at_ranks = discounts.at_ranks(discount, lists.num_ranks(scores, topn), mask)

        def value(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            is_exponential = tf.constant(gain.kind == "exponential")
            arguments = scores, relevance, mask, at_ranks, is_exponential
            total, gradient = self._run(smoothi_programs.discounted_gain, *arguments)
            return total, lambda upstream: upstream[:, tf.newaxis] * gradient

        return compiled.differentiable(value, plain, [relevance, mask, gain.shift])(scores)

    def _run(
        self,
        program: Callable[..., Any],
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        at_ranks: tf.Tensor,
        *gain: tf.Tensor,
    ) -> Any:
        """Runs a program: in float32 where that is enough, else in float64."""
        highest = tf.reduce_max(lists.fill(scores, mask, scores.dtype.min), axis=1)
        lowest = tf.reduce_min(lists.fill(scores, mask, scores.dtype.max), axis=1)
        # Halves, as the fill values of a list of padding are far apart.
        spread = highest / 2.0 - lowest / 2.0 if self.shift else tf.maximum(highest, -lowest) / 2.0
        alpha, delta = temperature.as_tensor(self.alpha, tf.float64), tf.constant(self.delta, tf.float64)
        largest = 2.0 * alpha * tf.cast(tf.reduce_max(tf.pad(spread, [[0, 1]])), tf.float64)
        small_from = smoothi_programs.small_from(largest, self.delta, scores.dtype)
        tensors = [compiled.pad(tensor) for tensor in (scores, relevance, mask, tf.cast(at_ranks, scores.dtype))]

        def in_precision(dtype: tf.DType) -> Any:
            arrays = [tensor if tensor.dtype == tf.bool else tf.cast(tensor, dtype) for tensor in tensors]
            numbers = [tf.cast(number, dtype) for number in (alpha, delta)]
            results = program(*arrays, *gain, tf.shape(at_ranks)[1], small_from, *numbers, tf.constant(self.shift))
            return tf.nest.map_structure(lambda result: tf.cast(result, scores.dtype), results)

        if scores.dtype == tf.float64:
            results = in_precision(tf.float64)
        else:
            is_sharp = largest > _FLOAT32_RANGE
            results = tf.cond(is_sharp, lambda: in_precision(tf.float64), lambda: in_precision(tf.float32))
        if isinstance(results, tuple | list):
            total, gradient = results
            return tf.ensure_shape(total[: tf.shape(scores)[0]], scores.shape[:1]), compiled.unpad(gradient, scores)
        return results[: tf.shape(scores)[0], : tf.shape(at_ranks)[1]]

    def _over_ranks(
        self, read: Callable[[tf.Tensor], tf.Tensor], scores: tf.Tensor, mask: tf.Tensor, topn: int | None
    ) -> tf.Tensor:
        """Returns what `read` makes of each rank's indicators, [K, batch, ..], by TensorFlow's own operations."""
        ranks = lists.num_ranks(scores, topn)
        alpha, delta = temperature.as_tensor(self.alpha, tf.float64), tf.constant(self.delta, tf.float64)
        logits = smoothi_programs.logits(tf.cast(scores, tf.float64), mask, alpha, self.shift)
        real_ranks = tf.transpose(lists.rank_mask(mask, ranks))

        def body(rank: tf.Tensor, factors: tf.Tensor, rows: tf.TensorArray) -> tuple[Any, ...]:
            held = tf.stop_gradient(factors) if self.stop_gradient else factors
            indicators = smoothi_programs.softmax(logits * held, mask)
            row = tf.cast(indicators * tf.cast(real_ranks[rank, :, tf.newaxis], tf.float64), scores.dtype)
            return rank + 1, held * (1.0 - delta - indicators), rows.write(rank, read(row))

        rows = tf.TensorArray(scores.dtype, size=ranks)
        state = (0, tf.ones_like(logits), rows)
        return tf.while_loop(lambda rank, *_: rank < ranks, body, state, maximum_iterations=ranks)[2].stack()
