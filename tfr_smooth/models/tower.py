"""TF-Ranking's feed-forward network for rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments


def create_tower(
    hidden_layer_dims: Iterable[int],
    output_units: int,
    activation: Any = None,
    input_batch_norm: bool = False,
    use_batch_norm: bool = True,
    batch_norm_moment: float = 0.999,
    dropout: float | None = 0.5,
    name: str | None = None,
    **kwargs: Any,
) -> tf.keras.Sequential:
    """Creates TF-Ranking's feed-forward network: dense layers, batch normalization, activation and dropout.

    Args:
      hidden_layer_dims: Widths of the hidden layers, each >= 1.
      output_units: Width of the output, >= 1.
      activation: A Keras activation, or its name. None for none.
      input_batch_norm: Whether to normalize the inputs.
      use_batch_norm: Whether to use batch normalization between the dense layer and the activation.
      batch_norm_moment: Momentum of the moving statistics, in (0, 1).
      dropout: Dropout rate after each hidden layer, in [0, 1). None for none.
      name: Name of the model. None uses Keras's default.
      **kwargs: Arguments of all `tf.keras.layers.Dense` layers, such as `kernel_regularizer`. In TF-Ranking, they raise
        a `TypeError`.

    Returns:
      A network for [..., width], which returns [..., output_units].

    Raises:
      ValueError: If an argument is out of range.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> tower = models.create_tower(hidden_layer_dims=[64, 32, 16], output_units=1)
      >>> tower(tf.ones([2, 3, 1])).shape
      TensorShape([2, 3, 1])
    """
    layers = tf.keras.layers
    widths = [_arguments.integer("hidden_layer_dims", width, least=1) for width in hidden_layer_dims]
    output_units = _arguments.integer("output_units", output_units, least=1)
    momentum = _arguments.real("batch_norm_moment", batch_norm_moment, above=0.0, below=1.0)
    rate = _arguments.real("dropout", dropout or 0.0, least=0.0, below=1.0)
    tower = tf.keras.Sequential(name=name)
    if _arguments.boolean("input_batch_norm", input_batch_norm):
        tower.add(layers.BatchNormalization(momentum=momentum))
    for width in widths:
        tower.add(layers.Dense(width, **kwargs))
        if _arguments.boolean("use_batch_norm", use_batch_norm):
            tower.add(layers.BatchNormalization(momentum=momentum))
        tower.add(layers.Activation(activation))
        if rate:
            tower.add(layers.Dropout(rate))
    tower.add(layers.Dense(output_units, **kwargs))
    return tower
