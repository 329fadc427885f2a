"""The feed-forward scorer."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.models.batch_normalization import BatchNormalization
from tfr_smooth.models.member_dense import MemberDense
from tfr_smooth.models.normalization import NORMALIZATIONS, Standardize, get_normalizer
from tfr_smooth.models.ridge_regression import RidgeRegression
from tfr_smooth.models.scorer import Scorer

# Hidden layers by name, from Bruch et al., SIGIR 2019 ("B64: 3 hidden layers with 64, 32, and 16 units; progressively
# deeper by adding layers that grow by a factor of 2"); "linear" has no hidden layers.
ARCHITECTURES: dict[str, tuple[int, ...]] = {
    "linear": (),
    **{
        f"B{width}": tuple(w for w in (1024, 512, 256, 128, 64, 32, 16) if w <= width)
        for width in (64, 128, 256, 512, 1024)
    },
}

# The score at padding. It is finite, so JSON can represent it and its product with 0 is 0. It is below every score of a
# network, so padding sorts last.
PADDING_SCORE = -1e30


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class FeedForwardScorer(Scorer):
    r"""Scores each document of a list with a feed-forward network.

    The network consists of batch normalization of the input; a dense layer, ReLU and batch normalization per hidden
    layer; and a dense output layer:

    $$s(x) = w^\top h_L + b, \qquad h_l = \mathrm{BN}(\mathrm{ReLU}(W_l h_{l-1} + b_l)), \qquad h_0 = \mathrm{BN}(x)$$

    (Section 5.1 and Figure 2 of arXiv:2105.00942 with one hidden layer of 1024; Bruch et al., SIGIR 2019, with B1024.)
    The network only processes real documents: padding costs nothing and is excluded from the batch statistics. Under a
    `tf.distribute` strategy with several replicas, the batch statistics are those of the global batch.

    With several members, the score is the mean over networks that differ in their random numbers. Such networks make
    different errors, and their mean ranks better than a single network. `fit` trains the networks at once, on the same
    batches, each with its own loss: the gradient of a network is that of training it alone. The training loss is the
    mean over the networks; metrics are those of the mean score.

    Args:
      hidden: Widths of the hidden layers, each >= 1, or a name: "linear" (no hidden layers), "B64", "B128", "B256",
        "B512", "B1024".
      normalization: Normalization of the input features: "min_max" (per query), "standardize" (call `adapt` with the
        training set before training), "log1p" or None for no normalization. It is part of the model, so exported models
        take raw features.
      batch_norm: Whether to use batch normalization.
      batch_norm_momentum: Momentum of the moving statistics, in (0, 1). The papers' code uses 0.9. For training sets
        with many batches, a higher value is better (Bruch et al. use 0.99 there).
      dropout: Dropout rate of the inputs of each dense layer except the first, in [0, 1).
      input_noise: Standard deviation, >= 0, of the Gaussian noise added during training to the features after batch
        normalization, which have a standard deviation of 1.
      linear_path: Strength of ridge regression, > 0. Adds a linear function of the normalized features to the scores.
        `adapt` initializes it with ridge regression of the labels, scaled to scores with a standard deviation of 1, and
        initializes the output of the network to 0. Intended for `normalization="standardize"`. None disables it.
      members: Number of networks, >= 1.
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
        input_noise: float = 0.0,
        linear_path: float | None = None,
        members: int = 1,
        seed: int | None = None,
        name: str | None = "feed_forward_scorer",
    ) -> None:
        # Raw features may exceed float16. With mixed precision, the layers after the normalization cast.
        super().__init__(name=name, autocast=False)
        self._config = checked_arguments(
            hidden=hidden,
            normalization=normalization,
            batch_norm=batch_norm,
            batch_norm_momentum=batch_norm_momentum,
            dropout=dropout,
            input_noise=input_noise,
            linear_path=linear_path,
            members=members,
            seed=seed,
        )
        self.members = members
        self.num_features: int | None = None
        # On a GPU, Keras 3 uses XLA by default. XLA would recompile for each number of real documents and compute on
        # padding.
        self.supports_jit = False
        self.normalizer = get_normalizer(normalization)
        widths = _widths(hidden)
        # Only with several replicas: synchronized statistics use E[x^2] - E[x]^2, which loses precision.
        synchronized = tf.distribute.get_strategy().num_replicas_in_sync > 1
        seeds = _seeds(seed)
        tower = []
        for depth, width in enumerate([*widths, 1]):
            if batch_norm:
                tower.append(BatchNormalization(momentum=batch_norm_momentum, synchronized=synchronized))
            if depth == 0 and input_noise:
                tower.append(tf.keras.layers.GaussianNoise(input_noise, seed=next(seeds)))
            if depth > 0 and dropout:
                tower.append(tf.keras.layers.Dropout(dropout, seed=next(seeds)))
            activation = "relu" if depth < len(widths) else None
            tower.append(_dense(width, members, activation, next(seeds)))
        self.tower = tower
        self.linear = None
        if linear_path is not None:
            self.linear = tf.keras.layers.Dense(members, use_bias=False, kernel_initializer="zeros")

    def build(self, input_shape: Any) -> None:
        """Creates the weights for features of this shape, or for a dict with `features` of this shape."""
        if self.num_features is not None:
            return
        shape = input_shape["features"] if isinstance(input_shape, dict) else input_shape
        width = self.num_features = int(shape[-1])
        if isinstance(self.normalizer, Standardize) and not self.normalizer.built:
            self.normalizer.build((None, None, width))
        for layer in self.tower:
            layer.build((None, width * self.members))
            width = getattr(layer, "units", width)
        if self.linear is not None:
            self.linear.build((None, self.num_features))
        self.built = True

    def adapt(self, dataset: Iterable[Any]) -> None:
        """Computes the statistics of `normalization="standardize"` and initializes the linear path from a training set.

        Does nothing if the model has neither.

        Args:
          dataset: Batches of (inputs, labels), such as from `data.read_letor`. Iterated at most twice.
        """
        if isinstance(self.normalizer, Standardize):
            self.normalizer.adapt(dataset)
        if self.linear is not None:
            regression = RidgeRegression()
            for inputs, labels, *_ in dataset:
                features, mask = _features_and_mask(inputs)
                if self.normalizer is not None:
                    features = self.normalizer(features, mask=mask)
                real = tf.logical_and(mask, tf.convert_to_tensor(labels) >= 0.0)
                regression.add(*(tf.boolean_mask(values, real).numpy() for values in (features, labels)))
            self.start_at(regression)

    def start_at(self, regression: RidgeRegression) -> None:
        """Initializes the linear path with ridge regression, and the output of the network to 0.

        Args:
          regression: Regression on the training documents, with features normalized like those of the model.

        Raises:
          ValueError: If the model has no linear path.
        """
        if self.linear is None:
            raise ValueError("`linear_path` must be a number to initialize the model with ridge regression, got None.")
        weights = regression.weights(self._config["linear_path"])
        if not self.built:
            self.build((None, None, len(weights)))
        # Constant labels lead to weights of 0 and no variance.
        column = (weights / (regression.stddev(weights) or 1.0))[:, np.newaxis].astype(np.float32)
        self.linear.kernel.assign(np.tile(column, [1, self.members]))
        for variable in self.tower[-1].weights:
            variable.assign(tf.zeros_like(variable))

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]; in training with several members, those of each, [members, batch, list]."""
        features, mask = _features_and_mask(inputs)
        if self.normalizer is not None:
            features = self.normalizer(features, mask=mask)
        documents = tf.boolean_mask(features, mask)
        outputs = tf.tile(documents, [1, self.members])
        for layer in self.tower:
            outputs = layer(outputs)
        scores = tf.cast(outputs, tf.float32)
        if self.linear is not None:
            scores += tf.cast(self.linear(documents), tf.float32)
        if self.members > 1 and training:
            padding = tf.fill(tf.concat([tf.shape(mask), [self.members]], axis=0), PADDING_SCORE)
            return tf.transpose(tf.tensor_scatter_nd_update(padding, tf.where(mask), scores), [2, 0, 1])
        padding = tf.fill(tf.shape(mask), PADDING_SCORE)
        return tf.tensor_scatter_nd_update(padding, tf.where(mask), tf.reduce_mean(scores, axis=1))

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

    def get_build_config(self) -> dict[str, Any]:
        """Returns the number of features, which `.keras` files store to recreate the weights."""
        return {"num_features": self.num_features}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Creates the weights of a model loaded from a `.keras` file."""
        if config["num_features"] is not None:
            self.build((None, None, config["num_features"]))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self._config, "name": self.name}


