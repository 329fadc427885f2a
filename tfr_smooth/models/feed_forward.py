"""The feed-forward scorer, and its layers for several networks side by side, its members."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.encoded_scorer import ENCODING_CHECKS, PADDING_SCORE, EncodedScorer

# Hidden layers by name, from Bruch et al., SIGIR 2019 ("B64: 3 hidden layers with 64, 32, and 16 units; progressively
# deeper by adding layers that grow by a factor of 2"); "linear" has no hidden layers.
_WIDTHS = (1024, 512, 256, 128, 64, 32, 16)
ARCHITECTURES: dict[str, tuple[int, ...]] = {"linear": ()}
ARCHITECTURES.update((f"B{_WIDTHS[first]}", _WIDTHS[first:]) for first in (4, 3, 2, 1, 0))

# Initial scores are near 0: a network learns faster if it has no random scores to unlearn. The scale was chosen with
# the other defaults of `Ranker`, on validation queries of MQ2007, MQ2008, the Yandex set and synthetic sets.
_OUTPUT_SCALE = 0.02


@_serialization.register
class FeedForwardScorer(EncodedScorer):
    r"""Scores each document of a list with a feed-forward network.

    The network consists of batch normalization of the input; a dense layer, ReLU and batch normalization per hidden
    layer; and a dense output layer:

    $$s(x) = w^\top h_L + b, \qquad h_l = \mathrm{BN}(\mathrm{ReLU}(W_l h_{l-1} + b_l)), \qquad h_0 = \mathrm{BN}(x)$$

    (Section 5.1 and Figure 2 of arXiv:2105.00942 with one hidden layer of 1024; Bruch et al., SIGIR 2019, with B1024.)
    The network only processes real documents: padding costs nothing and is excluded from the batch statistics. Under a
    `tf.distribute` strategy with several replicas, the batch statistics are those of the global batch.

    With `normalization="quantiles"`, the score has one more term, a sum of functions of single numbers as in
    generalized additive models (Hastie and Tibshirani, Statistical Science 1986): piecewise linear ones in the segments
    of `Quantiles`, which start at 0. They learn steps, and columns that are mostly zero, sooner than the network.

    With several members, the score is the mean over networks that differ in their random numbers. Such networks make
    different errors, and their mean ranks better than a single network. `fit` trains the networks at once, on the same
    batches, each with its own loss: the gradient of a network is that of training it alone. The training loss is the
    mean over the networks; metrics are those of the mean score.

    Args:
      hidden: Widths of the hidden layers, each >= 1, or a name: "linear" (no hidden layers), "B64", "B128", "B256",
        "B512", "B1024".
      normalization: Normalization of the input features: "min_max" (per query), "standardize" or "quantiles"
        (call `adapt` with the training set before training), "log1p" or None for no normalization. It is part of the
        model, so exported models take raw features.
      batch_norm: Whether to use batch normalization.
      batch_norm_momentum: Momentum of the moving statistics, in (0, 1). The papers' code uses 0.9. For training sets
        with many batches, a higher value is better (Bruch et al. use 0.99 there).
      dropout: Dropout rate of the inputs of each dense layer except the first, in [0, 1).
      members: Number of networks, >= 1.
      embeddings: The features that are codes of ids, sets and texts, as `tables` of `Embeddings`, which the networks
        share. They are not normalized.
      vectors: The features that are vectors, (first, length): the place of the first number, and the number of them.
        They are not normalized.
      embedding_dim: Length of the vectors of codes, >= 1.
      offset: The place of a feature that is added to the score, such as the score of another model: the network learns
        what it lacks. Of several members, every other one has it, so that the mean is good also if the other model is
        not. None adds nothing.
      weak: The places of features that rank no better than chance by themselves; of codes, that of the first one. Half
        of the members do not use them, of four the third and fourth, and the others have neither their quantiles nor
        functions of single ones.
      output_bias: Whether the output layer has a bias b. Losses that do not change with a shift of the scores, such as
        those with `shift_invariant`, cannot train it: with False, it does not drift by rounding errors.
      seed: Seed, >= 0, of the initial weights, the dropout and the noise. None uses Keras's global seed.
      name: Name of the model. None uses Keras's default.

    Call with a dict of `features` [batch, list, num_features] and an optional `mask` [batch, list] bool, False for
    padding; or with only the features. Returns scores [batch, list], float32; `PADDING_SCORE` (-1e30) at padding. With
    several members and `training=True`, returns the scores of each member, [members, batch, list].

    Raises:
      ValueError: If an argument is out of range.

    Time O(documents * weights), memory O(documents * width), counting only real documents.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> scorer = models.FeedForwardScorer(hidden=[16])
      >>> inputs = {"features": tf.ones([2, 3, 5]), "mask": tf.constant([[True, True, False], [True, True, True]])}
      >>> scores = scorer(inputs)
      >>> print(scores.shape, float(scores[0, 2]) == float(tf.constant(-1e30)))
      (2, 3) True
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] | str = (1024,),
        normalization: str | None = None,
        batch_norm: bool = True,
        batch_norm_momentum: float = 0.9,
        dropout: float = 0.0,
        members: int = 1,
        embeddings: Sequence[Sequence[int]] = (),
        vectors: Sequence[Sequence[int]] = (),
        embedding_dim: int = 16,
        offset: int | None = None,
        weak: Sequence[int] = (),
        output_bias: bool = True,
        seed: int | None = None,
        name: str | None = "feed_forward_scorer",
    ) -> None:
        arguments = {key: value for key, value in locals().items() if key in _CHECKS}
        # Raw features may exceed float16. With mixed precision, the layers after the normalization cast.
        super().__init__(name=name, autocast=False)
        self._config = checked_arguments(**arguments)
        self.members = members
        # On a GPU, Keras 3 uses XLA by default. XLA would recompile for each number of real documents and compute on
        # padding.
        self.supports_jit = False
        widths = _widths(hidden)
        # Only with several replicas: synchronized statistics use E[x^2] - E[x]^2, which loses precision.
        synchronized = tf.distribute.get_strategy().num_replicas_in_sync > 1
        seeds = _seeds(seed)
        tower = []
        for depth, width in enumerate([*widths, 1]):
            if batch_norm:
                options = {"momentum": batch_norm_momentum, "synchronized": synchronized}
                tower.append(tf.keras.layers.BatchNormalization(**options))
            if depth > 0 and dropout:
                tower.append(MemberDropout(dropout, members=members, seed=next(seeds)))
            is_last = depth == len(widths)
            options = {"activation": None if is_last else "relu", "seed": next(seeds)}
            options["scale"] = _OUTPUT_SCALE if is_last else 2.0
            options["use_bias"] = output_bias or not is_last
            if members > 1:
                shared = depth == 0 and not batch_norm  # each network has its own batch normalization
                tower.append(MemberDense(width, members=members, shared_inputs=shared, **options))
            else:
                kernel = initializer(options.pop("scale"), options.pop("seed"))
                tower.append(tf.keras.layers.Dense(width, kernel_initializer=kernel, **options))
        self.tower = tower
        self._uses_segments = normalization == "quantiles"
        self.additive: FeatureFunctions | None = None
        self.set_encoding(next(seeds) if embeddings else None)
        self._own_inputs = members > 1 and batch_norm

    def build_network(self, width: int) -> None:
        """Creates the weights for encoded documents of this width."""
        if self._num_segments:
            self.additive = FeatureFunctions(members=self.members, name="additive")
            self.additive.build((None, self._num_segments))
        if self.members > 2 and self._config["weak"]:
            used = np.ones([self.members, width, 1], np.float32)
            used[np.ix_(np.arange(self.members) % 4 > 1, np.isin(self.encoded_places(), self._config["weak"]))] = 0.0
            next(layer for layer in self.tower if isinstance(layer, MemberDense)).used = used
        columns = width * (self.members if self._own_inputs else 1)
        for layer in self.tower:
            layer.build((None, columns))
            columns = layer.units * self.members if hasattr(layer, "units") else columns

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]; in training with several members, those of each, [members, batch, list]."""
        documents, segments, mask = self.encode(inputs)
        outputs = tf.tile(documents, [1, self.members]) if self._own_inputs else documents
        for layer in self.tower[:-1]:
            outputs = layer(outputs)
        by_member = self.members > 1 and training
        last = self.tower[-1] if by_member or self.members == 1 else self.tower[-1].mean
        scores = tf.cast(last(outputs), tf.float32)
        if self.additive is not None:
            scores += self.additive(segments) if by_member else self.additive.mean(segments)
        has_offset = np.arange(self.members) % 2 if self.members > 1 else np.ones(1)
        scores += self.offset(inputs, mask) * tf.constant(has_offset if by_member else [has_offset.mean()], tf.float32)
        if by_member:
            padding = tf.fill(tf.concat([tf.shape(mask), [self.members]], axis=0), PADDING_SCORE)
            return tf.stack(tf.unstack(tf.tensor_scatter_nd_update(padding, tf.where(mask), scores), axis=2))
        return tf.tensor_scatter_nd_update(tf.fill(tf.shape(mask), PADDING_SCORE), tf.where(mask), scores[:, 0])

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> tf.Tensor:
        """Called by Keras: computes the mean of the losses of the members, with the sum of their gradients.

        Args:
          x: The inputs.
          y: Labels [batch, list].
          y_pred: Scores [members, batch, list], or [batch, list].
          sample_weight: Weights of the lists or documents. None for none.
          **kwargs: Further arguments of `tf.keras.Model.compute_loss`.

        Returns:
          The loss, a scalar.
        """
        if y_pred.shape.rank < 3:
            return super().compute_loss(x, y, y_pred, sample_weight, **kwargs)
        y = tf.nest.map_structure(lambda labels: tf.concat([labels] * self.members, axis=0), y)
        if sample_weight is not None:
            sample_weight = tf.concat([sample_weight] * self.members, axis=0)
        y_pred = tf.reshape(y_pred, [-1, tf.shape(y_pred)[2]])
        loss = super().compute_loss(x, y, y_pred, sample_weight, **kwargs)
        return loss + (self.members - 1.0) * (loss - tf.stop_gradient(loss))

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Called by Keras: computes the metrics of the mean score.

        Args:
          x: The inputs.
          y: Labels [batch, list].
          y_pred: Scores [members, batch, list], or [batch, list].
          sample_weight: Weights of the lists or documents. None for none.

        Returns:
          The metrics by name.
        """
        if y_pred.shape.rank == 3:
            # The mean rounds, also at padding.
            y_pred = tf.where(y_pred[0] > PADDING_SCORE, tf.reduce_mean(y_pred, axis=0), PADDING_SCORE)
        return super().compute_metrics(x, y, y_pred, sample_weight)


