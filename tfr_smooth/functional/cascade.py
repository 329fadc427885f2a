"""The cascade: a reader goes down the ranks, and may stop at each."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf


def stopped(chances: tf.Tensor, worth: tf.Tensor) -> tf.Tensor:
    r"""What stopping is expected to be worth: $\sum_r w_r \, p_r \prod_{l<r} (1 - p_l)$.

    Args:
      chances: [batch, K], in [0, 1]: the chance to stop at a rank that was reached.
      worth: [K], what stopping at each rank is worth; a constant, no gradient flows to it.

    Returns:
      [batch], in the type of `chances`.

    The gradient divides by nothing, as that of a running product would: a chance of 1 has one too.

    Time O(K log K), memory O(K) a list. Runs in graphs and under XLA.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.functional.cascade import stopped
      >>> print(stopped(tf.constant([[0.5, 1.0, 0.5]]), tf.constant([1.0, 0.5, 0.25])).numpy())
      [0.75]
    """
    worth = tf.stop_gradient(worth)

    @tf.custom_gradient
    def expected(chances: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        reached = tf.math.cumprod(1.0 - chances, axis=1, exclusive=True)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # Stopping here is worth w_r instead of what was to come.
            return upstream[:, tf.newaxis] * reached * (worth - _to_come(chances, worth))

        return tf.reduce_sum(worth * chances * reached, axis=1), gradient

    return expected(chances)


def _to_come(chances: tf.Tensor, worth: tf.Tensor) -> tf.Tensor:
    r"""What is expected after each rank, [batch, K]: $V_r = w_{r+1} p_{r+1} + (1 - p_{r+1}) V_{r+1}$.

    By doubling: after t rounds each rank knows of the next 2^t ranks, and of the chance to pass them all.
    """
    ranks = tf.shape(chances)[1]
    gained, passed = (tf.pad(t, [[0, 0], [0, 1]])[:, 1:] for t in (worth * chances, 1.0 - chances))

    def later(values: tf.Tensor, reach: tf.Tensor) -> tf.Tensor:
        places = tf.range(ranks) + reach
        moved = tf.gather(values, tf.minimum(places, ranks - 1), axis=1)
        return tf.where(places < ranks, moved, tf.zeros_like(moved))

    def double(reach: tf.Tensor, gained: tf.Tensor, passed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return 2 * reach, gained + passed * later(gained, reach), passed * later(passed, reach)

    state = (tf.constant(1), gained, passed)
    return tf.while_loop(lambda reach, *_: reach < ranks, double, state)[1]
