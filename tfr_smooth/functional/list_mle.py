"""ListMLE: the likelihood of the ideal order under the Plackett-Luce model."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfr_smooth.functional import inputs
from tfr_smooth.ops import lists
from tfr_smooth.ops.neighbours import Neighbours

# From a list's highest score to its lowest; float64 ends at e^-745.
_WIDEST = 600.0


def list_mle(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, position_aware: bool = False
) -> tf.Tensor:
    r"""ListMLE of each list: $\sum_{i=1}^N \alpha_i \left(\log \sum_{k=i}^N e^{s_{\pi(k)}} - s_{\pi(i)}\right)$.

    $\pi$ is the order by falling label. $\alpha_i = 1$ (Xia et al., "Listwise Approach to Learning to Rank: Theory and
    Algorithm", ICML 2008) or, position-aware, $\alpha_i = (2^{N-i} - 1) / (2^{N-1} - 1)$ (Lan et al., "Position-Aware
    ListMLE", UAI 2014, whose weights these are, but for the constant that makes the first one 1: theirs grow as $2^N$).

    Documents with the same label have no order. Each takes their mean score as $s_{\pi(i)}$ and the mean of their
    $e^s$ as its part of the sums: so nothing hangs on the positions in the list, and the loss bounds from above the
    mean over all the orders that the labels allow (by Jensen's inequality; survival analysis knows it as Efron's
    treatment of ties).

    Args:
      labels: [batch, list], float or int, >= 0; a negative label is padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for (further) padding.
      position_aware: Whether early positions weigh more.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for a list of padding.

    Raises:
      ValueError: If the shapes do not match.

    Time O(N log N), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.functional.list_mle import list_mle
      >>> print(list_mle(tf.constant([[1.0, 2.0, 0.0, -1.0]]), tf.zeros([1, 4])).numpy().round(4))
      [1.7918]
    """
    labels, scores, mask = inputs.clean(labels, scores, mask)
    scores = tf.where(tf.math.is_nan(labels), labels, scores)  # A NaN label shows like a NaN score.
    # From the last position to the first, so that the sums run forwards; then padding, which they never reach.
    falling = lists.filled(-labels, mask, float("-inf"))
    falling, order = tf.math.top_k(falling, tf.shape(labels)[1])
    keys, mask = -falling, tf.not_equal(falling, float("-inf"))
    scores = tf.gather(scores, order, batch_dims=1)

    changes = tf.not_equal(keys[:, 1:], keys[:, :-1])
    # The cut is for lists of length 0.
    ties = Neighbours(tf.pad(changes, [[0, 0], [1, 0]], constant_values=True)[:, : tf.shape(keys)[1]])
    # The 0 that padding has reaches nothing, as it comes last.
    terms = _log_sums(ties, scores)
    if position_aware:  # Else the sum of the scores is that of their means.
        below = scores - ties.highest(scores)
        terms += below - ties.mean(below)
        terms *= _position_weights(mask, scores.dtype)
    return tf.reduce_sum(lists.filled(terms, mask, 0.0), axis=1)


def _log_sums(ties: Neighbours, scores: tf.Tensor) -> tf.Tensor:
    """Returns log(sum_{i <= k} e^{s_i}) - s_k at each k, [batch, list], with the mean of e^s over ties."""
    fixed = tf.stop_gradient(scores)
    spread = tf.reduce_max(fixed, axis=1) - tf.reduce_min(fixed, axis=1)
    is_narrow = tf.reduce_all(spread < _WIDEST)
    below = tf.cast(fixed, tf.float64)
    below -= tf.reduce_max(below, axis=1, keepdims=True)

    def of_narrow() -> tf.Tensor:
        return tf.cast(tf.math.log(tf.cumsum(ties.mean(tf.exp(below)), axis=1)) - below, scores.dtype)

    def of_any(scores: tf.Tensor) -> tf.Tensor:
        # Each sum of e^s relative to the highest so far: relative to the highest of all it may be nothing.
        highest = ties.highest(scores)
        peak = _running_maximum(highest)
        decay = tf.exp(tf.concat([peak[:, :1], peak[:, :-1]], axis=1) - peak)
        sums = _decaying_sum(decay, ties.mean(tf.exp(scores - highest)) * tf.exp(highest - peak))
        return (peak - highest) + tf.math.log(sums) - (scores - highest)

    @tf.custom_gradient
    def log_sums(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        found = tf.cond(is_narrow, of_narrow, lambda: of_any(scores))

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            def narrow() -> tf.Tensor:
                over_sums = tf.cast(upstream, tf.float64) * tf.exp(-below - tf.cast(found, tf.float64))
                later = ties.mean(tf.cumsum(over_sums, axis=1, reverse=True))
                return tf.cast(tf.exp(below) * later, scores.dtype) - upstream

            def wide() -> tf.Tensor:
                with tf.GradientTape() as tape:
                    tape.watch(scores)
                    again = of_any(scores)
                return tape.gradient(again, scores, upstream)

            return tf.cond(is_narrow, narrow, wide)

        return found, gradient

    return log_sums(scores)


def _position_weights(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """(2^(N-i) - 1) / (2^(N-1) - 1) for i = N, N-1, ..., 1, with nothing that overflows; 0 for N = 1."""
    length = tf.reduce_sum(tf.cast(mask, dtype), axis=1, keepdims=True)
    after = tf.cast(tf.range(tf.shape(mask)[1]), dtype)[tf.newaxis]  # N - i
    two, last = tf.constant(2.0, dtype), tf.pow(tf.constant(2.0, dtype), 1.0 - length)
    weights = tf.pow(two, after + 1.0 - length) - last
    return tf.math.divide_no_nan(lists.filled(weights, mask, 0.0), 1.0 - last)


def _doubling(step: Callable[..., tuple[tf.Tensor, ...]], arrays: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
    """Runs `step(take, reaches, *arrays)` for a reach of 1, 2, 4, ... < N along [batch, list].

    `take(array)` is the array that much earlier, where there is one: where `reaches` is True. Else it is anything.
    """
    positions = tf.range(tf.shape(arrays[0])[1])

    def double(reach: tf.Tensor, *arrays: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (2 * reach, *step(lambda array: tf.roll(array, reach, axis=1), positions >= reach, *arrays))

    return tf.while_loop(lambda reach, *_: reach < tf.size(positions), double, (tf.constant(1), *arrays))[1:]


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
    """The maximum of the first k of [batch, list] at each k; a constant to the gradient."""

    def step(take: Callable[[tf.Tensor], tf.Tensor], reaches: tf.Tensor, highest: tf.Tensor) -> tuple[tf.Tensor]:
        return (tf.where(reaches, tf.maximum(highest, take(highest)), highest),)

    return _doubling(step, (tf.stop_gradient(values),))[0]


def _decaying_sum(decay: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """c_k = decay_k c_{k-1} + values_k along [batch, list], with c_0 = values_0; the decay is a constant."""

    def step(
        take: Callable[[tf.Tensor], tf.Tensor], reaches: tf.Tensor, decay: tf.Tensor, sums: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        decay = tf.where(reaches, decay, tf.zeros_like(decay))
        return decay * take(decay), sums + decay * take(sums)

    @tf.custom_gradient
    def run(values: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # The same sum from the other end. (That of a loop would keep all its rounds, and XLA cannot take it.)
            later = tf.concat([decay[:, 1:], decay[:, :1]], axis=1)
            return tf.reverse(_decaying_sum(tf.reverse(later, [1]), tf.reverse(upstream, [1])), [1])

        return _doubling(step, (decay, values))[1], gradient

    return run(values)
