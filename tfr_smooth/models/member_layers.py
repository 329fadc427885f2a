"""The layers of `FeedForwardScorer` for several networks side by side, its members."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


class MemberDense(tf.keras.layers.Layer):
    r"""The dense layers of M networks of equal shape, with the columns of the networks side by side.

    $$y_m = \mathrm{activation}(x_m K_m + b_m), \qquad x = [x_1, \ldots, x_M], \quad y = [y_1, \ldots, y_M]$$

    One layer has fewer variables and operations than M layers, so it takes less time to trace; with shared inputs, it
    is one matrix product.

    Args:
      units: Width of the output of each network, >= 1.
      members: Number of networks, >= 1.
      activation: Name of a Keras activation. None for none.
      shared_inputs: Whether all networks have the same inputs, [documents, inputs].
      use_bias: Whether the bias is trained; otherwise, it stays 0.
      scale: Scale of the initial variance of the kernels, > 0: 2 is He's, for ReLU.
      seed: Seed, >= 0, of the kernels, which are different normal draws. None uses Keras's global seed.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with [documents, members * inputs]. Returns [documents, members * units]. `mean` is the mean over the networks,
    [documents, units], for a layer without activation, as one matrix product. The weights are `kernel` [members,
    inputs, units] and `bias` [members, units].

    `FeedForwardScorer` checks the arguments.

    Attributes:
      used: 1 for inputs that a network uses and 0 for others, [members, inputs, 1], or None if all use all.

    Time O(documents * weights), memory O(documents * width).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.models.member_layers import MemberDense
      >>> layer = MemberDense(2, members=3, seed=0)
      >>> layer(tf.ones([5, 3 * 4])).shape, layer.kernel.shape
      (TensorShape([5, 6]), TensorShape([3, 4, 2]))
    """

    def __init__(
        self,
        units: int,
        *,
        members: int,
        activation: str | None = None,
        shared_inputs: bool = False,
        use_bias: bool = True,
        scale: float = 2.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.members, self.activation = units, members, activation
        self.shared_inputs, self.use_bias = shared_inputs, use_bias
        self.scale, self.seed = scale, seed
        self.used: np.ndarray | None = None

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs [documents, members * inputs], or [documents, inputs] if they are shared."""
        inputs = int(input_shape[-1]) // (1 if self.shared_inputs else self.members)
        shape = (self.members, inputs, self.units)
        self.kernel = self.add_weight(name="kernel", shape=shape, initializer=self._kernels)
        options = {"initializer": "zeros", "trainable": self.use_bias}
        self.bias = self.add_weight(name="bias", shape=(self.members, self.units), **options)
        super().build(input_shape)

    def _kernels(self, shape: Any, dtype: Any = None, **kwargs: Any) -> tf.Tensor:
        seeds: list[int | None] = [None] * self.members
        if self.seed is not None:
            seeds = [int(state) >> 1 for state in np.random.SeedSequence(self.seed).generate_state(self.members)]
        # The variance depends on the inputs of one member.
        return tf.stack([initializer(self.scale, seed)(shape[1:], dtype) for seed in seeds])

    def _used_kernel(self) -> tf.Tensor:
        """Returns the kernel, 0 where inputs are not used."""
        kernel = tf.convert_to_tensor(self.kernel)
        return kernel if self.used is None else kernel * tf.constant(self.used, kernel.dtype)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns [documents, members * units]."""
        kernel, bias = self._used_kernel(), tf.convert_to_tensor(self.bias)
        activation = tf.keras.activations.get(self.activation)
        if self.shared_inputs:
            columns = tf.reshape(tf.transpose(kernel, [1, 0, 2]), [-1, self.members * self.units])
            return activation(tf.nn.bias_add(tf.matmul(inputs, columns), tf.reshape(bias, [-1])))
        if self.units == 1:
            by_member = tf.reshape(inputs, [-1, self.members, kernel.shape[1]])
            return activation(tf.reduce_sum(by_member * kernel[:, :, 0], axis=2) + bias[:, 0])
        # `tf.einsum` transposes inputs and outputs. Bias and activation are faster on the columns of one member, which
        # fit into the processor's cache.
        parts = zip(tf.split(inputs, self.members, axis=1), tf.unstack(kernel), tf.unstack(bias), strict=True)
        return tf.concat([activation(tf.nn.bias_add(tf.matmul(own, each), b)) for own, each, b in parts], axis=1)

    def mean(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the mean of the outputs over the networks, [documents, units], without the activation."""
        kernel, bias = self._used_kernel(), tf.convert_to_tensor(self.bias)
        inputs = tf.cast(inputs, kernel.dtype)
        if self.shared_inputs:
            return tf.nn.bias_add(tf.matmul(inputs, tf.reduce_mean(kernel, axis=0)), tf.reduce_mean(bias, axis=0))
        rows = tf.reshape(kernel / self.members, [-1, self.units])
        return tf.nn.bias_add(tf.matmul(inputs, rows), tf.reduce_mean(bias, axis=0))


class MemberDropout(tf.keras.layers.Dropout):
    """Dropout of networks side by side, which drops the same units of each network: random numbers take much time.

    Args:
      rate: The rate, in (0, 1).
      members: Number of networks, >= 1.
      seed: Seed. None uses Keras's global seed.

    Call with [documents, members * units]. Returns the same shape.
    """

    def __init__(self, rate: float, *, members: int, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(rate, seed=seed, **kwargs)
        self.members = members

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns [documents, members * units]."""
        if not training:
            return inputs
        of_one = tf.ones([tf.shape(inputs)[0], inputs.shape[1] // self.members], inputs.dtype)
        return inputs * tf.tile(super().call(of_one, training=True), [1, self.members])


class FeatureFunctions(tf.keras.layers.Layer):
    """The sums of piecewise linear functions of features, for M networks: linear in the segments of `Quantiles`.

    Args:
      members: Number of networks, >= 1.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with [documents, segments]. Returns [documents, members]. `mean` is the mean over the networks, [documents, 1].
    The weights, `rises` [segments, members], start at 0.

    Time O(documents * segments * members).

    Example:
      >>> import tensorflow as tf
      >>> FeatureFunctions(members=3)(tf.ones([5, 16])).shape
      TensorShape([5, 3])
    """

    def __init__(self, *, members: int, **kwargs: Any) -> None:
        super().__init__(dtype="float32", **kwargs)
        self.members = members

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs [documents, segments]."""
        shape = (int(input_shape[-1]), self.members)
        # The optimizer finds these weights by their name.
        self.rises = self.add_weight(name="rises", shape=shape, initializer="zeros")
        super().build(input_shape)

    def call(self, segments: tf.Tensor) -> tf.Tensor:
        """Returns [documents, members]."""
        return tf.matmul(segments, tf.convert_to_tensor(self.rises))

    def mean(self, segments: tf.Tensor) -> tf.Tensor:
        """Returns the mean over the networks, [documents, 1]."""
        # With mixed precision, a model that calls this in its own call reads float16.
        rises = tf.convert_to_tensor(self.rises)
        return tf.cast(tf.matmul(tf.cast(segments, rises.dtype), tf.reduce_mean(rises, 1, keepdims=True)), tf.float32)


def initializer(scale: float, seed: int | None) -> tf.keras.initializers.Initializer:
    """Returns the initializer of kernels with a variance of `scale` divided by the number of inputs."""
    return tf.keras.initializers.VarianceScaling(scale, mode="fan_in", distribution="truncated_normal", seed=seed)
