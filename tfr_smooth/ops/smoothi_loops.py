r"""The loops over ranks of SmoothI under the stop-gradient of Eq. 9 (arXiv:2105.00942), compiled.

Every loop walks through the ranks with one running array c of the batch's size, the product of Eq. 7. With the product
held constant, rank r enters the gradient through its own softmax alone,
$\partial y_r / \partial (\alpha S_j) = c^r_j I^r_j (rel_j - y_r)$ for $y_r = \sum_j rel_j I^r_j$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfr_smooth.ops import compiled, gains, lists

# Inputs of a softmax that are below this size, by the type of the scores. What the closed form of the ranks after that
# leaves out is the third power of it in the values (1e-8), and the second, of their own size, in the gradient.
_SMALL = {tf.float32: 2e-3, tf.float64: 1e-5}
# So few ranks all take the loop, as the closed form is a third more to compile.
_FEW_RANKS = 64
# Up to this size of the softmax's inputs float32 gives 1e-6 (value) and 1e-5 (gradient), and exp does not overflow. A
# sharper softmax multiplies the rounding of its inputs, so such a batch is computed in float64.
_FLOAT32_RANGE = 16.0
# Inputs of the softmax are cut here, far from overflow: exp is long exactly 0 or 1.
LARGEST = 1e37
# The axis of a list's documents in the loops. XLA since TensorFlow 2.16 is quicker with sums of rows, which it adds
# several columns at a time; before, it was quicker with sums along rows.
_DOCUMENTS = 0 if tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 16) else 1
# The logit of a padded document: below all others, also times any c of a rank that takes the loop.
_PADDING = {tf.float32: -1e37, tf.float64: -1e300}


class Batch(NamedTuple):
    """What the indicators of a batch of lists, and what they find, are made of.

    Args:
      scores: [batch, list], float32 or float64; a NaN among its real ones makes a list's results NaN.
      relevance: [batch, list], of the scores' type.
      mask: [batch, list] bool, False for padding.
      alpha: Inverse temperature; a float or float64 scalar.
      delta: What remains of a document's weight after its rank; a float or float64 scalar.
      shift: Whether to subtract the list's minimum from the scores.
      precision: What the loops compute in; None: float32 where that is enough, else float64.
    """

    scores: tf.Tensor
    relevance: tf.Tensor
    mask: tf.Tensor
    alpha: float | tf.Tensor
    delta: float | tf.Tensor
    shift: bool
    precision: tf.DType | None = None


def logits(scores: tf.Tensor, mask: tf.Tensor, alpha: float | tf.Tensor, shift: bool) -> tf.Tensor:
    """Returns alpha S of Eq. 7, [batch, list], 0 at padding."""
    if shift:
        scores -= tf.reduce_min(lists.filled(scores, mask, scores.dtype.max), axis=1, keepdims=True)
    scores = lists.filled(scores, mask, 0.0)
    return tf.clip_by_value(tf.cast(alpha, scores.dtype) * scores, -LARGEST, LARGEST)


def gain_and_slopes(batch: Batch, worth: tf.Tensor, gain: str) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Computes $\sum_r w_r g(y_r)$ and its gradient to the scores in one pass over the ranks.

    Args:
      batch: The lists.
      worth: [batch, K] or [1, K]: w. Ranks beyond the real documents count for nothing.
      gain: The name of g.

    Returns:
      [batch] and [batch, list], of the scores' type.
    """
    value, slopes = _run(_gain_and_slopes, batch, worth, gain=gain)
    return value[: tf.shape(batch.scores)[0]], _cut(slopes, batch.scores)


def found_at_ranks(batch: Batch, ranks: tf.Tensor | int) -> tf.Tensor:
    """Returns the relevance found at each rank, [batch, K], of the scores' type; 0 beyond the real documents."""
    at_ranks = tf.zeros([tf.shape(batch.scores)[0], ranks], batch.scores.dtype)
    return _cut(_run(_found_at_ranks, batch, at_ranks), at_ranks)


