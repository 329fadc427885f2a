"""Vectors of users from the order of their items, by causal self-attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _serialization


@_serialization.register
class SequenceEncoder(tf.keras.layers.Layer):
    r"""Maps the latest items of a user, in order of time, to the user's vector: SASRec's network with one head.

    With the vectors $q_i$ of the items $i_1, \dots, i_L$ in the catalog, $X_t = \sqrt{d} \, q_{i_t} + e_t$ with trained
    positions $e_t$, and each block is

    $$Y = X + A V W_o, \quad A = \mathrm{softmax}_{\mathrm{causal}}(Q K^\top / \sqrt{d}), \quad
      (Q, K, V) = \mathrm{LayerNorm}(X) W; \qquad
      X' = Y + \mathrm{ReLU}(\mathrm{LayerNorm}(Y) W_1 + b_1) W_2 + b_2$$

    (Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018, section III; queries, keys and values are
    all normalized.) A position sees the items up to its own, and the vector of a user is the last one, after a
    LayerNorm. No item sees padding, and padding before the first item sees only itself: its output is the trained
    vector of an empty history. Dropout is applied to X and to both summands of each block.

    Args:
      size: d, the size of the vectors, >= 1.
      num_features: L, the number of positions, >= 1.
      blocks: Number of blocks, >= 1.
      dropout: Dropout rate in training, in [0, 1).
      seed: Seed of the weights and of the dropout, which then depends on the step only.
      **kwargs: `name` and other arguments of a Keras layer.

    Attributes:
      vectors_of: A function from indices of items, [number], to their vectors, [number, size], which `CatalogFactors`
        sets. It is no part of the layer's weights.

    Time O(L^2 size + L size^2) per user and block, memory O(L^2 + L size).
    """

    vectors_of: Callable[[tf.Tensor], tf.Tensor]

    def __init__(
        self, *, size: int, num_features: int, blocks: int = 2, dropout: float = 0.2, seed: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.size, self.num_features, self._dropout, self._seed = size, num_features, dropout, seed
        self._own = {"size": size, "num_features": num_features, "blocks": blocks, "dropout": dropout, "seed": seed}
        seeds = iter(range((1 + 4 * blocks) * seed, (1 + 4 * blocks) * (seed + 1)))
        initializer = tf.keras.initializers.RandomNormal(stddev=0.1, seed=next(seeds))
        self.positions = self.add_weight(name="positions", shape=(num_features, size), initializer=initializer)
        self.norms = [tf.keras.layers.LayerNormalization(epsilon=1e-6, dtype="float32") for _ in range(2 * blocks + 1)]
        self.dense = []
        for _ in range(blocks):
            for units, use_bias in ((3 * size, False), (size, False), (size, True), (size, True)):
                options = {"use_bias": use_bias, "dtype": "float32"}
                initializer = tf.keras.initializers.GlorotUniform(seed=next(seeds))
                self.dense.append(tf.keras.layers.Dense(units, kernel_initializer=initializer, **options))
        for layer in [*self.norms, *self.dense]:
            layer.build((None, None, size))
        self.built = True  # the constructor creates all weights

    def learn(self, features: np.ndarray) -> None:
        """Does nothing: items need no statistics."""

    def call(self, items: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of users, [batch, size], given indices of items, [batch, L], -1 before the first one."""
        return self.outputs(items)[:, -1]

    def outputs(self, items: tf.Tensor, step: Any = None) -> tf.Tensor:
        """Returns the vectors after each item, [batch, L, size]; with dropout, given the number of a training step."""
        items, drops = tf.cast(items, tf.int32), iter(range(len(self.norms)))

        def dropped(values: tf.Tensor) -> tf.Tensor:
            if step is None or not self._dropout:
                return values
            # No layer: with Keras 2, its state is in no checkpoint.
            seed = tf.stack([tf.cast(step, tf.int64), self._seed * len(self.norms) + next(drops)])
            return tf.nn.experimental.stateless_dropout(values, self._dropout, seed)

        is_item = items >= 0
        vectors = self.vectors_of(tf.maximum(tf.reshape(items, [-1]), 0))
        hidden = self.size**0.5 * tf.reshape(vectors, [-1, self.num_features, self.size])
        hidden += tf.convert_to_tensor(self.positions)
        hidden = dropped(tf.where(is_item[:, :, tf.newaxis], hidden, 0.0))
        order = tf.range(self.num_features)
        is_before = (order < order[:, tf.newaxis]) & is_item[:, tf.newaxis]
        is_visible = is_before | (order == order[:, tf.newaxis])
        for block in range(len(self.dense) // 4):
            project, mix, expand, contract = self.dense[4 * block : 4 * block + 4]
            queries, keys, values = tf.split(project(self.norms[2 * block](hidden)), 3, axis=2)
            similarities = tf.matmul(queries, keys, transpose_b=True) / self.size**0.5
            attention = tf.nn.softmax(tf.where(is_visible, similarities, similarities.dtype.min))
            hidden += dropped(mix(tf.matmul(attention, values)))
            hidden += dropped(contract(tf.nn.relu(expand(self.norms[2 * block + 1](hidden)))))
        return self.norms[-1](hidden)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), **self._own}
