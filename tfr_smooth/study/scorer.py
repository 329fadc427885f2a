"""The network of a recipe."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import models
from tfr_smooth.study.recipe import Recipe


class DocumentScorer:
    """Scores documents by the network of `models.FeedForwardScorer`, with what a recipe adds to it.

    Noise and dropout are functions of a seed, so that a training depends on its seed alone.

    Args:
      recipe: Says what the network is.
      num_features: Width of the features.
    """

    def __init__(self, recipe: Recipe, num_features: int) -> None:
        self._recipe = recipe
        self._shape = recipe.hidden, num_features
        self._network = _network(*self._shape)
        self._linear = None
        if recipe.linear_path is not None:
            self._linear = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
            self._linear.build((None, num_features))
        self._attention = self._new_attention() if recipe.attention_heads else None

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that are trained."""
        return [*self._network.trainable_variables, *self._other_weights()]

    @property
    def variables(self) -> list[Any]:
        """All variables."""
        return [*self._network.weights, *self._other_weights()]

    def _other_weights(self) -> list[Any]:
        return [weight for layer in (self._linear, self._attention) if layer is not None for weight in layer.weights]

    def _new_attention(self) -> models.ListAttention:
        attention = models.ListAttention(heads=self._recipe.attention_heads)
        attention.build((None, None, self._network.tower[-1].kernel.shape[0]))
        return attention

    def restart(self, seed: int, linear: np.ndarray | None = None) -> None:
        """Draws new weights, those of a new `models.FeedForwardScorer` after `tf.keras.utils.set_random_seed(seed)`.

        Args:
          seed: The seed.
          linear: Weights of the linear path [num_features]. With them the network's last layer starts at 0.
        """
        for variable, value in zip(self._network.weights, _initial_weights(*self._shape, seed), strict=True):
            variable.assign(value)
        if self._attention is not None:
            tf.keras.utils.set_random_seed(seed)
            self._attention.set_weights(self._new_attention().get_weights())
        if linear is not None:
            assert self._linear is not None
            self._linear.kernel.assign(linear[:, np.newaxis].astype(np.float32))
            for variable in self._network.tower[-1].weights:
                variable.assign(tf.zeros_like(variable))

    def __call__(self, documents: tf.Tensor, real: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """Returns the scores [documents].

        Args:
          documents: Features of the real documents of all lists, [documents, num_features].
          real: [batch, list] bool, False for padding.
          seed: The seed of this training step, int32 [2]; None in evaluation.
        """
        training, recipe = seed is not None, self._recipe
        if training and recipe.input_noise:
            documents += recipe.input_noise * tf.random.stateless_normal(tf.shape(documents), seed)
        outputs = documents
        for place, layer in enumerate(self._network.tower):
            if isinstance(layer, models.BatchNormalization):
                outputs = layer(outputs, training=training)
                continue
            if training and recipe.dropout and place > 1:  # in front of each dense layer but the first
                own_seed = tf.random.experimental.stateless_fold_in(seed, place)
                outputs = tf.nn.experimental.stateless_dropout(outputs, recipe.dropout, own_seed)
            if self._attention is not None and place == len(self._network.tower) - 1:
                shape = [*tf.unstack(tf.shape(real)), outputs.shape[1]]
                padded = tf.scatter_nd(tf.where(real), outputs, tf.cast(tf.stack(shape), tf.int64))
                outputs = tf.boolean_mask(self._attention(padded, mask=real, training=training), real)
            outputs = layer(outputs)
        scores = outputs[:, 0]
        return scores if self._linear is None else scores + self._linear(documents)[:, 0]


def _network(hidden: str | tuple[int, ...], num_features: int) -> models.FeedForwardScorer:
    network = models.FeedForwardScorer(hidden=hidden if isinstance(hidden, str) else list(hidden))
    network.build([None, None, num_features])
    return network


# Kept, as a new seed has TensorFlow prepare each of its graphs again.
@functools.lru_cache(maxsize=32)
def _initial_weights(hidden: str | tuple[int, ...], num_features: int, seed: int) -> list[np.ndarray]:
    tf.keras.utils.set_random_seed(seed)
    return _network(hidden, num_features).get_weights()
