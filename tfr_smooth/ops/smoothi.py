r"""SmoothI: smooth rank indicators by a recursion of softmaxes.

Thonet, Cinar, Gaussier, Li, Renders: "SmoothI: Smooth Rank Indicators for Differentiable IR Metrics",
AAAI 2022 (arXiv:2105.00942). For positive scores $S_1 .. S_N$ the indicator "document j is at rank r" is

$$I^r_j = \mathrm{softmax}_j\left(\alpha S_j c^r_j\right), \qquad
  c^r_j = \mathrm{sg}\left[\prod_{l<r} (1 - I^l_j - \delta)\right] \qquad \text{(Eq. 7, 9)}$$

where sg is the stop-gradient. A document that was found at a lower rank has its factor c, and with it its
place in the softmax, reduced to about delta. Scores are made positive by subtracting the list's minimum, through
which the gradient flows; so everything here is invariant to a shift of the scores.

Why this is quick: with the stop-gradient, rank r enters the gradient through its own softmax alone,
$\partial y_r / \partial S_j = \alpha c^r_j I^r_j (rel_j - y_r)$ for $y_r = \sum_j rel_j I^r_j$. One running vector c
[batch, list] serves value and gradient: nothing of size [rank, list] is kept, and where the metric's gradient to y_r is
known at rank r, one pass does both (`SmoothI.gained`). As $|c^r_j| \le (1-\delta)^{r-1}$, from some rank on the inputs
of every softmax are so small that two terms of the exponential's series give it to the last bit. That rank is known
before the loop starts, and the ranks after it have a closed form, in two moments of the inputs. XLA compiles the loops
(`smoothi_loops`), for batches that are padded to few sizes: a new size takes it some tenths of a second, once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import gains, lists, smoothi_loops


@dataclasses.dataclass(frozen=True)
class SmoothI:
    r"""The SmoothI ranking: hand it to any metric of `tfr_smooth.functional` to make that metric smooth.

    $I^r_j = \mathrm{softmax}_j(\alpha S_j \, \mathrm{sg}[\prod_{l<r} (1 - I^l_j - \delta)])$
    (Eq. 7 and 9 of arXiv:2105.00942).

    Args:
      alpha: Inverse temperature, > 0. The error falls exponentially in it (Theorem 2); the paper searches
        {0.1, 1, 10, 100}.
      delta: In (0, 0.5): what remains of a document's weight after its rank; the paper uses 0.1.
      stop_gradient: True for Eq. 9, False to differentiate through the recursion (Eq. 7). The values are the same.
      shift: True makes the scores positive by subtracting the list's minimum; False takes them as they are (the
        theorems ask for scores > 0).

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> y = ops.SmoothI(alpha=100.0).relevance(tf.constant([[0.0, 3.0, 1.0]]), tf.constant([[0.0, 2.0, 1.0]]))
      >>> print(y.numpy().round(3))
      [[2. 1. 0.]]
    """

    alpha: float = 1.0
    delta: float = 0.1
    stop_gradient: bool = True
    shift: bool = True

    # What the loops compute in; None: what the scores need.
    _precision: ClassVar[tf.DType | None] = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "alpha", _arguments.real("alpha", self.alpha, above=0.0))
        object.__setattr__(self, "delta", _arguments.real("delta", self.delta, above=0.0, below=0.5))
        _arguments.boolean("stop_gradient", self.stop_gradient)
        _arguments.boolean("shift", self.shift)

    def passes_over_pairs(self, topn: int | None) -> float:
        """Returns infinity: the loops over ranks are compiled in any case, and with them the loss may as well be."""
        return math.inf if self.stop_gradient else 0

    def cases(self, scores: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tuple[SmoothI, ...]]:
        """Returns which of some rankings does for these scores (an int32 scalar), and those rankings.

        Each is this one, but computed in one precision: a program that XLA has to compile for all scores has the loops
        twice, and takes twice the time.

        Args:
          scores: [batch, list], float32 or float64.
          mask: [batch, list] bool, False for padding.
        """
        if scores.dtype == tf.float64 or type(self) is not SmoothI:
            return tf.constant(0), (self,)
        fields = dataclasses.asdict(self)
        is_sharp = smoothi_loops.needs_float64(self._batch(scores, scores, mask))
        return tf.cast(is_sharp, tf.int32), (_InFloat32(**fields), _InFloat64(**fields))

    def relevance(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor | None = None,
        topn: int | None = None,
    ) -> tf.Tensor:
        """Returns the relevance found at ranks 1..K; see `smoothi_relevance`."""
        topn = _arguments.topn(topn)
        if self.stop_gradient:
            scores, mask = lists.checked(scores, mask)
            return self._relevance_by_loops(
                scores, lists.typed("relevance", relevance, scores), mask, lists.cut(scores, topn)
            )
        scores, mask, poison = lists.clean(scores, mask)
        relevance = lists.aligned("relevance", relevance, scores, mask)
        ranks = lists.cut(scores, topn)
        logits = smoothi_loops.logits(tf.cast(scores, tf.float64), mask, self.alpha, self.shift)
        found = tf.cast(tf.transpose(_relevance_by_recursion(logits, relevance, mask, ranks, self)), scores.dtype)
        return poison * lists.filled(found, lists.rank_mask(mask, ranks), 0.0)

    def gained(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        worth: tf.Tensor,
        gain: str = "linear",
    ) -> tf.Tensor:
        r"""What the ranks give together: $\sum_r w_r g(y_r)$, $y_r$ being the relevance found at rank r.

        Sums of this form are P@K and NDCG@K (Corollary 1 of arXiv:2105.00942 is about them). As their gradient to y_r
        is known at rank r, one pass over the ranks gives value and gradient.

        Args:
          scores: [batch, list], any float type.
          relevance: [batch, list], what is found at a document; a constant, no gradient flows to it.
          mask: [batch, list] bool, False for padding.
          worth: [batch, K] or [1, K], the w of ranks 1..K; a constant. Ranks beyond the real documents give nothing.
          gain: g: "linear" for y, "exponential" for 2^y - 1.

        Returns:
          [batch], float64 for float64 scores, else float32.

        Time O(min(K, R) N) a list, as for `smoothi_relevance`, memory O(N + K).
        """
        _arguments.choice("gain", gain, gains.GAINS)
        if not self.stop_gradient:
            found = self.relevance(scores, relevance, mask)
            worth = tf.cast(worth[:, : tf.shape(found)[1]], found.dtype)
            return tf.reduce_sum(worth * gains.gained(found[:, : tf.shape(worth)[1]], gain), axis=1)
        scores, mask = lists.checked(scores, mask)
        relevance = lists.typed("relevance", relevance, scores)

        @tf.custom_gradient
        def total(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            value, slopes = smoothi_loops.gain_and_slopes(self._batch(scores, relevance, mask), worth, gain)
            return value, lambda upstream: upstream[:, tf.newaxis] * slopes

        return total(scores)

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor | None = None, topn: int | None = None) -> tf.Tensor:
        """Returns the rank indicators; see `smoothi_indicators`."""
        return smoothi_indicators(scores, mask, topn=topn, **dataclasses.asdict(self))

    def _batch(self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor) -> smoothi_loops.Batch:
        return smoothi_loops.Batch(scores, relevance, mask, self.alpha, self.delta, self.shift, self._precision)

    def _relevance_by_loops(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor | int
    ) -> tf.Tensor:
        """[batch, K], with the gradient of Eq. 9 in memory O(N + K)."""

        @tf.custom_gradient
        def found_at_ranks(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            batch = self._batch(scores, relevance, mask)
            found = smoothi_loops.found_at_ranks(batch, ranks)
            return found, lambda upstream: smoothi_loops.slopes_of_found(batch, upstream)

        return found_at_ranks(scores)


class _InFloat32(SmoothI):
    _precision = tf.float32


class _InFloat64(SmoothI):
    _precision = tf.float64


def smoothi_relevance(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    alpha: float = 1.0,
    delta: float = 0.1,
    topn: int | None = None,
    stop_gradient: bool = True,
    shift: bool = True,
) -> tf.Tensor:
    r"""The relevance found at each rank: $y_r = \sum_j rel_j I^r_j$ (the sum in Eq. 10 to 12 of arXiv:2105.00942).

    Every SmoothI metric is a function of these numbers.

    Args:
      scores: [batch, list], any float type. float16 and bfloat16 are computed in float32.
      relevance: [batch, list], what is found at a document; a constant, no gradient flows to it.
      mask: [batch, list] bool, False for padding. None: all documents are real. What stands in a padded place,
        NaN too, reaches nothing.
      alpha: Inverse temperature, > 0.
      delta: In (0, 0.5).
      topn: The number of ranks K; None or more than the list has: the list's length.
      stop_gradient: True for Eq. 9; False differentiates through the recursion (Eq. 7).
      shift: Whether to subtract the list's minimum from the scores.

    Returns:
      [batch, K], float64 for float64 scores, else float32. Ranks beyond the number of real documents hold 0.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(K N) a list, or O(R N) if fewer: R = log(0.002 / (alpha max|S|)) / log(1 - delta), 55 to 120 ranks
    at delta = 0.1 whatever N is (for float64 scores log(1e-5 / ..), 50 more). Memory O(N + K) a list for value and
    gradient; O(K N) with `stop_gradient=False`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> y = ops.smoothi_relevance(tf.constant([[2.0, 1.0, 0.0]]), tf.constant([[1.0, 0.0, 0.0]]), topn=2)
      >>> print(y.numpy().round(4))
      [[0.6652 0.3534]]
    """
    return SmoothI(alpha, delta, stop_gradient, shift).relevance(scores, relevance, mask, topn)


def smoothi_indicators(
    scores: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    alpha: float = 1.0,
    delta: float = 0.1,
    topn: int | None = None,
    stop_gradient: bool = True,
    shift: bool = True,
) -> tf.Tensor:
    r"""The smooth rank indicators $I^r_j$ themselves (Eq. 7 and 9 of arXiv:2105.00942).

    For looking at, and for functions of the indicators that no metric here covers; the metrics use
    `smoothi_relevance`, which needs no [rank, list] array.

    Args:
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for padding. None: all documents are real.
      alpha: Inverse temperature, > 0.
      delta: In (0, 0.5).
      topn: The number of ranks K; None or more than the list has: the list's length.
      stop_gradient: True for Eq. 9; False differentiates through the recursion (Eq. 7).
      shift: Whether to subtract the list's minimum from the scores.

    Returns:
      [batch, K, list], float64 for float64 scores, else float32 (computed in float64). Each rank sums to 1 over the
      real documents; padded documents and ranks beyond the number of real documents hold 0.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory O(K N) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> print(ops.smoothi_indicators(tf.constant([[1.0, 3.0, 2.0]]), alpha=100.0).numpy().round(2))
      [[[0. 1. 0.]
        [0. 0. 1.]
        [1. 0. 0.]]]
    """
    ranking = SmoothI(alpha, delta, stop_gradient, shift)
    topn = _arguments.topn(topn)
    scores, mask, poison = lists.clean(scores, mask)
    ranks = lists.cut(scores, topn)
    logits, real = smoothi_loops.logits(tf.cast(scores, tf.float64), mask, alpha, shift), tf.cast(mask, tf.float64)
    rows = tf.TensorArray(tf.float64, size=ranks, element_shape=logits.shape)

    def body(rank: tf.Tensor, factors: tf.Tensor, rows: tf.TensorArray) -> tuple[Any, ...]:
        held = tf.stop_gradient(factors) if stop_gradient else factors
        row = _softmax(logits * held, real, ranking)
        return rank + 1, held * (1.0 - row - delta), rows.write(rank, row)

    state = (0, tf.ones_like(logits), rows)
    _, _, rows = tf.while_loop(lambda rank, *_: rank < ranks, body, state, maximum_iterations=ranks)
    indicators = tf.transpose(rows.stack(), [1, 0, 2])
    indicators = tf.where(lists.rank_mask(mask, ranks)[:, :, tf.newaxis], indicators, tf.zeros_like(indicators))
    return poison[:, :, tf.newaxis] * tf.cast(indicators, scores.dtype)


def _softmax(inputs: tf.Tensor, real: tf.Tensor, ranking: SmoothI) -> tf.Tensor:
    """Softmax over the documents with `real` = 1; all zero for a list without any."""
    if not ranking.shift:  # With the shift, the lowest document's input is 0 too: padding never is the highest.
        inputs = tf.where(real > 0, inputs, tf.constant(-smoothi_loops.LARGEST, inputs.dtype))
    highest = tf.stop_gradient(tf.reduce_max(inputs, axis=1, keepdims=True))
    weights = tf.exp(inputs - highest) * real
    # The highest contributes exp(0) = 1: the maximum is a no-op except for a list of padding.
    return weights / tf.maximum(tf.reduce_sum(weights, axis=1, keepdims=True), 1.0)


def _relevance_by_recursion(
    logits: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor | int, ranking: SmoothI
) -> tf.Tensor:
    """[K, batch] float64, differentiated through the whole recursion (Eq. 7) by TensorFlow: memory O(K N)."""
    real, relevance = tf.cast(mask, tf.float64), tf.cast(relevance, tf.float64)
    found = tf.TensorArray(tf.float64, size=ranks, element_shape=logits.shape[:1])

    def body(rank: tf.Tensor, factors: tf.Tensor, found: tf.TensorArray) -> tuple[Any, ...]:
        indicators = _softmax(logits * factors, real, ranking)
        found = found.write(rank, tf.reduce_sum(relevance * indicators, axis=1))
        return rank + 1, factors * (1.0 - indicators - ranking.delta), found

    state = (0, tf.ones_like(logits), found)
    _, _, found = tf.while_loop(lambda rank, *_: rank < ranks, body, state, maximum_iterations=ranks)
    return found.stack()
