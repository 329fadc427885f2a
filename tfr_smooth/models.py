"""The papers' feed-forward scorers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.normalization import Standardize, get_normalizer

# Hidden layers by name: those of Bruch et al., SIGIR 2019 ("B64: 3 hidden layers with 64, 32, and 16 units;
# progressively deeper by adding layers that grow by a factor of 2"), and none at all.
ARCHITECTURES: dict[str, tuple[int, ...]] = {
    "linear": (),
    **{
        f"B{width}": tuple(w for w in (1024, 512, 256, 128, 64, 32, 16) if w <= width)
        for width in (64, 128, 256, 512, 1024)
    },
}

# What stands at a padded place of the scores: finite, so that it can be written as JSON and multiplied by 0, and below
# every score that a network gives, so that padding sorts last.
PADDING_SCORE = -1e30


class BatchNormalization(tf.keras.layers.BatchNormalization):
    """Keras's, but with the moving statistics of the global batch also where a replica has no list; and quicker.

    Keras 2 leaves them as they are on such a replica, and then takes the mean over replicas. (Weights are saved under
    the name of the class, so that name stays.) On one replica the fused kernels, which Keras has for images alone, take
    40% of the time.
    """

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns [documents, width] normalised."""
        if not self._is_fused(training):
            return super().call(inputs, training=training)
        return self._normalized(inputs, self.gamma, self.beta)

    def before(self, dense: tf.keras.layers.Dense, inputs: tf.Tensor, training: bool | None) -> tf.Tensor:
        """Returns what this layer and then the dense one make of the inputs.

        In training the scale goes into the dense layer's kernel and the offset into its bias. So their gradients come
        with those of kernel and bias, and where the inputs are data, one matrix product of three is saved: the gradient
        to the normalised inputs.
        """
        if not self._is_fused(training):
            return dense(self(inputs, training=training))
        variables = self.gamma, self.beta, dense.kernel, dense.bias
        scale, offset, kernel, bias = (tf.cast(tf.convert_to_tensor(each), self.gamma.dtype) for each in variables)
        normalized = self._normalized(inputs, tf.ones_like(scale), tf.zeros_like(offset))
        bias += tf.linalg.matvec(kernel, offset, transpose_a=True)
        kernel, bias = (tf.cast(each, normalized.dtype) for each in (scale[:, tf.newaxis] * kernel, bias))
        return dense.activation(tf.matmul(normalized, kernel) + bias)

    def _is_fused(self, training: bool | None) -> bool:
        return training is True and self.trainable and not self.synchronized

    def _normalized(self, inputs: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor) -> tf.Tensor:
        documents, width = tf.shape(inputs)[0], inputs.shape[1]
        # As an image. oneDNN is quicker along the first axis, and cuDNN has a limit there.
        image = [1, documents, 1, width] if tf.config.list_physical_devices("GPU") else [documents, 1, 1, width]
        normalized, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            tf.reshape(tf.cast(inputs, self.gamma.dtype), image), scale, offset, epsilon=self.epsilon
        )
        count = tf.cast(documents, variance.dtype)
        biased = variance * (count - 1.0) / count  # As Keras has it for all but images.
        for moving, now in ((self.moving_mean, mean), (self.moving_variance, biased)):
            moving.assign(moving * self.momentum + tf.cast(now, moving.dtype) * (1.0 - self.momentum))
        return tf.cast(tf.reshape(normalized, tf.shape(inputs)), self.compute_dtype)

    def _support_zero_size_input(self) -> bool:
        return False


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class FeedForwardScorer(tf.keras.Model):
    r"""Scores each document of a list by a feed-forward network.

    Batch normalisation of the input, then for each hidden layer dense, ReLU and batch normalisation, then one score:

    $$s(x) = w^\top h_L + b, \qquad h_l = \mathrm{BN}(\mathrm{ReLU}(W_l h_{l-1} + b_l)), \qquad h_0 = \mathrm{BN}(x)$$

    (Section 5.1 and Figure 2 of arXiv:2105.00942 with one hidden layer of 1024; Bruch et al., SIGIR 2019, with B1024.)
    Only real documents go through the network: padding costs nothing and never enters the batch statistics. Under a
    `tf.distribute` strategy with several replicas the batch statistics are those of the global batch.

    Args:
      hidden: The widths of the hidden layers, or a name: "linear" (none), "B64", "B128", "B256", "B512", "B1024".
      normalization: What is done to the features first: None, "min_max" (per query), "standardize" (call `adapt` with
        the training set before training) or "log1p". It is part of the model, so an exported model takes raw
        features.
      batch_norm: Whether to normalise by batch statistics.
      batch_norm_momentum: In (0, 1): the share of the moving statistics that a step keeps. 0.9 is that of the papers'
        code; more suits training sets of many batches (Bruch et al. use 0.99 there).
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
        name: str | None = "feed_forward_scorer",
        **kwargs: Any,
    ) -> None:
        # Features may be larger than float16 holds: under mixed precision the layers cast, behind the normalisation.
        super().__init__(name=name, autocast=False, **kwargs)
        widths = _widths(hidden)
        self._config = {
            "hidden": hidden if isinstance(hidden, str) else widths,
            "normalization": normalization,
            "batch_norm": _arguments.boolean("batch_norm", batch_norm),
            "batch_norm_momentum": _arguments.real("batch_norm_momentum", batch_norm_momentum, above=0.0, below=1.0),
        }
        self._num_features: int | None = None
        # The number of real documents differs from batch to batch, and XLA would compile for each.
        self.supports_jit = False
        self.normalizer = get_normalizer(normalization)

        def batch_normalizer() -> list[tf.keras.layers.Layer]:
            # Synchronised statistics are E[x^2] - E[x]^2, which loses digits: only where there are several replicas.
            replicas = tf.distribute.get_strategy().num_replicas_in_sync
            layer = BatchNormalization(momentum=batch_norm_momentum, synchronized=replicas > 1)
            return [layer] if batch_norm else []

        self.tower = batch_normalizer()
        for width in widths:
            dense = tf.keras.layers.Dense(width, activation="relu", kernel_initializer="glorot_normal")
            self.tower += [dense, *batch_normalizer()]
        self.tower += [tf.keras.layers.Dense(1, kernel_initializer="glorot_normal")]

    def build(self, input_shape: Any) -> None:
        """Makes the weights for features of this shape, or a dict with it."""
        shape = input_shape["features"] if isinstance(input_shape, dict) else input_shape
        num_features = self._num_features = int(shape[-1])
        if self.normalizer is not None and not self.normalizer.built:
            self.normalizer.build((None, None, num_features))
            self.normalizer.built = True
        width = num_features
        for layer in self.tower:
            if not layer.built:
                layer.build((None, width))
                layer.built = True
            width = getattr(layer, "units", width)
        self.built = True

    def adapt(self, dataset: Iterable[Any]) -> None:
        """Learns the normalisation from the training set; needed for "standardize" alone, harmless otherwise.

        Args:
          dataset: What `data.read_letor` gives: one pass over it.
        """
        if isinstance(self.normalizer, Standardize):
            self.normalizer.adapt(dataset)

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]."""
        features = inputs["features"] if isinstance(inputs, dict) else inputs
        mask = inputs.get("mask") if isinstance(inputs, dict) else None
        features = tf.convert_to_tensor(features)
        if mask is None:
            mask = tf.ones(tf.shape(features)[:2], tf.bool)
        mask = tf.cast(mask, tf.bool)
        if self.normalizer is not None:
            features = self.normalizer(features, mask=mask)
        documents = tf.ensure_shape(tf.boolean_mask(features, mask), [None, features.shape[-1]])
        layers = self.tower
        if isinstance(layers[0], BatchNormalization):
            documents, layers = layers[0].before(layers[1], documents, training), layers[2:]
        for layer in layers:
            accepts_training = isinstance(layer, tf.keras.layers.BatchNormalization)
            documents = layer(documents, training=training) if accepts_training else layer(documents)
        scores = tf.cast(documents[:, 0], tf.float32)
        padding = tf.fill(tf.shape(mask), tf.constant(PADDING_SCORE, tf.float32))
        scores = tf.tensor_scatter_nd_update(padding, tf.where(mask), scores)
        return tf.ensure_shape(scores, features.shape[:2])

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains as Keras does; takes the same arguments."""
        # Keras 3 warns that a dataset ignores `shuffle=True`, which is the default: the eighth argument after `x`.
        if isinstance(x, (tf.data.Dataset, tf.distribute.DistributedDataset)) and len(args) < 8:
            kwargs.setdefault("shuffle", False)
        return super().fit(x, *args, **kwargs)

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        # Keras 3 averages the first batch over the replicas, for its shapes alone. That fails for a bool mask, for
        # strings, and where replicas have different numbers of lists; one replica's share tells the same.
        if iterator is not None and self.distribute_strategy.num_replicas_in_sync > 1:
            _, _, batches = next(iter(iterator))
            shares = self.distribute_strategy.experimental_local_results
            iterator, data_batch = None, tf.nest.map_structure(lambda value: shares(value)[0], next(batches))
        super()._maybe_symbolic_build(iterator=iterator, data_batch=data_batch)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the scores."""
        shape = input_shape["features"] if isinstance(input_shape, dict) else input_shape
        return tuple(shape[:2])

    def get_build_config(self) -> dict[str, Any]:
        """Returns what a `.keras` file must know to make the weights again."""
        return {"num_features": self._num_features}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Makes the weights of a model that is loaded from a `.keras` file."""
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
