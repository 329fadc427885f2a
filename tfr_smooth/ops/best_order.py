"""What the best order of a list's documents gains: the denominator of NDCG."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.ops import compiled, gains

# Of more different relevances a list is sorted; and for fewer ranks, as that is less to compile.
_MOST_LEVELS = 8
_LEAST_RANKS = 64


def gained(relevance: tf.Tensor, worth: tf.Tensor, gain: str) -> tf.Tensor:
    r"""Returns $\sum_r w_r g(rel_{(r)})$ with the relevance in falling order.

    Args:
      relevance: [batch, list], >= 0, without NaN, 0 at padding.
      worth: [1, K] or [batch, K], the w of ranks 1..K, K being at most the list's length; float64.
      gain: The name of g.

    Returns:
      [batch], in the type of the relevance.

    Time O(N log N) a list; in compiled programs, for K >= 64, O(L N) where no list has more than L <= 8 relevances
    above 0.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops import best_order
      >>> worth = tf.constant([[1.0, 0.5]], tf.float64)
      >>> print(best_order.gained(tf.constant([[1.0, 0.0, 2.0]]), worth, "linear").numpy())
      [2.5]
    """
    if not compiled.is_inside():
        return _by_sorting(relevance, worth, gain)

    def by_levels() -> tf.Tensor:
        found, is_left = _by_levels(relevance, worth, gain)
        return tf.cond(is_left, lambda: _by_sorting(relevance, worth, gain), lambda: found)

    # XLA knows the shape, and then leaves one of the two out.
    return tf.cond(tf.shape(worth)[1] < _LEAST_RANKS, lambda: _by_sorting(relevance, worth, gain), by_levels)


def _by_sorting(relevance: tf.Tensor, worth: tf.Tensor, gain: str) -> tf.Tensor:
    best = tf.math.top_k(relevance, tf.shape(worth)[1]).values
    return tf.reduce_sum(gains.gained(best, gain) * tf.cast(worth, best.dtype), axis=1)


def _by_levels(relevance: tf.Tensor, worth: tf.Tensor, gain: str) -> tuple[tf.Tensor, tf.Tensor]:
    """From the highest relevance to the lowest: documents of one share a run of ranks. XLA sorts slowly.

    Also returns whether there were more levels than it took.
    """
    ranks = tf.shape(worth)[1]
    # What the first 0, 1, .., K ranks are worth; in float64, as these are subtracted.
    total = tf.pad(tf.cumsum(worth, axis=1), [[0, 0], [1, 0]])

    def worth_of_first(count: tf.Tensor) -> tf.Tensor:
        count = tf.minimum(count, ranks)
        if total.shape[0] == 1:
            return tf.gather(total[0], count)
        return tf.gather(total, count[:, tf.newaxis], batch_dims=1)[:, 0]

    def highest_below(level: tf.Tensor) -> tf.Tensor:
        below = tf.where(relevance < level[:, tf.newaxis], relevance, tf.zeros_like(relevance))
        return tf.reduce_max(below, axis=1)

    def is_left(level: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
        return tf.reduce_any(tf.logical_and(level > 0.0, before < ranks))

    def body(
        number: tf.Tensor, level: tf.Tensor, before: tf.Tensor, found: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        until = before + tf.reduce_sum(tf.cast(tf.equal(relevance, level[:, tf.newaxis]), tf.int32), axis=1)
        gap = worth_of_first(until) - worth_of_first(before)
        more = tf.cast(gains.gained(level, gain), tf.float64) * gap
        return number + 1, highest_below(level), until, found + tf.where(tf.equal(gap, 0.0), tf.zeros_like(more), more)

    highest = tf.reduce_max(relevance, axis=1)
    nothing = tf.zeros_like(highest, tf.int32), tf.zeros_like(highest, tf.float64)
    _, level, before, found = tf.while_loop(
        lambda number, level, before, _: tf.logical_and(number < _MOST_LEVELS, is_left(level, before)),
        body,
        (0, highest, *nothing),
    )
    return tf.cast(found, relevance.dtype), is_left(level, before)