def checked_arguments(**arguments: Any) -> dict[str, Any]:
    """Returns arguments of `FeedForwardScorer`, checked without TensorFlow."""
    return {name: _CHECKS[name](name, value) for name, value in arguments.items()}


def _hidden(name: str, value: Any) -> list[int] | str:
    widths = _widths(value)
    return value if isinstance(value, str) else widths


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **ENCODING_CHECKS,
    "hidden": _hidden,
    "batch_norm": _arguments.boolean,
    "output_bias": _arguments.boolean,
    "weak": lambda name, value: [
        _arguments.integer(name, place, least=0) for place in _arguments.sequence(name, value)
    ],
    "batch_norm_momentum": functools.partial(_arguments.real, above=0.0, below=1.0),
    "dropout": functools.partial(_arguments.real, least=0.0, below=1.0),
    "members": functools.partial(_arguments.integer, least=1),
}


def _seeds(seed: int | None) -> Iterator[int | None]:
    """Returns different seeds of the layers; None for no seed."""
    if seed is None:
        return itertools.repeat(None)
    return (int(state) >> 1 for state in np.random.SeedSequence(seed).generate_state(64))


def _widths(hidden: Sequence[int] | str) -> list[int]:
    if isinstance(hidden, str):
        return list(ARCHITECTURES[_arguments.choice("hidden", hidden, tuple(ARCHITECTURES))])
    if not isinstance(hidden, Sequence):
        raise ValueError(f"`hidden` must be a list of widths or a name, got {hidden!r}.")
    return [_arguments.integer("hidden", width, least=1) for width in hidden]


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
      >>> from tfr_smooth.models.feed_forward import MemberDense
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
            columns = tf.concat(tf.unstack(kernel), axis=1)  # oneDNN's transposition takes longer than the product
            return activation(tf.nn.bias_add(tf.matmul(inputs, columns), tf.reshape(bias, [-1])))
        if self.units == 1:
            # A product with a block diagonal matrix takes less time than the sums of the networks' products.
            blocks = tf.reshape(kernel * tf.eye(self.members, dtype=kernel.dtype)[:, tf.newaxis], [-1, self.members])
            return activation(tf.nn.bias_add(tf.matmul(inputs, blocks), bias[:, 0]))
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
