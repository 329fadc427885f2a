r"""The ranks of SmoothI with the stop-gradient of Eq. 9 (arXiv:2105.00942): compiled loops and a closed form.

A loop keeps one array c [batch, list], the product of Eq. 7. As the product is constant to the gradient, rank r
contributes to the gradient only through its own softmax,
$\partial y_r / \partial S_j = \alpha c^r_j I^r_j (rel_j - y_r)$ for $y_r = \sum_j rel_j I^r_j$.

Since $|c^r_j| \le (1-\delta)^{r-1}$, the softmax inputs $x_j = \alpha S_j c^r_j$ eventually become so small that two
terms of the exponential's series are exact to the last bit. The loop ends there, and the remaining ranks have a closed
form (`Tail`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from tfr_smooth.ops import compiled, lists
from tfr_smooth.ops.gains import Gain
from tfr_smooth.ops.smoothi_tail import Tail

# Softmax inputs below this magnitude are small, by the type of the scores. The closed form omits their third power in
# the values (1e-8), and their second power, relative to the largest, in the gradient.
_SMALL = {tf.float32: 2e-3, tf.float64: 1e-5}
# Up to this magnitude of the softmax inputs, float32 is accurate to 1e-6 (values) and 1e-5 (gradients), and no
# exponential overflows. A sharper softmax amplifies the rounding of its inputs, so it is computed in float64.
_FLOAT32_RANGE = 32.0
# Inputs are clipped here, far from overflow: the softmax is exactly 0 or 1 long before.
_LARGEST = 1e37


def logits(scores: tf.Tensor, mask: tf.Tensor, alpha: tf.Tensor, is_shifted: tf.Tensor | bool) -> tf.Tensor:
    """Returns alpha S of Eq. 7, [batch, list], 0 at padding; S are the scores, minus the list's minimum if shifted."""
    lowest = tf.reduce_min(tf.where(mask, scores, scores.dtype.max), axis=1, keepdims=True)
    # The gradient flows through the minimum.
    scores = tf.where(mask, scores - tf.where(is_shifted, lowest, tf.zeros_like(lowest)), tf.zeros_like(scores))
    limit = _LARGEST / tf.maximum(alpha, 1.0)
    return alpha * tf.clip_by_value(scores, -limit, limit)


