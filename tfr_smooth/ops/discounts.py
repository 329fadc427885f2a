"""What a rank is worth."""

from __future__ import annotations

import math

import tensorflow as tf


def log2_discount(ranks: tf.Tensor) -> tf.Tensor:
    r"""Returns NDCG's discount $D(r) = 1 / \log_2(2 + r)$, which is 1 at r = 0, for ranks from 0 of any shape.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops import discounts
      >>> print(discounts.log2_discount(tf.constant([0.0, 2.0, 6.0])).numpy().round(4))
      [1.     0.5    0.3333]
    """
    return math.log(2.0) / tf.math.log(2.0 + ranks)