def slopes_of_found(batch: Batch, upstream: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of sum(upstream * found_at_ranks), `upstream` being [batch, K], to the scores."""
    return _cut(_run(_slopes_of_found, batch, upstream), batch.scores)


def _run(loop: Callable[..., Any], batch: Batch, at_ranks: tf.Tensor, **constants: Any) -> Any:
    """Hands a loop the batch, grown to a size of the compiler's grid: in float32 where that is enough, else float64."""
    # So that no tape records the loop: its gradient is made here.
    scores, relevance, at_ranks = (tf.stop_gradient(t) for t in (batch.scores, batch.relevance, at_ranks))
    at_ranks = tf.cast(at_ranks, scores.dtype)
    ranks = tf.shape(at_ranks)[1]  # Padding has more of them.
    scores, relevance, mask, at_ranks = (compiled.pad(t) for t in (scores, relevance, batch.mask, at_ranks))
    # Tensors, as each number would be compiled anew.
    alpha, delta = (tf.constant(t, tf.float64) for t in (batch.alpha, batch.delta))

    grown = Batch(scores, relevance, mask, alpha, delta, batch.shift)

    def in_precision(precision: tf.DType) -> Any:
        return loop(grown, at_ranks, ranks, precision=precision, **constants)

    if scores.dtype == tf.float64 or batch.precision:
        return in_precision(batch.precision or tf.float64)
    return tf.cond(needs_float64(batch), lambda: in_precision(tf.float64), lambda: in_precision(tf.float32))


def needs_float64(batch: Batch) -> tf.Tensor:
    """Returns a bool scalar: whether a softmax of float32 scores is too sharp for the loops to compute in float32."""
    scores = batch.scores
    highest = tf.reduce_max(lists.filled(scores, batch.mask, scores.dtype.min), axis=1)
    lowest = tf.reduce_min(lists.filled(scores, batch.mask, scores.dtype.max), axis=1)
    spread = highest - lowest if batch.shift else tf.maximum(highest, -lowest)
    # A list with a NaN comes out as NaN whatever is done, and must not speak for the others.
    spread = tf.where(tf.math.is_nan(spread), tf.zeros_like(spread), spread)
    return batch.alpha * tf.cast(tf.reduce_max(spread), tf.float64) > _FLOAT32_RANGE


def _cut(values: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    if values.shape == like.shape and values.shape.is_fully_defined():
        return values
    shape = tf.shape(like)
    return tf.ensure_shape(values[: shape[0], : shape[1]], like.shape)


class _Recursion:
    """The recursion over ranks.

    Its arrays of documents are [list, batch] or [batch, list] as `_DOCUMENTS` says, and what belongs to a list is
    [1, batch] or [batch, 1].
    """

    def __init__(self, batch: Batch, at_ranks: tf.Tensor, ranks: tf.Tensor, precision: tf.DType) -> None:
        scores, _, self.poison = lists.clean(batch.scores, batch.mask)
        self._batch = batch = batch._replace(scores=scores)
        relevance = lists.aligned("relevance", batch.relevance, scores, batch.mask)
        scores, relevance, real = (tf.cast(t, precision) for t in (scores, relevance, batch.mask))
        alpha_scores = logits(scores, batch.mask, batch.alpha, batch.shift)
        marked = lists.filled(alpha_scores, batch.mask, _PADDING[precision])
        self._logits, self._relevance, self._real = (_turned(t) for t in (marked, relevance, real))
        self.count = tf.maximum(_sum(self._real), 1.0)
        self._keep = tf.cast(1.0 - batch.delta, precision)
        # Ranks before the first of these take the loop, those before the second have a closed form.
        largest = tf.cast(tf.reduce_max(tf.abs(alpha_scores)), tf.float64)
        self._counted = tf.minimum(ranks, tf.cast(tf.reduce_max(self.count), tf.int32))
        until_small = tf.minimum(self._counted, ranks_until_small(largest, batch.delta, batch.scores.dtype))
        # XLA knows the shape, and then leaves out what never runs.
        self.looped = tf.where(tf.shape(at_ranks)[1] <= _FEW_RANKS, self._counted, until_small)
        self.start = tf.ones_like(self._logits)

    def at_ranks(self, values: tf.Tensor) -> tf.Tensor:
        """Returns [batch, K] values as [K, ..], by rank what belongs to a list; 0 at ranks that no document has."""
        values = tf.expand_dims(tf.transpose(tf.cast(values, self.count.dtype)), 1 + _DOCUMENTS)
        ranks = tf.cast(tf.range(tf.shape(values)[0]), self.count.dtype)[:, tf.newaxis, tf.newaxis]
        return tf.where(ranks < self.count, values, tf.zeros_like(values))

    def step(self, factors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns a rank's indicators, the relevance found, and the next rank's factors (Eq. 7)."""
        inputs = self._logits * factors
        if inputs.dtype == tf.float64:  # In float32 come only inputs so small that exp needs no help.
            highest = tf.reduce_max(inputs, axis=_DOCUMENTS, keepdims=True)
            # XLA multiplies and subtracts at once: the highest may come out as far from 0 as it was rounded.
            inputs = tf.where(inputs >= highest, tf.zeros_like(inputs), inputs - highest)
        weights = tf.exp(inputs)
        # The minimum is for a list of padding alone.
        indicators = weights * (1.0 / tf.maximum(_sum(weights), 1e-30))
        return indicators, _sum(self._relevance * indicators), factors * (self._keep - indicators)

    def slopes(self, indicators: tf.Tensor, found: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
        """Returns the gradient of what a rank finds to the logits."""
        slopes = indicators * (self._relevance - found)
        # They sum to 0 but for the rounding of `found`. Where the softmax is flat that adds up over the list, and
        # where it is sharp nothing but that would be left of the highest document's slope.
        return factors * (slopes - indicators * _sum(slopes))

    def after_loop(self, factors: tf.Tensor, ranks: tf.Tensor) -> _Flat:
        """Returns what ranks find from the end of the loop on, given the factors of its end."""
        later = tf.range(ranks)[:, tf.newaxis, tf.newaxis] - self.looped
        inputs = self._real * self._logits * factors
        return _Flat(inputs, self._relevance, self._real, factors, self.count, later, self._keep)

    def if_ranks_are_left(self, otherwise: Any, closed_form: Callable[[], Any]) -> Any:
        """Returns what the closed form gives, or the other where the loop did it all: short lists, or a cut-off."""
        return tf.cond(self.looped < self._counted, closed_form, lambda: otherwise)

    def to_scores(self, slopes: tf.Tensor) -> tf.Tensor:
        """Returns the gradient to the scores, [batch, list] in their type, from that to the logits."""
        scores = tf.cast(self._batch.scores, slopes.dtype)
        with tf.GradientTape() as tape:
            tape.watch(scores)
            alpha_scores = logits(scores, self._batch.mask, self._batch.alpha, self._batch.shift)
        return self.poison * tf.cast(tape.gradient(alpha_scores, scores, _turned(slopes)), self.poison.dtype)


class _Flat:
    r"""The recursion from a rank on where all inputs $x_j = \alpha S_j c_j$ of the softmax are small.

    With n documents, $\bar x$ the mean over them, $u_j = x_j - \bar x$, $p_j = rel_j - \overline{rel}$ and
    $q = 1 - \delta - 1/n$, the k-th rank after that one (k = 0, 1, ..) has, by the series of the exponential,

    $$x^k_j = q^k x_j - \gamma_k x_j u_j, \quad \gamma_k = \frac{q^{k-1}(1 - q^k)}{n(1 - q)}, \qquad
      n I^k_j = 1 + z_j + \tfrac{1}{2} (z_j^2 - \overline{z^2}), \quad z_j = x^k_j - \overline{x^k}$$

    up to third powers of the inputs. So it finds

    $$y_k = \overline{rel} + q^k \overline{pu} - \gamma_k (\overline{pu^2} + \bar x \, \overline{pu})
      + \tfrac{1}{2} q^{2k} \overline{pu^2}$$

    and the slope of that is $\frac{c_j}{n} (q^k (p_j - y_k + \overline{rel}) + (q^{2k} - \gamma_k) p_j u_j)$, up to
    second powers. (One document has no gradient; q < 0 there.)
    """

    def __init__(
        self,
        inputs: tf.Tensor,
        relevance: tf.Tensor,
        real: tf.Tensor,
        factors: tf.Tensor,
        count: tf.Tensor,
        later: tf.Tensor,
        keep: tf.Tensor,
    ) -> None:
        self._real = real
        # Few sums of many arrays, and few operations: each would be a kernel to compile.
        powers = tf.stack([inputs, relevance, relevance * inputs, inputs**2, relevance * inputs**2])
        x, y, yx, xx, yxx = tf.unstack(tf.reduce_sum(powers, axis=1 + _DOCUMENTS, keepdims=True) / count)
        first, second = yx - x * y, (yxx - 2.0 * x * yx + x * x * y) - y * (xx - x * x)
        self._inputs, self._relevance = real * (inputs - x), real * (relevance - y)
        self._share = factors / count

        self._is_later = later >= 0
        shrink = tf.maximum(keep - 1.0 / count, 1e-30)
        self._powers = tf.exp(tf.cast(tf.maximum(later, 0), shrink.dtype) * tf.math.log(shrink))
        lag = self._powers * (1.0 - self._powers) / (shrink * count * (1.0 - shrink))
        self._above_mean = self._powers * first - lag * (second + x * first) + 0.5 * self._powers**2 * second
        self._linear = self._powers**2 - lag
        # [K, ..]: the relevance found at each rank; at ranks before these it is anything.
        self.found = y + self._above_mean

    def weighted(self, values: tf.Tensor) -> tf.Tensor:
        """Returns [K, ..] values, with 0 at the ranks before these."""
        return tf.where(self._is_later, values, tf.zeros_like(values))

    def sum_and_slopes(self, values: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the sum of [K, ..] values over these ranks, and the slopes of sum(weights * found) to the logits."""
        of_slopes = [weights * each for each in (self._powers, self._linear, self._powers * self._above_mean)]
        summed = tf.reduce_sum(tf.cast(self.weighted(tf.stack([values, *of_slopes])), tf.float64), axis=1)
        total, *of_slopes = tf.unstack(summed)
        constant, linear, found = (tf.cast(each, self._share.dtype) for each in of_slopes)
        return total, self._share * (self._relevance * (constant + linear * self._inputs) - self._real * found)


def _turned(values: tf.Tensor) -> tf.Tensor:
    """From [batch, list] to how the loops have it, and back."""
    return values if _DOCUMENTS == 1 else tf.transpose(values)


def _sum(values: tf.Tensor) -> tf.Tensor:
    """The sum over the documents of each list."""
    return tf.reduce_sum(values, axis=_DOCUMENTS, keepdims=True)


@compiled.once_for_each_size
def _gain_and_slopes(
    batch: Batch, worth: tf.Tensor, ranks: tf.Tensor, *, gain: str, precision: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    recursion = _Recursion(batch, worth, ranks, precision)
    worth = recursion.at_ranks(worth)

    def body(rank: tf.Tensor, factors: tf.Tensor, value: tf.Tensor, slopes: tf.Tensor) -> tuple[Any, ...]:
        indicators, found, later = recursion.step(factors)
        gained = gains.gained(found, gain)
        value += tf.cast(tf.gather(worth, rank) * gained, tf.float64)
        slopes += tf.gather(worth, rank) * gains.slope(gained, gain) * recursion.slopes(indicators, found, factors)
        return rank + 1, later, value, slopes

    state = (0, recursion.start, tf.zeros_like(recursion.count, tf.float64), tf.zeros_like(recursion.start))
    _, factors, value, slopes = tf.while_loop(lambda rank, *_: rank < recursion.looped, body, state)

    def others() -> tuple[tf.Tensor, tf.Tensor]:
        flat = recursion.after_loop(factors, tf.shape(worth)[0])
        gained = gains.gained(flat.found, gain)
        total, later_slopes = flat.sum_and_slopes(worth * gained, worth * gains.slope(gained, gain))
        return value + total, slopes + later_slopes

    value, slopes = recursion.if_ranks_are_left((value, slopes), others)
    value = tf.cast(tf.squeeze(value, _DOCUMENTS), batch.scores.dtype)
    return recursion.poison[:, 0] * value, recursion.to_scores(slopes)


@compiled.once_for_each_size
def _found_at_ranks(batch: Batch, at_ranks: tf.Tensor, ranks: tf.Tensor, *, precision: tf.DType) -> tf.Tensor:
    recursion = _Recursion(batch, at_ranks, ranks, precision)
    rows = tf.TensorArray(precision, size=tf.shape(at_ranks)[1]).unstack(recursion.at_ranks(at_ranks))

    def body(rank: tf.Tensor, factors: tf.Tensor, rows: tf.TensorArray) -> tuple[Any, ...]:
        _, found, later = recursion.step(factors)
        return rank + 1, later, rows.write(rank, found)

    _, factors, rows = tf.while_loop(lambda rank, *_: rank < recursion.looped, body, (0, recursion.start, rows))
    found = rows.stack()

    def others() -> tf.Tensor:
        flat = recursion.after_loop(factors, tf.shape(at_ranks)[1])
        return found + flat.weighted(flat.found)

    found = recursion.if_ranks_are_left(found, others)
    found = tf.cast(tf.transpose(tf.squeeze(found, 1 + _DOCUMENTS)), at_ranks.dtype)
    return recursion.poison * tf.where(lists.rank_mask(batch.mask, tf.shape(at_ranks)[1]), found, at_ranks)


@compiled.once_for_each_size
def _slopes_of_found(batch: Batch, upstream: tf.Tensor, ranks: tf.Tensor, *, precision: tf.DType) -> tf.Tensor:
    recursion = _Recursion(batch, upstream, ranks, precision)
    upstream = recursion.at_ranks(upstream)

    def body(rank: tf.Tensor, factors: tf.Tensor, slopes: tf.Tensor) -> tuple[Any, ...]:
        indicators, found, later = recursion.step(factors)
        return rank + 1, later, slopes + tf.gather(upstream, rank) * recursion.slopes(indicators, found, factors)

    state = (0, recursion.start, tf.zeros_like(recursion.start))
    _, factors, slopes = tf.while_loop(lambda rank, *_: rank < recursion.looped, body, state)

    def others() -> tf.Tensor:
        return slopes + recursion.after_loop(factors, tf.shape(upstream)[0]).sum_and_slopes(upstream, upstream)[1]

    return recursion.to_scores(recursion.if_ranks_are_left(slopes, others))


def ranks_until_small(largest: tf.Tensor, delta: float | tf.Tensor, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """Returns the number of ranks before |alpha S c| is small everywhere, by |c_r| <= (1 - delta)^(r - 1).

    Args:
      largest: The largest |alpha S|, float64.
      delta: What remains of a document's weight after its rank.
      dtype: The type of the scores.
    """
    small = _SMALL[dtype]
    decades = tf.math.log(tf.maximum(largest, small) / small)
    keep = tf.cast(1.0 - delta, largest.dtype)
    return tf.cast(tf.math.ceil(decades / -tf.math.log(keep)), tf.int32)
