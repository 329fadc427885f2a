r"""The ranks of SmoothI under the stop-gradient of Eq. 9 (arXiv:2105.00942): compiled loops, and a closed form.

A loop keeps one array c [batch, list], the product of Eq. 7. With the product held constant, rank r enters the
gradient through its own softmax alone, $\partial y_r / \partial S_j = \alpha c^r_j I^r_j (rel_j - y_r)$ for
$y_r = \sum_j rel_j I^r_j$.

As $|c^r_j| \le (1-\delta)^{r-1}$, from some rank on all inputs $x_j = \alpha S_j c^r_j$ of the softmax are so small
that two terms of the exponential's series give it to the last bit. There the loop ends, and the ranks after
it have a closed form (`_Tail`).
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from tfr_smooth.ops import compiled
from tfr_smooth.ops.gains import Gain

# Inputs of a softmax that are below this size, by the type of the scores. The closed form leaves out the third power of
# it in the values (1e-8), and the second, relative to the largest, in the gradient.
_SMALL = {tf.float32: 2e-3, tf.float64: 1e-5}
# Inputs are cut here, far from overflow: a softmax is exactly 0 or 1 long before.
_LARGEST = 1e37


def logits(scores: tf.Tensor, mask: tf.Tensor, alpha: tf.Tensor, is_shifted: tf.Tensor | bool) -> tf.Tensor:
    """Returns alpha S of Eq. 7, [batch, list], 0 at padding; S is the scores, less the list's minimum if shifted."""
    lowest = tf.reduce_min(tf.where(mask, scores, scores.dtype.max), axis=1, keepdims=True)
    # The gradient flows through the minimum.
    scores = tf.where(mask, scores - tf.where(is_shifted, lowest, tf.zeros_like(lowest)), tf.zeros_like(scores))
    limit = _LARGEST / tf.maximum(alpha, 1.0)
    return alpha * tf.clip_by_value(scores, -limit, limit)


