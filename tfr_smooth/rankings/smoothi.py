r"""SmoothI: smooth rank indicators from a recursion of softmaxes.

Thonet, Cinar, Gaussier, Li, Renders: "SmoothI: Smooth Rank Indicators for Differentiable IR Metrics",
arXiv 2021 (arXiv:2105.00942). For positive scores $S_1 .. S_N$, the indicator of document j at rank r is

$$I^r_j = \mathrm{softmax}_j\left(\alpha S_j c^r_j\right), \qquad
  c^r_j = \mathrm{sg}\left[\prod_{l<r} (1 - I^l_j - \delta)\right] \qquad \text{(Eq. 7, 9)}$$

where sg is the stop-gradient. After the rank of a document, its factor c and therefore its logit are reduced to about
delta times their value. Subtracting the list's minimum makes the scores positive. The gradient flows through the
minimum, so values and gradients are invariant to a shift of the scores.

As the product is constant to the gradient, rank r contributes to the gradient only through its own softmax,
$\partial y_r / \partial S_j = \alpha c^r_j I^r_j (rel_j - y_r)$ for $y_r = \sum_j rel_j I^r_j$. So a loop over the
ranks computes value and gradient with one array c [batch, list].

Since $|c^r_j| \le (1-\delta)^{r-1}$, the softmax inputs $x_j = \alpha S_j c^r_j$ eventually become so small that two
terms of the exponential's series are exact to the last bit. The loop ends there, and the remaining ranks have a closed
form (`_Tail`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import dcg
from tfr_smooth.rankings.ranking import RANKINGS, Gain, Ranking

# Softmax inputs below this magnitude are small, by the type of the scores. The closed form omits their third power in
# the values (1e-8), and their second power, relative to the largest, in the gradient.
_SMALL = {tf.float32: 2e-3, tf.float64: 1e-5}
# Up to this magnitude of the softmax inputs, float32 is accurate to 1e-6 (values) and 1e-5 (gradients), and no
# exponential overflows. A sharper softmax amplifies the rounding of its inputs, so it is computed in float64.
_FLOAT32_RANGE = 32.0
# Inputs are clipped here, far from overflow: the softmax is exactly 0 or 1 long before.
_LARGEST = 1e37
# With larger softmax inputs, a derivative through the products of Eq. 7 may overflow.
_STEEPEST = 1e6


@RANKINGS.register("smoothi")
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
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(rankings.SmoothI(alpha=100.0).indicators(scores, scores > 0.0).numpy().round(2))
      [[[0. 1. 0.]
        [0. 0. 1.]
        [1. 0. 0.]]]
    """

    alpha: float | tf.Variable = 10.0
    delta: float = 0.1
    stop_gradient: bool = True
    shift: bool = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "alpha", _arguments.temperature("alpha", self.alpha))
        object.__setattr__(self, "delta", _arguments.real("delta", self.delta, above=0.0, below=0.5))
        _arguments.boolean("stop_gradient", self.stop_gradient)
        _arguments.boolean("shift", self.shift)

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]
        """Whether the lowest score is subtracted."""
        return self.shift

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
        arguments = scores, mask, _padded.num_ranks(scores, topn), self._settings()
        return tf.transpose(_recursion(*arguments, stop_gradient=self.stop_gradient), [1, 0, 2])

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
        relevance = tf.stop_gradient(relevance)
        if not self.stop_gradient:
            return super().rank_relevance(scores, relevance, mask, topn)
        at_ranks = tf.zeros([1, _padded.num_ranks(scores, topn)], scores.dtype)
        by_rank = _RANKS[None](scores, relevance, mask, at_ranks, *self._settings())
        return tf.ensure_shape(by_rank, [scores.shape[0], at_ranks.shape[1]])

    def discounted_gain(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        *,
        discount: dcg.Discount = "log2",
        topn: int | None = None,
        gain: Gain,
    ) -> tf.Tensor:
        r"""Returns $\sum_{r=1}^K D(r) \, g(y_r)$, with value and gradient in one pass for the gains of `NDCG`.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding. No gradient flows to it.
          mask: [batch, list] bool, False for padding.
          discount: The discount D; see `measures.NDCG`.
          topn: The number of ranks K, >= 1; None for all ranks.
          gain: The gain g, an elementwise function of relevance.

        Returns:
          [batch].
        """
        if not self.stop_gradient or not isinstance(gain, dcg.NDCGGain):
            return super().discounted_gain(scores, relevance, mask, discount=discount, topn=topn, gain=gain)
        discounts = dcg.discounts_at_ranks(discount, _padded.num_ranks(scores, topn), mask)
        arguments = scores, tf.stop_gradient(relevance), mask, tf.cast(discounts, scores.dtype), *self._settings()
        return tf.ensure_shape(_RANKS[gain.kind](*arguments), scores.shape[:1])

    def _settings(self) -> _Settings:
        alpha = _compiled.scalar(self.alpha, tf.float64)
        return _Settings(alpha, tf.constant(self.delta, tf.float64), tf.constant(self.shift))


