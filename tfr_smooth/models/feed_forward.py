"""A feed-forward scorer of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, losses, metrics
from tfr_smooth.data.normalization import Standardize, get_normalizer
from tfr_smooth.models.batch_normalization import BatchNormalization
from tfr_smooth.models.ridge import RidgeRegression

# Hidden layers by name: those of Bruch et al., SIGIR 2019 ("B64: 3 hidden layers with 64, 32, and 16 units;
# progressively deeper by adding layers that grow by a factor of 2"), and none at all.
ARCHITECTURES: dict[str, tuple[int, ...]] = {
    "linear": (),
    **{
        f"B{width}": tuple(w for w in (1024, 512, 256, 128, 64, 32, 16) if w <= width)
        for width in (64, 128, 256, 512, 1024)
    },
}

# The score at padding. It is finite, so JSON can hold it and a product with 0 is 0. It is below every score of a
# network, so padding sorts last.
PADDING_SCORE = -1e30


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class FeedForwardScorer(tf.keras.Model):
    r"""Scores each document of a list by a feed-forward network.

    The network is a batch normalization of the input; then dense, ReLU and batch normalization for each hidden layer;
    then a dense layer with one score:

    $$s(x) = w^\top h_L + b, \qquad h_l = \mathrm{BN}(\mathrm{ReLU}(W_l h_{l-1} + b_l)), \qquad h_0 = \mathrm{BN}(x)$$

    (Section 5.1 and Figure 2 of arXiv:2105.00942 with one hidden layer of 1024; Bruch et al., SIGIR 2019, with B1024.)
    Only real documents go through the network: padding costs nothing and never enters the batch statistics. Under a
    `tf.distribute` strategy with several replicas the batch statistics are those of the global batch.

    Args:
      hidden: The widths of the hidden layers, or a name: "linear" (none), "B64", "B128", "B256", "B512", "B1024".
      normalization: How the features are normalized first: None, "min_max" (per query), "standardize" (call `adapt`
        with the training set before training) or "log1p". It is part of the model, so an exported model takes raw
        features.
      batch_norm: Whether to normalize by batch statistics.
      batch_norm_momentum: In (0, 1): the share of the moving statistics that a step keeps. The papers' code has 0.9.
        Training sets of many batches suit a higher value (Bruch et al. use 0.99 there).
      dropout: In [0, 1): share of the inputs of each dense layer but the first that a training step drops.
      input_noise: Standard deviation, >= 0, of the normal noise that a training step adds to the features after their
        batch normalization, where each feature has a standard deviation of 1.
      linear_path: If given, a linear function of the normalized features is added to the scores. `adapt` starts it at
        ridge regression of the labels with this strength, > 0, scaled to scores with a standard deviation of 1, and
        the network at 0. Meant for `normalization="standardize"`.
      name: Name of the model.

    Call with a dict of `features` [batch, list, num_features] and, where there is padding, `mask` [batch, list] bool;
    or with the features alone. Returns scores [batch, list], float32; `PADDING_SCORE` (-1e30) at padding.

    Raises:
      ValueError: If an argument is out of its range.

    Time O(documents * weights), memory O(documents * width), for the real documents alone.

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
        name: str | None = "feed_forward_scorer",
    ) -> None:
        # Raw features may be beyond float16. Under mixed precision the layers after the normalization cast.
        super().__init__(name=name, autocast=False)
        widths = _widths(hidden)
        self._config: dict[str, Any] = {
            "hidden": hidden if isinstance(hidden, str) else widths,
            "normalization": normalization,
            "batch_norm": _arguments.boolean("batch_norm", batch_norm),
            "batch_norm_momentum": _arguments.real("batch_norm_momentum", batch_norm_momentum, above=0.0, below=1.0),
            "dropout": _arguments.real("dropout", dropout, above=0.0, below=1.0) if dropout else 0.0,
            "input_noise": _arguments.real("input_noise", input_noise, above=0.0) if input_noise else 0.0,
            "linear_path": None if linear_path is None else _arguments.real("linear_path", linear_path, above=0.0),
        }
        self.num_features: int | None = None
        # On a GPU, Keras 3 compiles with XLA by default. XLA would compile again for each number of real documents, and
        # compute on padding.
        self.supports_jit = False
        self.normalizer = get_normalizer(normalization)
        # Synchronized statistics are E[x^2] - E[x]^2, which loses digits: only where there are several replicas.
        synchronized = tf.distribute.get_strategy().num_replicas_in_sync > 1
        tower = []
        for depth, width in enumerate([*widths, 1]):
            if batch_norm:
                tower.append(BatchNormalization(momentum=batch_norm_momentum, synchronized=synchronized))
            if depth == 0 and input_noise:
                tower.append(tf.keras.layers.GaussianNoise(input_noise))
            if depth > 0 and dropout:
                tower.append(tf.keras.layers.Dropout(dropout))
            activation = "relu" if depth < len(widths) else None
            tower.append(tf.keras.layers.Dense(width, activation=activation, kernel_initializer="glorot_normal"))
        self.tower = tower
        self.linear = None
        if linear_path is not None:
            self.linear = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")

    def build(self, input_shape: Any) -> None:
        """Creates the weights for features of this shape, or for a dict with `features` of this shape."""
        if self.num_features is not None:
            return
        shape = input_shape["features"] if isinstance(input_shape, dict) else input_shape
        width = self.num_features = int(shape[-1])
        if isinstance(self.normalizer, Standardize) and not self.normalizer.built:
            self.normalizer.build((None, None, width))
        for layer in self.tower:
            layer.build((None, width))
            width = getattr(layer, "units", width)
        if self.linear is not None:
            self.linear.build((None, self.num_features))
        self.built = True

    def adapt(self, dataset: Iterable[Any]) -> None:
        """Measures the training set for the normalization "standardize" and the linear path, if the model has them.

        Args:
          dataset: What `data.read_letor` gives: one pass over it.
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
        """Starts the linear path at ridge regression, and the network at 0.

        Args:
          regression: Of the training documents, normalized as the model does it.
        """
        if self.linear is None:
            raise ValueError("`linear_path` must be a strength to start at ridge regression, got None.")
        weights = regression.weights(self._config["linear_path"])
        if not self.built:
            self.build((None, None, len(weights)))
        # Without any variance, which constant labels lead to, all weights are 0.
        self.linear.kernel.assign((weights / (regression.stddev(weights) or 1.0))[:, np.newaxis].astype(np.float32))
        for variable in self.tower[-1].weights:
            variable.assign(tf.zeros_like(variable))

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]."""
        features, mask = _features_and_mask(inputs)
        if self.normalizer is not None:
            features = self.normalizer(features, mask=mask)
        documents = outputs = tf.boolean_mask(features, mask)
        for layer in self.tower:
            outputs = layer(outputs)
        scores = tf.cast(outputs[:, 0], tf.float32)
        if self.linear is not None:
            scores += tf.cast(self.linear(documents)[:, 0], tf.float32)
        padding = tf.fill(tf.shape(mask), PADDING_SCORE)
        return tf.tensor_scatter_nd_update(padding, tf.where(mask), scores)

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, *args: Any, **kwargs: Any) -> None:
        """Configures the training as Keras does; `loss`, `metrics=` and `weighted_metrics=` may be names of ours, too.

        The names are those of `losses.TABLE` and `metrics.TABLE`: `compile("adam", "smoothi_ndcg", metrics=["ndcg"])`.
        """
        for argument in {"metrics", "weighted_metrics"} & set(kwargs):
            kwargs[argument] = tf.nest.map_structure(lambda name: _named(name, metrics), kwargs[argument])
        super().compile(optimizer, _named(loss, losses), *args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a model loaded from a file, which Keras leaves to models with a `compile` of their own."""
        self.compile(**tf.keras.utils.deserialize_keras_object(config))
        if self.built and hasattr(self.optimizer, "build"):
            self.optimizer.build(self.trainable_variables)

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains as Keras does; takes the same arguments."""
        # Keras 3 warns that a dataset ignores `shuffle=True`, which is the default: the eighth argument after `x`.
        if isinstance(x, (tf.data.Dataset, tf.distribute.DistributedDataset)) and len(args) < 8:
            kwargs.setdefault("shuffle", False)
        return super().fit(x, *args, **kwargs)

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        # Keras 3 averages the first batch over the replicas, only to learn its shapes. TensorFlow has no average of
        # bool masks, of strings, or of lists of different lengths. The batch of one replica has the same shapes.
        if iterator is not None and self.distribute_strategy.num_replicas_in_sync > 1:
            _, _, batches = next(iter(iterator))
            replicas = self.distribute_strategy.experimental_local_results
            iterator, data_batch = None, tf.nest.map_structure(lambda value: replicas(value)[0], next(batches))
        super()._maybe_symbolic_build(iterator=iterator, data_batch=data_batch)

    def get_build_config(self) -> dict[str, Any]:
        """Returns what a `.keras` file must hold to create the weights again."""
        return {"num_features": self.num_features}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Creates the weights of a model loaded from a `.keras` file."""
        if config["num_features"] is not None:
            self.build((None, None, config["num_features"]))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self._config, "name": self.name}


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


def _named(identifier: Any, known: Any) -> Any:
    """Returns the loss or metric of this name; others as they are, which Keras may know."""
    return known.get(identifier) if isinstance(identifier, str) and identifier in known.TABLE else identifier