def softmax(inputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the softmax over the real documents, [batch, list]; 0 for a list without any."""
    highest = tf.reduce_max(tf.where(mask, inputs, -2.0 * _LARGEST), axis=1, keepdims=True)
    # XLA may multiply and subtract in one rounding: the highest must be 0 all the same, and tied ones equal.
    inputs = tf.where(tf.logical_and(inputs < highest, mask), inputs - highest, tf.zeros_like(inputs))
    weights = tf.exp(inputs) * tf.cast(mask, inputs.dtype)
    # The highest contributes 1: the maximum is a no-op except for a list of padding.
    return weights / tf.maximum(_sum(weights), 1.0)


def small_from(largest: tf.Tensor, delta: float, dtype: tf.DType) -> tf.Tensor:
    """Returns the number of ranks before |alpha S c| is small everywhere, by |c_r| <= (1 - delta)^(r - 1).

    Args:
      largest: The largest |alpha S| of the batch, float64 scalar.
      delta: What remains of a document's weight after its rank.
      dtype: The type of the scores.
    """
    small = _SMALL[dtype]
    return tf.cast(tf.math.ceil(tf.math.log(tf.maximum(largest, small) / small) / -math.log1p(-delta)), tf.int32)


def discounted_gain(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    discounts: tf.Tensor,
    is_exponential: tf.Tensor,
    ranks: tf.Tensor,
    small_from: tf.Tensor,
    alpha: tf.Tensor,
    delta: tf.Tensor,
    is_shifted: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Computes $\sum_r D_r g(y_r)$ and its gradient in one pass over the ranks, as g'(y_r) is known at rank r.

    Args:
      scores: [batch, list], float32 or float64.
      relevance: [batch, list], 0 at padding.
      mask: [batch, list] bool.
      discounts: [batch or 1, K]: D.
      is_exponential: Whether g is exponential; else it is linear.
      ranks: int32: the number of ranks that count, <= K.
      small_from: int32: the number of ranks before the closed form holds.
      alpha: Inverse temperature.
      delta: What remains of a document's weight after its rank.
      is_shifted: Whether to subtract the list's minimum from the scores.

    Returns:
      [batch] float64, and the gradient with respect to the scores, [batch, list].
    """
    count = _count(mask, scores.dtype)
    counted, looped = _num_ranks(count, ranks, small_from)
    discounts = _of_real_ranks(discounts, count)
    value, gradient, factors = _gain_loop(
        scores, relevance, mask, discounts, is_exponential, looped, alpha, delta, is_shifted
    )

    # As plain operations: of few numbers, they would take XLA as long to compile as the loop.
    def with_tail() -> tuple[tf.Tensor, tf.Tensor]:
        inputs = logits(scores, mask, alpha, is_shifted)
        tail = _Tail(inputs, relevance, mask, factors, delta, looped, tf.shape(discounts)[1])
        gain, derivative = _gain_and_derivative(tail.rank_relevance, relevance, is_exponential)
        total = tf.reduce_sum(tf.cast(tail.only(discounts * gain), tf.float64), axis=1)
        of_tail = _to_scores(tail.gradient(discounts * derivative), scores, mask, alpha, is_shifted)
        return value + total, gradient + of_tail

    return tf.cond(looped < counted, with_tail, lambda: (value, gradient))


def rank_relevance(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    at_ranks: tf.Tensor,
    ranks: tf.Tensor,
    small_from: tf.Tensor,
    alpha: tf.Tensor,
    delta: tf.Tensor,
    is_shifted: tf.Tensor,
) -> tf.Tensor:
    """Computes the relevance at each rank, [batch, K]. Its gradient is that of a `discounted_gain` with linear gain.

    Args:
      scores: [batch, list], float32 or float64.
      relevance: [batch, list], 0 at padding.
      mask: [batch, list] bool.
      at_ranks: [1, K], zeros.
      ranks: As in `discounted_gain`, like what follows.
      small_from: int32.
      alpha: Inverse temperature.
      delta: What remains of a document's weight after its rank.
      is_shifted: Whether to subtract the list's minimum from the scores.
    """
    count = _count(mask, scores.dtype)
    counted, looped = _num_ranks(count, ranks, small_from)
    by_rank, factors = _relevance_loop(scores, relevance, mask, at_ranks, looped, alpha, delta, is_shifted)

    def with_tail() -> tf.Tensor:
        inputs = logits(scores, mask, alpha, is_shifted)
        tail = _Tail(inputs, relevance, mask, factors, delta, looped, tf.shape(at_ranks)[1])
        return by_rank + tail.only(tail.rank_relevance)

    return _of_real_ranks(tf.cond(looped < counted, with_tail, lambda: by_rank), count)


@compiled.program
def _gain_loop(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    discounts: tf.Tensor,
    is_exponential: tf.Tensor,
    looped: tf.Tensor,
    alpha: tf.Tensor,
    delta: tf.Tensor,
    is_shifted: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns what `discounted_gain` does, of the first ranks, and the factors of the rank after them."""
    inputs = logits(scores, mask, alpha, is_shifted)

    def body(rank: tf.Tensor, factors: tf.Tensor, value: tf.Tensor, gradient: tf.Tensor) -> tuple[Any, ...]:
        indicators, at_rank, next_factors = _step(inputs, relevance, mask, factors, delta)
        gain, derivative = _gain_and_derivative(at_rank, relevance, is_exponential)
        discount = discounts[:, rank, tf.newaxis]
        value += tf.cast(discount * gain, tf.float64)
        gradient += discount * derivative * _rank_gradient(indicators, relevance, at_rank, factors)
        return rank + 1, next_factors, value, gradient

    state = (0, tf.ones_like(inputs), tf.zeros_like(inputs[:, :1], tf.float64), tf.zeros_like(inputs))
    _, factors, value, gradient = tf.while_loop(lambda rank, *_: rank < looped, body, state)
    return value[:, 0], _to_scores(gradient, scores, mask, alpha, is_shifted), factors


@compiled.program
def _relevance_loop(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    at_ranks: tf.Tensor,
    looped: tf.Tensor,
    alpha: tf.Tensor,
    delta: tf.Tensor,
    is_shifted: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what `rank_relevance` does, 0 after the first ranks, and the factors of the rank after them."""
    inputs = logits(scores, mask, alpha, is_shifted)
    # Rows that the loop does not reach hold 0.
    rows = tf.zeros([tf.shape(at_ranks)[1], tf.shape(scores)[0]], scores.dtype)
    rows = tf.TensorArray(scores.dtype, size=tf.shape(at_ranks)[1]).unstack(rows)

    def body(rank: tf.Tensor, factors: tf.Tensor, rows: tf.TensorArray) -> tuple[Any, ...]:
        _, at_rank, factors = _step(inputs, relevance, mask, factors, delta)
        return rank + 1, factors, rows.write(rank, at_rank[:, 0])

    _, factors, rows = tf.while_loop(lambda rank, *_: rank < looped, body, (0, tf.ones_like(inputs), rows))
    return tf.transpose(rows.stack()), factors


def _gain_and_derivative(
    at_ranks: tf.Tensor, relevance: tf.Tensor, is_exponential: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the gain of the relevance at ranks, [batch, K], and its derivative, given that of the documents."""
    exponential, linear = Gain.of("exponential", relevance), Gain.of("linear", relevance)
    gain = tf.where(is_exponential, exponential(at_ranks), linear(at_ranks))
    return gain, tf.where(is_exponential, exponential.derivative(at_ranks), linear.derivative(at_ranks))


def _step(
    inputs: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, factors: tf.Tensor, delta: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns a rank's indicators, its relevance, and the next rank's factors (Eq. 7)."""
    if inputs.dtype == tf.float64:
        indicators = softmax(inputs * factors, mask)
    else:  # Inputs so small that the exponential needs no help come here.
        weights = tf.exp(inputs * factors) * tf.cast(mask, inputs.dtype)
        indicators = weights * (1.0 / tf.maximum(_sum(weights), 1e-30))
    return indicators, _sum(relevance * indicators), factors * (1.0 - delta - indicators)


def _rank_gradient(indicators: tf.Tensor, relevance: tf.Tensor, at_rank: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of a rank's relevance with respect to the logits."""
    gradient = indicators * (relevance - at_rank)
    # They sum to 0 but for the rounding of `at_rank`. Where the softmax is flat that adds up over the list, and where
    # it is sharp nothing but that would be left of the highest document's slope.
    return factors * (gradient - indicators * _sum(gradient))


class _Tail:
    r"""The ranks after the loop, where all inputs $x_j = \alpha S_j c_j$ of the softmax are small.

    With n documents, $\bar x$ the mean over them, $u_j = x_j - \bar x$, $p_j = rel_j - \overline{rel}$ and
    $q = 1 - \delta - 1/n$, the k-th rank after the loop (k = 0, 1, ..) has, by the series of the exponential,

    $$x^k_j = q^k x_j - \gamma_k x_j u_j, \quad \gamma_k = \frac{q^{k-1}(1 - q^k)}{n(1 - q)}, \qquad
      n I^k_j = 1 + z_j + \tfrac{1}{2} (z_j^2 - \overline{z^2}), \quad z_j = x^k_j - \overline{x^k}$$

    up to third powers of the inputs. So its relevance is

    $$y_k = \overline{rel} + q^k \overline{pu} - \gamma_k (\overline{pu^2} + \bar x \, \overline{pu})
      + \tfrac{1}{2} q^{2k} \overline{pu^2}$$

    and its gradient $\frac{c_j}{n} (q^k (p_j - y_k + \overline{rel}) + (q^{2k} - \gamma_k) p_j u_j)$, up to second
    powers. (One document has no gradient; q < 0 there.)
    """

    def __init__(
        self,
        inputs: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        factors: tf.Tensor,
        delta: tf.Tensor,
        looped: tf.Tensor,
        ranks: tf.Tensor,
    ) -> None:
        real, count = tf.cast(mask, inputs.dtype), _count(mask, inputs.dtype)
        inputs *= factors
        products = (inputs, relevance, relevance * inputs, inputs**2, relevance * inputs**2)
        x, y, yx, xx, yxx = (_sum(product) / count for product in products)
        first, second = yx - x * y, (yxx - 2.0 * x * yx + x * x * y) - y * (xx - x * x)
        self._real, self._share = real, factors / count
        self._inputs, self._relevance = real * (inputs - x), real * (relevance - y)

        steps = tf.range(ranks)[tf.newaxis] - looped
        self._is_tail = steps >= 0
        shrink = tf.maximum(1.0 - delta - 1.0 / count, 1e-30)
        self._powers = tf.exp(tf.cast(tf.maximum(steps, 0), shrink.dtype) * tf.math.log(shrink))
        lag = self._powers * (1.0 - self._powers) / (shrink * count * (1.0 - shrink))
        self._above_mean = self._powers * first - lag * (second + x * first) + 0.5 * self._powers**2 * second
        self._linear = self._powers**2 - lag
        # [batch, K]; anything at the ranks of the loop.
        self.rank_relevance = y + self._above_mean

    def only(self, values: tf.Tensor) -> tf.Tensor:
        """Returns [batch, K] values, 0 at the ranks of the loop."""
        return tf.where(self._is_tail, values, tf.zeros_like(values))

    def gradient(self, weights: tf.Tensor) -> tf.Tensor:
        """Returns the gradient of the sum of weights [batch, K] times relevance with respect to the logits."""
        weights = self.only(weights)
        factors = (self._powers, self._linear, self._powers * self._above_mean)
        constant, linear, mean = (_sum(weights * factor) for factor in factors)
        return self._share * (self._relevance * (constant + linear * self._inputs) - self._real * mean)


def _to_scores(
    gradient: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, alpha: tf.Tensor, is_shifted: tf.Tensor
) -> tf.Tensor:
    """Returns the gradient with respect to the scores, given that with respect to the logits; tied minima share it."""
    lowest = tf.reduce_min(tf.where(mask, scores, scores.dtype.max), axis=1, keepdims=True)
    is_lowest = tf.cast(tf.logical_and(mask, tf.equal(scores, lowest)), scores.dtype)
    shared = tf.where(is_shifted, _sum(gradient) / tf.maximum(_sum(is_lowest), 1.0), tf.zeros_like(lowest))
    return alpha * (gradient - shared * is_lowest)


def _sum(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(values, axis=1, keepdims=True)


def _count(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.maximum(_sum(tf.cast(mask, dtype)), 1.0)


def _num_ranks(count: tf.Tensor, ranks: tf.Tensor, small_from: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the number of ranks that count for any list, and how many of them the loop takes."""
    counted = tf.minimum(ranks, tf.cast(tf.reduce_max(count), tf.int32))
    return counted, tf.minimum(counted, small_from)


def _of_real_ranks(values: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Returns [batch, K] values, 0 at the ranks that no document has."""
    ranks = tf.cast(tf.range(tf.shape(values)[1]), count.dtype)[tf.newaxis]
    return tf.where(ranks < count, values, tf.zeros([], values.dtype))
