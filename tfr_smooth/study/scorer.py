"""The scoring network of a recipe."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import models
from tfr_smooth.models.ridge_regression import RidgeRegression
from tfr_smooth.study.recipe import Recipe


class DocumentScorer:
    """The network of `models.FeedForwardScorer` with the noise, dropout and attention of a recipe.

    Noise and dropout are stateless functions of a seed, so that training depends only on its seed.

    Args:
      recipe: The recipe, which defines the network.
      num_features: Number of features.
    """

    def __init__(self, recipe: Recipe, num_features: int) -> None:
        self._recipe = recipe
        self._shape = recipe.hidden, recipe.linear_path, num_features
        self._network = _network(*self._shape)
        self._attention = self._new_attention() if recipe.attention_heads else None

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables."""
        return [*self._network.trainable_variables, *self._attention_weights()]

    @property
    def variables(self) -> list[Any]:
        """All variables."""
        return [*self._network.weights, *self._attention_weights()]

    def _attention_weights(self) -> list[Any]:
        return [] if self._attention is None else list(self._attention.weights)

    def _new_attention(self) -> models.ListAttention:
        attention = models.ListAttention(heads=self._recipe.attention_heads)
        attention.build((None, None, self._network.tower[-1].kernel.shape[0]))
        return attention

    def restart(self, seed: int, regression: RidgeRegression | None = None) -> None:
        """Initializes the weights like a new `models.FeedForwardScorer` after `tf.keras.utils.set_random_seed(seed)`.

        Args:
          seed: The seed.
          regression: The ridge regression that initializes the linear path; None for a recipe without one.
        """
        for variable, value in zip(self._network.weights, _initial_weights(*self._shape, seed), strict=True):
            variable.assign(value)
        if self._attention is not None:
            tf.keras.utils.set_random_seed(seed)
            self._attention.set_weights(self._new_attention().get_weights())
        if regression is not None:
            self._network.start_at(regression)

    def __call__(self, documents: tf.Tensor, real: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """Returns the scores [documents].

        Args:
          documents: Features of the real documents of all lists, [documents, num_features].
          real: [batch, list] bool, False for padding.
          seed: The seed of this training step, int32 [2]; None for evaluation.
        """
        training, recipe = seed is not None, self._recipe
        if training and recipe.input_noise:
            documents += recipe.input_noise * tf.random.stateless_normal(tf.shape(documents), seed)
        outputs = documents
        for place, layer in enumerate(self._network.tower):
            if isinstance(layer, models.BatchNormalization):
                outputs = layer(outputs, training=training)
                continue
            if training and recipe.dropout and place > 1:  # before each dense layer except the first
                own_seed = tf.random.experimental.stateless_fold_in(seed, place)
                outputs = tf.nn.experimental.stateless_dropout(outputs, recipe.dropout, own_seed)
            if self._attention is not None and place == len(self._network.tower) - 1:
                shape = [*tf.unstack(tf.shape(real)), outputs.shape[1]]
                padded = tf.scatter_nd(tf.where(real), outputs, tf.cast(tf.stack(shape), tf.int64))
                outputs = tf.boolean_mask(self._attention(padded, mask=real, training=training), real)
            outputs = layer(outputs)
        scores = outputs[:, 0]
        linear = self._network.linear
        return scores if linear is None else scores + linear(documents)[:, 0]


def _network(hidden: str | tuple[int, ...], linear_path: float | None, num_features: int) -> models.FeedForwardScorer:
    network = models.FeedForwardScorer(
        hidden=hidden if isinstance(hidden, str) else list(hidden), linear_path=linear_path
    )
    network.build([None, None, num_features])
    return network


# Cached: setting a seed makes TensorFlow prepare each of its graphs again.
@functools.lru_cache(maxsize=32)
def _initial_weights(
    hidden: str | tuple[int, ...], linear_path: float | None, num_features: int, seed: int
) -> list[np.ndarray]:
    tf.keras.utils.set_random_seed(seed)
    return _network(hidden, linear_path, num_features).get_weights()
