"""The temperature of a ranking: a number, or a variable that changes during training."""

from __future__ import annotations

import tensorflow as tf


def as_tensor(temperature: float | tf.Variable, dtype: tf.DType) -> tf.Tensor:
    """Returns the current value of a temperature as a scalar tensor without a gradient."""
    if isinstance(temperature, tf.Variable):
        return tf.stop_gradient(tf.cast(temperature, dtype))
    return tf.constant(temperature, dtype)
