"""Products along a list with a gradient free of divisions."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfr_smooth.ops import compiled


def exclusive_product(probabilities: tf.Tensor) -> tf.Tensor:
    r"""Returns the exclusive product $\prod_{l<r} (1 - p_l)$: the probability that no earlier event occurs.

    Args:
      probabilities: [batch, K], in [0, 1].

    Returns:
      [batch, K], in the type of the probabilities.

    The gradient of TensorFlow's cumulative product divides by its factors. This one is correct where a factor is 0.

    Time O(K log K), memory O(K) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.products import exclusive_product
      >>> print(exclusive_product(tf.constant([[0.5, 1.0, 0.5]])).numpy())
      [[1.  0.5 0. ]]
    """
    return tf.ensure_shape(_exclusive_product(probabilities), probabilities.shape)


@tf.custom_gradient
def _product(probabilities: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    # A tensor of this graph, which the second derivative needs (see `compiled.differentiable`).
    probabilities = tf.identity(probabilities)
    products = tf.math.cumprod(1.0 - probabilities, axis=1, exclusive=True)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return -_product(probabilities) * _sum_after(upstream, 1.0 - probabilities)

    return products, gradient


# Wrapped here: a graph that calls itself in its gradient cannot be saved.
_exclusive_product = compiled.graph(_product)


def _sum_after(values: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    r"""Returns $V_m = \sum_{r>m} u_r \prod_{m<l<r} f_l$ for values u and factors f, [batch, K] each.

    Solves $V_m = u_{m+1} + f_{m+1} V_{m+1}$ by doubling: after t rounds, each sum covers the next $2^t$ ranks.
    """
    ranks = tf.shape(values)[1]
    sums, products = (tf.pad(tensor, [[0, 0], [0, 1]])[:, 1:] for tensor in (values, factors))

    def later(tensor: tf.Tensor, reach: tf.Tensor) -> tf.Tensor:
        places = tf.range(ranks) + reach
        moved = tf.gather(tensor, tf.minimum(places, ranks - 1), axis=1)
        return tf.where(places < ranks, moved, tf.zeros_like(moved))

    def double(reach: tf.Tensor, sums: tf.Tensor, products: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return 2 * reach, sums + products * later(sums, reach), products * later(products, reach)

    return tf.while_loop(lambda reach, *_: reach < ranks, double, (tf.constant(1), sums, products))[1]
