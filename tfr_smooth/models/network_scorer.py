"""A scorer of encoded documents by any Keras layer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.encoded_scorer import ENCODING_CHECKS, PADDING_SCORE, EncodedScorer


@_serialization.register
class NetworkScorer(EncodedScorer):
    """Scores the documents of a list by a Keras layer of their encoded features.

    Args:
      network: A layer from encoded documents [batch, list, width], 0 at padding, to scores [batch, list] or [batch,
        list, 1]; if its `call` has the argument `mask`, it gets the mask [batch, list] bool. To load the model from a
        file, Keras needs the class of the layer to be registered.
      normalization: As for `FeedForwardScorer`.
      embeddings: As for `FeedForwardScorer`.
      vectors: As for `FeedForwardScorer`.
      embedding_dim: As for `FeedForwardScorer`.
      offset: As for `FeedForwardScorer`.
      seed: Seed of the vectors of codes. None uses Keras's global seed.
      name: Name of the model. None uses Keras's default.

    Call with a dict of `features` [batch, list, num_features] and an optional `mask` [batch, list] bool, or with only
    the features. Returns scores [batch, list], float32; `PADDING_SCORE` (-1e30) at padding.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the layer, padding included.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> scorer = models.NetworkScorer(tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)]))
      >>> scorer(tf.ones([2, 3, 5])).shape
      TensorShape([2, 3])
    """

    def __init__(
        self,
        network: tf.keras.layers.Layer,
        *,
        normalization: str | None = None,
        embeddings: Sequence[Sequence[int]] = (),
        vectors: Sequence[Sequence[int]] = (),
        embedding_dim: int = 16,
        offset: int | None = None,
        seed: int | None = None,
        name: str | None = "network_scorer",
    ) -> None:
        arguments = {key: value for key, value in locals().items() if key in ENCODING_CHECKS}
        super().__init__(name=name, autocast=False)
        self.network = _arguments.instance("network", network, tf.keras.layers.Layer)
        self.network.supports_masking = True  # Keras warns if a layer with the argument `mask` does not.
        self._config = {key: ENCODING_CHECKS[key](key, value) for key, value in arguments.items()}
        self.supports_jit = False
        self.set_encoding(seed)

    def build_network(self, width: int) -> None:
        """Creates the weights for encoded documents of this width."""
        if not self.network.built:
            self._scores(tf.zeros([1, 2, width]), tf.ones([1, 2], tf.bool), False)

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]."""
        documents, _, mask = self.encode(inputs)
        shape = tf.concat([tf.shape(mask), [documents.shape[1]]], axis=0)
        padded = tf.scatter_nd(tf.where(mask), documents, tf.cast(shape, tf.int64))
        padded = tf.ensure_shape(padded, [*mask.shape, documents.shape[1]])
        scores = tf.boolean_mask(self._scores(padded, mask, training), mask)[:, tf.newaxis] + self.offset(inputs, mask)
        return tf.tensor_scatter_nd_update(tf.fill(tf.shape(mask), PADDING_SCORE), tf.where(mask), scores[:, 0])

    def _scores(self, padded: tf.Tensor, mask: tf.Tensor, training: bool | None) -> tf.Tensor:
        known = {"mask": mask, "training": training}
        parameters = inspect.signature(self.network.call).parameters
        scores = self.network(padded, **{name: value for name, value in known.items() if name in parameters})
        if scores.shape.rank == 3 and scores.shape[2] == 1:
            scores = scores[:, :, 0]
        if scores.shape.rank != 2:
            raise ValueError(f"`network` must return scores [batch, list] or [batch, list, 1], got {scores.shape}.")
        return tf.cast(scores, tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "network": tf.keras.utils.serialize_keras_object(self.network)}