def checked_arguments(**arguments: Any) -> dict[str, Any]:
    """Returns arguments of `FeedForwardScorer`, checked without TensorFlow."""
    return {name: _CHECKS[name](name, value) for name, value in arguments.items()}


def _hidden(name: str, value: Any) -> list[int] | str:
    widths = _widths(value)
    return value if isinstance(value, str) else widths


def _positive(name: str, value: Any) -> float:
    return _arguments.real(name, value, above=0.0)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "hidden": _hidden,
    "normalization": lambda name, value: value if value is None else _arguments.choice(name, value, NORMALIZATIONS),
    "batch_norm": _arguments.boolean,
    "batch_norm_momentum": functools.partial(_arguments.real, above=0.0, below=1.0),
    "dropout": lambda name, value: _arguments.real(name, value, above=0.0, below=1.0) if value else 0.0,
    "input_noise": lambda name, value: _positive(name, value) if value else 0.0,
    "linear_path": lambda name, value: None if value is None else _positive(name, value),
    "members": functools.partial(_arguments.integer, least=1),
    "seed": functools.partial(_arguments.integer_or_none, least=0),
}


def _dense(width: int, members: int, activation: str | None, seed: int | None) -> tf.keras.layers.Layer:
    if members > 1:
        return MemberDense(width, members=members, activation=activation, seed=seed)
    # The layer in files of models without members.
    kernel_initializer = tf.keras.initializers.GlorotNormal(seed=seed)
    return tf.keras.layers.Dense(width, activation=activation, kernel_initializer=kernel_initializer)


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


def _features_and_mask(inputs: Any) -> tuple[tf.Tensor, tf.Tensor]:
    features = tf.convert_to_tensor(inputs["features"] if isinstance(inputs, dict) else inputs)
    mask = inputs.get("mask") if isinstance(inputs, dict) else None
    return features, tf.ones(tf.shape(features)[:2], tf.bool) if mask is None else tf.cast(mask, tf.bool)