def softmax(inputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the softmax over the real documents, [batch, list]; 0 for empty lists."""
    highest = tf.reduce_max(tf.where(mask, inputs, -2.0 * _LARGEST), axis=1, keepdims=True)
    # XLA may fuse multiplication and subtraction: the maximum must still become 0, and ties must stay equal.
    inputs = tf.where(tf.logical_and(inputs < highest, mask), inputs - highest, tf.zeros_like(inputs))
    weights = tf.exp(inputs) * tf.cast(mask, inputs.dtype)
    # The largest weight is 1, so the maximum only affects empty lists.
    return weights / tf.maximum(_sum(weights), 1.0)


def plain_relevance(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    at_ranks: tf.Tensor,
    *hyperparameters: tf.Tensor,
    stop_gradient: bool = True,
) -> tf.Tensor:
    """Returns the same as `rank_relevance`, computed by `recursion`."""

    def read(indicators: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(relevance * indicators, axis=1)

    arguments = scores, mask, lists.length(at_ranks), *hyperparameters
    return tf.transpose(recursion(read, *arguments, stop_gradient=stop_gradient))


@compiled.differentiable(plain_relevance)
def rank_relevance(
    scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, at_ranks: tf.Tensor, *hyperparameters: tf.Tensor
) -> compiled.WithGradient:
    """Computes the relevance at each rank, [batch, K], and its gradient function.

    Args:
      scores: [batch, list], float32 or float64.
      relevance: [batch, list], 0 at padding.
      mask: [batch, list] bool.
      at_ranks: [1, K], zeros in the type of the scores.
      *hyperparameters: alpha and delta, float64, and whether to subtract the list's minimum from the scores.
    """
    plan = _Plan.of(scores, mask, at_ranks, *hyperparameters)
    arrays, padded_ranks = [compiled.pad(tensor) for tensor in (scores, relevance, mask)], compiled.pad(at_ranks)

    def loop(dtype: tf.DType) -> list[tf.Tensor]:
        shared = *_cast([padded_ranks], dtype), plan.looped, *_cast(hyperparameters, dtype)
        return _cast(compiled.over_lists(_relevance_loop, _cast(arrays, dtype), shared, (dtype, dtype)), scores.dtype)

    by_rank, factors = plan.in_precision(loop, scores.dtype)

    def with_tail() -> tf.Tensor:
        tail = plan.tail(arrays, factors, padded_ranks)
        return by_rank + tail.only(tail.rank_relevance)

    by_rank = tf.stop_gradient(tf.cond(plan.has_tail, with_tail, lambda: by_rank))
    by_rank = _of_real_ranks(by_rank, lists.count(arrays[2], scores.dtype))

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return _gain_and_gradient(scores, relevance, mask, upstream, tf.constant(False), *hyperparameters)[1]

    return by_rank[: tf.shape(scores)[0], : tf.shape(at_ranks)[1]], gradient


def _plain_gain(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    discounts: tf.Tensor,
    is_exponential: tf.Tensor,
    *hyperparameters: tf.Tensor,
) -> tf.Tensor:
    by_rank = plain_relevance(scores, relevance, mask, discounts, *hyperparameters)
    return tf.reduce_sum(discounts * _gain_and_derivative(by_rank, relevance, is_exponential)[0], axis=1)


@compiled.differentiable(_plain_gain)
def discounted_gain(*arguments: tf.Tensor) -> compiled.WithGradient:
    r"""Computes $\sum_r D_r g(y_r)$, [batch], and its gradient function from the arguments of `_gain_and_gradient`."""
    gain, gradient = _gain_and_gradient(*arguments)
    return gain, lambda upstream: upstream[:, tf.newaxis] * gradient


def recursion(
    read: Callable[[tf.Tensor], tf.Tensor],
    scores: tf.Tensor,
    mask: tf.Tensor,
    ranks: tf.Tensor | int,
    alpha: tf.Tensor,
    delta: tf.Tensor,
    is_shifted: tf.Tensor | bool,
    *,
    stop_gradient: bool = True,
) -> tf.Tensor:
    """Returns `read` applied to the indicators of each rank, [K, batch, ..], using TensorFlow's own operations."""
    inputs = logits(tf.cast(scores, tf.float64), mask, alpha, is_shifted)
    real_ranks = tf.transpose(lists.rank_mask(mask, ranks))

    def body(rank: tf.Tensor, factors: tf.Tensor, rows: tf.TensorArray) -> tuple[Any, ...]:
        held = tf.stop_gradient(factors) if stop_gradient else factors
        indicators = softmax(inputs * held, mask)
        row = tf.cast(indicators * tf.cast(real_ranks[rank, :, tf.newaxis], tf.float64), scores.dtype)
        return rank + 1, held * (1.0 - delta - indicators), rows.write(rank, read(row))

    rows = tf.TensorArray(scores.dtype, size=ranks)
    state = (0, tf.ones_like(inputs), rows)
    return tf.while_loop(lambda rank, *_: rank < ranks, body, state, maximum_iterations=ranks)[2].stack()


def _gain_and_gradient(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor,
    discounts: tf.Tensor,
    is_exponential: tf.Tensor,
    *hyperparameters: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the gain and its gradient in one pass over the ranks: g'(y_r) is known at rank r.

    Args:
      scores: [batch, list], float32 or float64.
      relevance: [batch, list], 0 at padding.
      mask: [batch, list] bool.
      discounts: [batch or 1, K], D in the type of the scores.
      is_exponential: Whether g is exponential; otherwise it is linear.
      *hyperparameters: alpha and delta, float64, and whether to subtract the list's minimum from the scores.
    """
    plan = _Plan.of(scores, mask, discounts, *hyperparameters)
    arrays = [compiled.pad(tensor) for tensor in (scores, relevance, mask)]
    discounts = _of_real_ranks(compiled.pad(discounts), lists.count(arrays[2], scores.dtype))

    def loop(dtype: tf.DType) -> list[tf.Tensor]:
        of_lists, shared = (
            _cast([*arrays, discounts], dtype),
            [is_exponential, plan.looped, *_cast(hyperparameters, dtype)],
        )
        value, gradient, factors = compiled.over_lists(_gain_loop, of_lists, shared, (tf.float64, dtype, dtype))
        return [value, *_cast([gradient, factors], scores.dtype)]

    value, gradient, factors = plan.in_precision(loop, scores.dtype)

    def with_tail() -> tuple[tf.Tensor, tf.Tensor]:
        tail = plan.tail(arrays, factors, discounts)
        gain, derivative = _gain_and_derivative(tail.rank_relevance, arrays[1], is_exponential)
        total = tf.reduce_sum(tf.cast(tail.only(discounts * gain), value.dtype), axis=1)
        of_tail = tail.gradient(discounts * derivative)
        alpha, _, is_shifted = _cast(hyperparameters, scores.dtype)
        of_tail = _to_scores(of_tail, arrays[0], arrays[2], alpha, is_shifted)
        return value + total, gradient + of_tail

    value, gradient = map(tf.stop_gradient, tf.cond(plan.has_tail, with_tail, lambda: (value, gradient)))
    return tf.cast(value[: tf.shape(scores)[0]], scores.dtype), compiled.unpad(gradient, scores)


class _Plan(NamedTuple):
    """The computation of the ranks of a batch.

    Attributes:
      is_sharp: Whether float32 is not accurate enough.
      looped: int32 scalar, the number of ranks computed by the loop.
      has_tail: Whether the metric uses ranks after the loop.
      hyperparameters: alpha, delta and whether the scores are shifted.
    """

    is_sharp: tf.Tensor
    looped: tf.Tensor
    has_tail: tf.Tensor
    hyperparameters: tuple[tf.Tensor, ...]

    @classmethod
    def of(cls, scores: tf.Tensor, mask: tf.Tensor, at_ranks: tf.Tensor, *hyperparameters: tf.Tensor) -> _Plan:
        """Returns the plan for scores [batch, list] and K ranks, [.., K]."""
        alpha, delta, is_shifted = hyperparameters
        lowest, highest = lists.extremes(scores, mask)
        # Halves avoid overflow for empty lists, which have the extreme floats.
        spread = tf.where(is_shifted, highest / 2.0 - lowest / 2.0, tf.maximum(highest, -lowest) / 2.0)
        largest = 2.0 * alpha * tf.cast(tf.reduce_max(tf.pad(spread, [[0, 1]])), tf.float64)
        documents = tf.reduce_max(tf.reduce_sum(tf.cast(tf.pad(mask, [[0, 1], [0, 1]]), tf.int32), axis=1))
        counted = tf.minimum(tf.shape(at_ranks)[1], tf.maximum(documents, 1))
        looped = tf.minimum(counted, small_from(largest, delta, scores.dtype))
        return cls(largest > _FLOAT32_RANGE, looped, looped < counted, hyperparameters)

    def in_precision(self, loop: Callable[[tf.DType], list[tf.Tensor]], dtype: tf.DType) -> list[tf.Tensor]:
        """Returns the results of the loop in the precision needed for scores of this type."""
        if dtype == tf.float64:
            return loop(tf.float64)
        return tf.cond(self.is_sharp, lambda: loop(tf.float64), lambda: loop(tf.float32))

    def tail(self, arrays: Iterable[tf.Tensor], factors: tf.Tensor, at_ranks: tf.Tensor) -> Tail:
        """Returns the ranks after the loop in the type of the scores, given scores, relevance and mask."""
        scores, relevance, mask = arrays
        alpha, delta, is_shifted = _cast(self.hyperparameters, scores.dtype)
        inputs = logits(scores, mask, alpha, is_shifted)
        return Tail(inputs, relevance, mask, factors, delta, self.looped, at_ranks)


def small_from(largest: tf.Tensor, delta: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the number of ranks after which |alpha S c| is small everywhere, as |c_r| <= (1 - delta)^(r - 1).

    Args:
      largest: The largest |alpha S| of the batch, float64 scalar.
      delta: The delta of `SmoothI`, float64 scalar.
      dtype: The type of the scores.

    Returns:
      An int32 scalar.
    """
    small = _SMALL[dtype]
    return tf.cast(tf.math.ceil(tf.math.log(tf.maximum(largest, small) / small) / -tf.math.log1p(-delta)), tf.int32)


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
    """Returns gain and gradient of the first ranks as `discounted_gain` does, and the factors of the next rank."""
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
    """Returns `rank_relevance` of the first ranks, 0 at later ranks, and the factors of the next rank."""
    inputs = logits(scores, mask, alpha, is_shifted)
    # Rows after the loop stay 0.
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
    """Returns the gain of relevance at ranks, [batch, K], and its derivative, given the documents' relevance."""
    exponential, linear = Gain.of("exponential", relevance), Gain.of("linear", relevance)
    gain = tf.where(is_exponential, exponential(at_ranks), linear(at_ranks))
    return gain, tf.where(is_exponential, exponential.derivative(at_ranks), linear.derivative(at_ranks))


def _step(
    inputs: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, factors: tf.Tensor, delta: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns a rank's indicators, its relevance, and the next rank's factors (Eq. 7)."""
    if inputs.dtype == tf.float64:
        indicators = softmax(inputs * factors, mask)
    else:  # These inputs are small enough for the exponential not to overflow.
        weights = tf.exp(inputs * factors) * tf.cast(mask, inputs.dtype)
        indicators = weights * (1.0 / tf.maximum(_sum(weights), 1e-30))
    return indicators, _sum(relevance * indicators), factors * (1.0 - delta - indicators)


def _rank_gradient(indicators: tf.Tensor, relevance: tf.Tensor, at_rank: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of a rank's relevance with respect to the logits."""
    gradient = indicators * (relevance - at_rank)
    # The gradients sum to 0 up to the rounding of `at_rank`. For a flat softmax the rounding adds up over the list; for
    # a sharp softmax it would dominate the gradient of the highest document.
    return factors * (gradient - indicators * _sum(gradient))


def _to_scores(
    gradient: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, alpha: tf.Tensor, is_shifted: tf.Tensor
) -> tf.Tensor:
    """Converts the gradient with respect to the logits to the gradient with respect to the scores.

    Tied minima share the gradient of the minimum.
    """
    lowest = tf.reduce_min(tf.where(mask, scores, scores.dtype.max), axis=1, keepdims=True)
    is_lowest = tf.cast(tf.logical_and(mask, tf.equal(scores, lowest)), scores.dtype)
    shared = tf.where(is_shifted, _sum(gradient) / tf.maximum(_sum(is_lowest), 1.0), tf.zeros_like(lowest))
    return alpha * (gradient - shared * is_lowest)


def _sum(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(values, axis=1, keepdims=True)


def _cast(tensors: Iterable[tf.Tensor], dtype: tf.DType) -> list[tf.Tensor]:
    """Casts the tensors to a floating point type; masks are unchanged."""
    return [tensor if tensor.dtype == tf.bool else tf.cast(tensor, dtype) for tensor in tensors]


def _of_real_ranks(values: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Returns [batch, K] values, 0 at ranks beyond the real documents."""
    ranks = tf.cast(tf.range(tf.shape(values)[1]), count.dtype)[tf.newaxis]
    return tf.where(ranks < count, values, tf.zeros([], values.dtype))
