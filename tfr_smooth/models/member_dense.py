"""A dense layer of several networks side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments


class MemberDense(tf.keras.layers.Layer):
    r"""The dense layers of M networks of equal shape, with the columns of the networks side by side.

    $$y_m = \mathrm{activation}(x_m K_m + b_m), \qquad x = [x_1, \ldots, x_M], \quad y = [y_1, \ldots, y_M]$$

    One layer has fewer variables and operations than M layers, so it takes less time to trace.

    Args:
      units: Width of the output of each network, >= 1.
      members: Number of networks, >= 1.
      activation: Name of a Keras activation. None for none.
      seed: Seed, >= 0, of the kernels, which are different Glorot normal draws. None uses Keras's global seed.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with [documents, members * inputs]. Returns [documents, members * units]. The weights are `kernel` [members,
    inputs, units] and `bias` [members, units].

    Raises:
      ValueError: If an argument is out of range.

    Time O(documents * weights), memory O(documents * width).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.models.member_dense import MemberDense
      >>> layer = MemberDense(2, members=3, seed=0)
      >>> layer(tf.ones([5, 3 * 4])).shape, layer.kernel.shape
      (TensorShape([5, 6]), TensorShape([3, 4, 2]))
    """

    def __init__(
        self, units: int, *, members: int, activation: str | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.units = _arguments.integer("units", units, least=1)
        self.members = _arguments.integer("members", members, least=1)
        self.activation = activation
        self.seed = _arguments.integer_or_none("seed", seed, least=0)

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs [documents, members * inputs]."""
        shape = (self.members, int(input_shape[-1]) // self.members, self.units)
        self.kernel = self.add_weight(name="kernel", shape=shape, initializer=self._kernels)
        self.bias = self.add_weight(name="bias", shape=(self.members, self.units), initializer="zeros")
        super().build(input_shape)

    def _kernels(self, shape: Any, dtype: Any = None, **kwargs: Any) -> tf.Tensor:
        seeds: list[int | None] = [None] * self.members
        if self.seed is not None:
            seeds = [int(state) >> 1 for state in np.random.SeedSequence(self.seed).generate_state(self.members)]
        # The variance depends on the inputs and units of one member.
        return tf.stack([tf.keras.initializers.GlorotNormal(seed=seed)(shape[1:], dtype) for seed in seeds])

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns [documents, members * units]."""
        # `tf.einsum` transposes inputs and outputs. Bias and activation are faster on the columns of one member, which
        # fit into the processor's cache.
        parts = zip(tf.split(inputs, self.members, axis=1), tf.unstack(self.kernel), tf.unstack(self.bias), strict=True)
        activation = tf.keras.activations.get(self.activation)
        outputs = [activation(tf.nn.bias_add(tf.matmul(own, kernel), bias)) for own, kernel, bias in parts]
        return tf.concat(outputs, axis=1)