def _recursion(
    scores: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor | int, settings: _Settings, *, stop_gradient: bool
) -> tf.Tensor:
    """Returns the indicators of each rank, [K, batch, list], using TensorFlow's own operations."""
    inputs = _logits(tf.cast(scores, tf.float64), mask, settings)
    real_ranks = tf.transpose(_padded.rank_mask(mask, ranks))

    def exponents(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        # The gradient is that of the logits themselves, also for ties, unless it would overflow.
        near = tf.clip_by_value(logits, -_STEEPEST, _STEEPEST)
        return tf.stop_gradient(_exponents(logits, mask)) + (near - tf.stop_gradient(near))

    def write(rank: tf.Tensor, indicators: tf.Tensor, _: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.TensorArray]:
        row = indicators * tf.cast(real_ranks[rank, :, tf.newaxis], tf.float64)
        return (rows.write(rank, tf.cast(row, scores.dtype)),)

    hold = tf.stop_gradient if stop_gradient else tf.identity
    body = functools.partial(_next_rank, inputs, mask, settings.delta, write, exponents, hold)
    state = (0, tf.ones_like(inputs), tf.TensorArray(scores.dtype, size=ranks))
    return tf.while_loop(lambda rank, *_: rank < ranks, body, state, maximum_iterations=ranks)[2].stack()


def _next_rank(
    inputs: tf.Tensor,
    mask: tf.Tensor,
    delta: tf.Tensor,
    record: Callable[..., tuple[Any, ...]],
    exponents: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    hold: Callable[[tf.Tensor], tf.Tensor],
    rank: tf.Tensor,
    factors: tf.Tensor,
    *recorded: Any,
) -> tuple[Any, ...]:
    """Computes the indicators of a rank from its factors c (Eq. 7), and records them: the body of a loop over ranks.

    Args:
      inputs: [batch, list], alpha S.
      mask: [batch, list] bool.
      delta: The constant of Eq. 7, in the type of the inputs.
      record: From the rank, its indicators, its factors and what was recorded, to what is recorded.
      exponents: From the logits and the mask to the inputs of the exponential.
      hold: Applied to the factors: `tf.stop_gradient` for Eq. 9.
      rank: The rank, starting at 0.
      factors: [batch, list], c.
      *recorded: What was recorded at earlier ranks.

    Returns:
      The next rank, its factors, and what was recorded.
    """
    factors = hold(factors)
    indicators = _softmax(tf.exp(exponents(inputs * factors, mask)), mask)
    return rank + 1, factors * (1.0 - delta - indicators), *record(rank, indicators, factors, *recorded)


def _ranks(
    gain: str | None,
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    discounts: tf.Tensor,
    *constants: tf.Tensor,
) -> _compiled.WithGradient:
    r"""Computes the relevance y at each rank, or $\sum_r D_r g(y_r)$ with its gradient in one pass over the ranks.

    Args:
      gain: The kind of g, one of `dcg.GAINS`. None computes the relevance.
      scores: [batch, list], float32 or float64.
      relevance: [batch, list], 0 at padding.
      mask: [batch, list] bool.
      discounts: [batch or 1, K], D in the type of the scores; only their shape matters without a gain.
      *constants: The `_Settings`.

    Returns:
      The sum, [batch], or the relevance, [batch, K], and its gradient function.
    """
    settings = _Settings(*constants)
    is_sharp, looped, has_tail = _plan(scores, mask, discounts, settings)
    arrays = [_compiled.pad(tensor) for tensor in (scores, relevance, mask)]
    weights = _of_real_ranks(_compiled.pad(discounts), arrays[2])

    def in_precision(dtype: tf.DType) -> tuple[tf.Tensor, ...]:
        # The logits and the gradient of the scores are computed outside of the program, which compiles faster then.
        precise = tf.cast(arrays[0], dtype)
        shared = [looped, tf.cast(settings.delta, dtype)]
        lists = [_logits(precise, arrays[2], settings), *(tf.cast(x, dtype) for x in (arrays[1], weights)), arrays[2]]
        by_rank, gradient, factors = _compiled.over_lists(_LOOPS[gain], shared, lists, (dtype,) * 3)
        gradient = _to_scores(gradient, precise, arrays[2], settings)
        return tf.cast(by_rank, tf.float64), *(tf.cast(x, scores.dtype) for x in (gradient, factors))

    if scores.dtype == tf.float64:
        by_rank, gradient, factors = in_precision(tf.float64)
    else:
        precisions = (functools.partial(in_precision, dtype) for dtype in (tf.float64, tf.float32))
        by_rank, gradient, factors = tf.cond(is_sharp, *precisions)

    def with_tail() -> tuple[tf.Tensor, tf.Tensor]:
        inputs = _logits(arrays[0], arrays[2], settings)
        tail = _Tail(inputs, arrays[1], arrays[2], factors, settings.delta, looped, weights)
        with_values = by_rank + tf.cast(tail.only(tail.rank_relevance), by_rank.dtype)
        if gain is None:
            return with_values, gradient
        derivative = dcg.NDCGGain.of(gain, arrays[1]).derivative(tail.rank_relevance)
        of_tail = _to_scores(tail.gradient(weights * derivative), arrays[0], arrays[2], settings)
        return with_values, gradient + of_tail

    by_rank, gradient = map(tf.stop_gradient, tf.cond(has_tail, with_tail, lambda: (by_rank, gradient)))
    by_rank = _of_real_ranks(by_rank, arrays[2])[: tf.shape(scores)[0], : tf.shape(discounts)[1]]
    if gain is not None:
        gradient = _compiled.unpad(gradient, scores)
        gains = dcg.NDCGGain.of(gain, tf.cast(relevance, by_rank.dtype))(by_rank)
        total = tf.reduce_sum(tf.cast(discounts, by_rank.dtype) * gains, axis=1)
        return tf.cast(total, scores.dtype), lambda upstream: upstream[:, tf.newaxis] * gradient

    def of_ranks(upstream: tf.Tensor) -> tf.Tensor:
        _, of_sum = _ranks("linear", scores, relevance, mask, upstream, *constants)
        return of_sum(tf.ones_like(upstream[:, 0]))

    return tf.cast(by_rank, scores.dtype), of_ranks


# By the kind of the gain.
_RANKS = {kind: _compiled.differentiable(functools.partial(_ranks, kind)) for kind in (None, *dcg.GAINS)}


def _plan(
    scores: tf.Tensor, mask: tf.Tensor, at_ranks: tf.Tensor, settings: _Settings
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns how to compute K ranks, given at_ranks [.., K].

    Returns:
      Whether float32 is not accurate enough; the number of ranks of the loop, int32; whether ranks are left after it.
    """
    lowest, highest = _padded.extremes(scores, mask)
    # Halves avoid overflow for empty lists, which have the extreme floats.
    spread = tf.where(settings.is_shifted, highest / 2.0 - lowest / 2.0, tf.maximum(highest, -lowest) / 2.0)
    largest = 2.0 * settings.alpha * tf.cast(tf.reduce_max(tf.pad(spread, [[0, 1]])), tf.float64)
    documents = tf.reduce_max(tf.reduce_sum(tf.cast(tf.pad(mask, [[0, 1], [0, 1]]), tf.int32), axis=1))
    ranks = tf.minimum(tf.shape(at_ranks)[1], tf.maximum(documents, 1))
    looped = tf.minimum(ranks, _small_from(largest, settings.delta, scores.dtype))
    return largest > _FLOAT32_RANGE, looped, looped < ranks


def _small_from(largest: tf.Tensor, delta: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the rank from which |alpha S c| is small everywhere, given its largest value, for scores of this type."""
    small = _SMALL[dtype]
    # |c_r| <= (1 - delta)^(r - 1)
    return tf.cast(tf.math.ceil(tf.math.log(tf.maximum(largest, small) / small) / -tf.math.log1p(-delta)), tf.int32)


def _loop(
    gain: str | None, looped: tf.Tensor, delta: tf.Tensor, *lists: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the relevance at the first ranks, the gradient of `_ranks` to the logits, and the next rank's factors."""
    inputs, relevance, discounts, mask = lists
    # Rows after the loop stay 0.
    rows = tf.TensorArray(inputs.dtype, size=tf.shape(discounts)[1]).unstack(tf.transpose(tf.zeros_like(discounts)))
    slope = None if gain is None else dcg.NDCGGain.of(gain, relevance).derivative

    def record(
        rank: tf.Tensor, indicators: tf.Tensor, factors: tf.Tensor, rows: tf.TensorArray, gradient: tf.Tensor
    ) -> tuple[tf.TensorArray, tf.Tensor]:
        at_rank = _sum_of_lists(relevance * indicators)
        if slope is not None:
            weights = discounts[:, rank, tf.newaxis] * slope(at_rank)
            gradient += weights * _rank_gradient(indicators, relevance, at_rank, factors)
        return rows.write(rank, at_rank[:, 0]), gradient

    body = functools.partial(_next_rank, inputs, mask, delta, record, _exponents, tf.identity)
    state = (0, tf.ones_like(inputs), rows, tf.zeros_like(inputs))
    _, factors, rows, gradient = tf.while_loop(lambda rank, *_: rank < looped, body, state)
    return tf.transpose(rows.stack()), gradient, factors


# By the kind of the gain; without one, no gradient is computed.
_LOOPS = {kind: _compiled.program(functools.partial(_loop, kind)) for kind in (None, *dcg.GAINS)}


def _logits(scores: tf.Tensor, mask: tf.Tensor, settings: _Settings) -> tf.Tensor:
    """Returns alpha S of Eq. 7, [batch, list], 0 at padding."""
    lowest = tf.reduce_min(tf.where(mask, scores, scores.dtype.max), axis=1, keepdims=True)
    # The gradient flows through the minimum.
    shift = tf.where(settings.is_shifted, lowest, tf.zeros_like(lowest))
    scores = tf.where(mask, scores - shift, tf.zeros_like(scores))
    alpha = tf.cast(settings.alpha, scores.dtype)
    limit = _LARGEST / tf.maximum(alpha, 1.0)
    return alpha * tf.clip_by_value(scores, -limit, limit)


def _exponents(inputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the softmax inputs [batch, list], in float64 minus their maximum, so that no exponential overflows."""
    if inputs.dtype != tf.float64:  # These inputs are small enough.
        return inputs
    highest = tf.reduce_max(tf.where(mask, inputs, -2.0 * _LARGEST), axis=1, keepdims=True)
    # XLA may fuse multiplication and subtraction: the maximum must still become 0, and ties must stay equal.
    return tf.where(tf.logical_and(inputs < highest, mask), inputs - highest, tf.zeros_like(inputs))


def _softmax(exponentials: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the softmax over the real documents, [batch, list]; 0 for empty lists."""
    weights = exponentials * tf.cast(mask, exponentials.dtype)
    # The maximum only affects empty lists.
    return weights * (1.0 / tf.maximum(_sum_of_lists(weights), 1e-30))


def _of_real_ranks(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch or 1, K] values, 0 at ranks beyond the real documents."""
    return tf.where(_padded.rank_mask(mask, tf.shape(values)[1]), values, tf.zeros([], values.dtype))


# The gradient of a rank, and the late ranks in closed form.


class _Settings(NamedTuple):
    """The hyperparameters as scalar tensors: alpha and delta, float64, and whether to subtract the list's minimum."""

    alpha: tf.Tensor
    delta: tf.Tensor
    is_shifted: tf.Tensor


class _Tail:
    r"""The ranks after the loop, where all softmax inputs $x_j = \alpha S_j c_j$ are small.

    With n documents, means $\bar x$ over them, $u_j = x_j - \bar x$, $p_j = rel_j - \overline{rel}$ and
    $q = 1 - \delta - 1/n$, the series of the exponential gives for the k-th rank after the loop (k = 0, 1, ..)

    $$x^k_j = q^k x_j - \gamma_k x_j u_j, \quad \gamma_k = \frac{q^{k-1}(1 - q^k)}{n(1 - q)}, \qquad
      n I^k_j = 1 + z_j + \tfrac{1}{2} (z_j^2 - \overline{z^2}), \quad z_j = x^k_j - \overline{x^k}$$

    up to third powers of the inputs. Its relevance is

    $$y_k = \overline{rel} + q^k \overline{pu} - \gamma_k (\overline{pu^2} + \bar x \, \overline{pu})
      + \tfrac{1}{2} q^{2k} \overline{pu^2}$$

    and its gradient $\frac{c_j}{n} (q^k (p_j - y_k + \overline{rel}) + (q^{2k} - \gamma_k) p_j u_j)$, up to second
    powers. (A list of one document has q < 0 and no gradient.)
    """

    def __init__(
        self,
        inputs: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        factors: tf.Tensor,
        delta: tf.Tensor,
        looped: tf.Tensor,
        at_ranks: tf.Tensor,
    ) -> None:
        delta = tf.cast(delta, inputs.dtype)
        real, count = tf.cast(mask, inputs.dtype), _padded.count(mask, inputs.dtype)
        inputs *= factors
        products = (inputs, relevance, relevance * inputs, inputs**2, relevance * inputs**2)
        x, y, yx, xx, yxx = (_sum_of_lists(product) / count for product in products)
        first, second = yx - x * y, (yxx - 2.0 * x * yx + x * x * y) - y * (xx - x * x)
        self._real, self._share = real, factors / count
        self._inputs, self._relevance = real * (inputs - x), real * (relevance - y)

        steps = tf.range(tf.shape(at_ranks)[1])[tf.newaxis] - looped
        self._is_tail = steps >= 0
        shrink = tf.maximum(1.0 - delta - 1.0 / count, 1e-30)
        self._powers = tf.exp(tf.cast(tf.maximum(steps, 0), shrink.dtype) * tf.math.log(shrink))
        lag = self._powers * (1.0 - self._powers) / (shrink * count * (1.0 - shrink))
        self._above_mean = self._powers * first - lag * (second + x * first) + 0.5 * self._powers**2 * second
        self._linear = self._powers**2 - lag
        # [batch, K]; arbitrary at the ranks of the loop.
        self.rank_relevance = y + self._above_mean

    def only(self, values: tf.Tensor) -> tf.Tensor:
        """Returns [batch, K] values, 0 at the ranks of the loop."""
        return tf.where(self._is_tail, values, tf.zeros_like(values))

    def gradient(self, weights: tf.Tensor) -> tf.Tensor:
        """Returns the gradient of the relevance, weighted by [batch, K] and summed, with respect to the logits."""
        weights = self.only(weights)
        factors = (self._powers, self._linear, self._powers * self._above_mean)
        constant, linear, mean = (_sum_of_lists(weights * factor) for factor in factors)
        return self._share * (self._relevance * (constant + linear * self._inputs) - self._real * mean)


def _rank_gradient(indicators: tf.Tensor, relevance: tf.Tensor, at_rank: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of a rank's relevance with respect to the logits."""
    gradient = indicators * (relevance - at_rank)
    # The gradients sum to 0 up to the rounding of `at_rank`. For a flat softmax the rounding adds up over the list; for
    # a sharp softmax it would dominate the gradient of the highest document.
    return factors * (gradient - indicators * _sum_of_lists(gradient))


def _to_scores(gradient: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, settings: _Settings) -> tf.Tensor:
    """Converts the gradient with respect to the logits to the gradient with respect to the scores.

    Tied minima share the gradient of the minimum.
    """
    lowest = tf.reduce_min(tf.where(mask, scores, scores.dtype.max), axis=1, keepdims=True)
    is_lowest = tf.cast(tf.logical_and(mask, tf.equal(scores, lowest)), scores.dtype)
    shared = _sum_of_lists(gradient) / tf.maximum(_sum_of_lists(is_lowest), 1.0)
    shared = tf.where(settings.is_shifted, shared, tf.zeros_like(lowest))
    return tf.cast(settings.alpha, scores.dtype) * (gradient - shared * is_lowest)


def _sum_of_lists(values: tf.Tensor) -> tf.Tensor:
    """Returns the sum of each list, [batch, 1]."""
    return tf.reduce_sum(values, axis=1, keepdims=True)
