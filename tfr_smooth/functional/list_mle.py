"""ListMLE: the likelihood of the ideal order under the Plackett-Luce model."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfr_smooth.functional import inputs


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
    keys = tf.where(mask, labels, tf.constant(float("inf"), labels.dtype))
    order = tf.argsort(keys, axis=1, stable=True)
    keys, scores, mask = (tf.gather(x, order, batch_dims=1) for x in (keys, scores, mask))

    # Each sum of e^s is kept relative to its highest term: as the score itself it would drown what is added to it.
    highest, mean, mean_exp = _over_ties(keys, scores)
    peak = _running_maximum(highest)
    decay = tf.exp(tf.concat([peak[:, :1], peak[:, :-1]], axis=1) - peak)
    sums = _decaying_sum(decay, mean_exp * tf.exp(highest - peak))
    terms = (peak - highest) + tf.math.log(sums) - mean
    if position_aware:
        terms *= _position_weights(mask, scores.dtype)
    return tf.reduce_sum(tf.where(mask, terms, tf.zeros_like(terms)), axis=1)


def _over_ties(keys: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns (h, mean of s - h, mean of e^(s - h)) with h = max s, over the documents with a position's key."""
    rows, columns = tf.shape(keys)[0], tf.shape(keys)[1]
    steps = tf.cast(tf.not_equal(keys[:, 1:], keys[:, :-1]), tf.int32)
    groups = tf.pad(tf.cumsum(steps, axis=1), [[0, 0], [1, 0]])[:, :columns]  # The cut is for lists of length 0.
    groups = tf.reshape(groups + columns * tf.range(rows)[:, tf.newaxis], [-1])

    def over_groups(reduce: Callable[..., tf.Tensor], values: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tf.gather(reduce(tf.reshape(values, [-1]), groups, rows * columns), groups), tf.shape(keys))

    highest = over_groups(tf.math.unsorted_segment_max, tf.stop_gradient(scores))
    below = scores - highest
    count = over_groups(tf.math.unsorted_segment_sum, tf.ones_like(scores))
    mean, mean_exp = (over_groups(tf.math.unsorted_segment_sum, x) / count for x in (below, tf.exp(below)))
    return highest, mean, mean_exp


def _position_weights(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """(2^(N-i) - 1) / (2^(N-1) - 1) for i = N, N-1, ..., 1, with nothing that overflows; 0 for N = 1."""
    length = tf.reduce_sum(tf.cast(mask, dtype), axis=1, keepdims=True)
    after = tf.cast(tf.range(tf.shape(mask)[1]), dtype)[tf.newaxis]  # N - i
    two, last = tf.constant(2.0, dtype), tf.pow(tf.constant(2.0, dtype), 1.0 - length)
    weights = tf.pow(two, after + 1.0 - length) - last
    return tf.math.divide_no_nan(tf.where(mask, weights, tf.zeros_like(weights)), 1.0 - last)


def _doubling(step: Callable[..., tuple[tf.Tensor, ...]], arrays: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
    """Runs `step(take, reaches, *arrays)` for a reach of 1, 2, 4, ... < N along [batch, list].

    `take(array)` is the array that much earlier, where there is one: where `reaches` is True. Else it is the first.
    """
    positions = tf.range(tf.shape(arrays[0])[1])

    def double(reach: tf.Tensor, *arrays: tf.Tensor) -> tuple[tf.Tensor, ...]:
        sources = tf.maximum(positions - reach, 0)
        return (2 * reach, *step(lambda array: tf.gather(array, sources, axis=1), positions >= reach, *arrays))

    return tf.while_loop(lambda reach, *_: reach < tf.size(positions), double, (tf.constant(1), *arrays))[1:]


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
    """The maximum of the first k of [batch, list] at each k; a constant to the gradient."""

    def step(take: Callable[[tf.Tensor], tf.Tensor], _: tf.Tensor, highest: tf.Tensor) -> tuple[tf.Tensor]:
        return (tf.maximum(highest, take(highest)),)

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
