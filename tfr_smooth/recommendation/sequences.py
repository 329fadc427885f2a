"""The encoder of users as sequences of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfr_smooth import _serialization

# Users whose sequences are read together, and so padded to the longest one. Not tuned.
_TOGETHER = 64


@_serialization.register
class SequenceEncoder(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Maps the latest items of a user, in order of time, to the user's vector: SASRec's network with one head.

    With the vectors $q_i$ of the items $i_1, \dots, i_L$ in the catalog, $X_t = \sqrt{d} \, q_{i_t}$, and each block is

    $$Y = X + A V W_o, \quad A = \mathrm{softmax}_{s \le t}(Q K^\top / \sqrt{d} + r_{t - s}), \quad
      (Q, K, V) = \mathrm{LayerNorm}(X) W; \qquad
      X' = Y + \mathrm{ReLU}(\mathrm{LayerNorm}(Y) W_1 + b_1) W_2 + b_2$$

    (Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018, section III; queries, keys and values are
    all normalized, and a trained bias r of the distance replaces the vectors of positions.) A position sees the items
    up to its own, and the vector of a user is the last one, after a LayerNorm. A sequence starts with a trained vector,
    which stands for an empty history. Dropout is applied to X and to both summands of each block.

    Args:
      size: d, the size of the vectors, >= 1.
      num_features: L, the number of positions, >= 1.
      blocks: Number of blocks, >= 1.
      dropout: Dropout rate in training, in [0, 1).
      seed: Seed of the weights and of the dropout, which then depends on the step only.
      **kwargs: `name` and other arguments of a Keras layer.

    Attributes:
      vectors_of: A function from indices of items, [number], to their vectors, [number, size], which
        `CatalogSequences` sets. It is no part of the layer's weights.

    Time O(L^2 size + L size^2) per user and block, memory O(L^2 + L size), with L at most the length of the longest
    sequence of the batch.
    """

    vectors_of: Callable[[tf.Tensor], tf.Tensor]

    def __init__(
        self, *, size: int, num_features: int, blocks: int = 2, dropout: float = 0.4, seed: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.size, self.num_features, self.blocks, self.dropout, self.seed = size, num_features, blocks, dropout, seed
        seeds = iter(range((1 + 4 * blocks) * seed, (1 + 4 * blocks) * (seed + 1)))
        initializer = tf.keras.initializers.RandomNormal(stddev=0.1, seed=next(seeds))
        self.start = self.add_weight(name="start", shape=(1, size), initializer=initializer)
        self.distances = [
            self.add_weight(name=f"distances_{block}", shape=(num_features,), initializer="zeros")
            for block in range(blocks)
        ]
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

    def call(self, items: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of users, [batch, size], given indices of items, [batch, any], in order; -1 for none."""
        return in_blocks(self._last_outputs, items, self.size)

    def _last_outputs(self, items: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of users, given their items after all padding."""
        items = tf.pad(items, [[0, 0], [1, 0]], constant_values=-1)[:, -self.num_features :]  # with the start
        following = tf.pad(items[:, 1:], [[0, 0], [0, 1]])
        return self.outputs(items, tf.where(tf.maximum(items, following) >= 0, 0, -1), only_last=True)[:, -1]

    def outputs(self, items: tf.Tensor, segments: tf.Tensor, step: Any = None, *, only_last: bool = False) -> tf.Tensor:
        """Returns the vector after each item.

        Args:
          items: Indices of items, int32 [batch, length], length <= L; -1 for the start of a sequence and for padding.
          segments: int32 [batch, length], equal for the items of one sequence, which sees no other; -1 for padding.
          step: The number of a training step, for dropout. None: without dropout.
          only_last: Whether only the vector after the last item is needed, which the last block then computes only.

        Returns:
          float32 [batch, length, size], or [batch, 1, size].
        """
        drops = iter(range(len(self.norms)))

        def dropped(values: tf.Tensor) -> tf.Tensor:
            place = self.seed * len(self.norms) + next(drops)
            if step is None or not self.dropout:
                return values
            # No layer: with Keras 2, its state is in no checkpoint.
            seed = tf.stack([tf.cast(step, tf.int64), place])
            return tf.nn.experimental.stateless_dropout(values, self.dropout, seed)

        shape = tf.shape(items)
        rows, length = shape[0], shape[1]
        is_item, flat = (items >= 0)[:, :, tf.newaxis], tf.maximum(tf.reshape(items, [-1]), 0)
        hidden = tf.reshape(self.vectors_of(flat), [rows, length, self.size])
        hidden = dropped(self.size**0.5 * tf.where(is_item, hidden, tf.convert_to_tensor(self.start)))
        order = tf.range(length)
        distance = order[:, tf.newaxis] - order
        is_visible = (segments[:, :, tf.newaxis] == segments[:, tf.newaxis]) & (distance >= 0)
        for block, distances in enumerate(self.distances):
            project, mix, expand, contract = self.dense[4 * block : 4 * block + 4]
            normed = self.norms[2 * block](hidden)
            if is_short := only_last and block == self.blocks - 1:
                # One query: its matrices are multiplied with it, and not with each item.
                of_query, of_keys, of_values = tf.split(tf.convert_to_tensor(project.kernel), 3, axis=1)
                last, hidden, is_visible = (each[:, -1:] for each in (normed, hidden, is_visible))
                queries = tf.matmul(tf.matmul(last, of_query), of_keys, transpose_b=True)
                keys, values, distance = normed, normed, distance[-1:]
            else:
                queries, keys, values = tf.split(project(normed), 3, axis=2)
            similarities = tf.matmul(queries, keys, transpose_b=True) / self.size**0.5
            similarities += gather(tf.convert_to_tensor(distances), tf.maximum(distance, 0))
            attention = tf.nn.softmax(tf.where(is_visible, similarities, similarities.dtype.min))
            attended = tf.matmul(attention, values)
            hidden += dropped(mix(tf.matmul(attended, of_values) if is_short else attended))
            hidden += dropped(contract(tf.nn.relu(expand(self.norms[2 * block + 1](hidden)))))
        return self.norms[-1](hidden)


def in_blocks(function: Callable[[tf.Tensor], tf.Tensor], items: tf.Tensor, size: int) -> tf.Tensor:
    """Returns a function of rows of items, for rows of about the same length at a time.

    Args:
      function: A function from items, int32 [rows, longest], each row in order after padding with -1, to
        float32 [rows, size].
      items: Indices of items, [batch, any], in order; below 0 for padding, which may be anywhere.
      size: The size of the results.
    """
    items = tf.cast(items, tf.int32)
    lengths = tf.reduce_sum(tf.cast(items >= 0, tf.int32), axis=1)
    order = tf.argsort(lengths)

    def body(number: tf.Tensor, results: tf.TensorArray) -> Any:
        rows = order[number * _TOGETHER : (number + 1) * _TOGETHER]
        longest = tf.maximum(tf.reduce_max(tf.gather(lengths, rows)), 0)
        block = tf.gather(items, rows)
        at_end = tf.gather(block, tf.argsort(tf.cast(block >= 0, tf.int32), axis=1, stable=True), batch_dims=1)
        return number + 1, results.write(number, function(at_end[:, tf.shape(items)[1] - longest :]))

    number = tf.maximum(-(-tf.shape(order)[0] // _TOGETHER), 1)
    results = tf.TensorArray(tf.float32, number, element_shape=[None, size], infer_shape=False)
    start = tf.constant(0), results
    _, results = tf.while_loop(lambda done, _: done < number, body, start, parallel_iterations=1)
    return tf.gather(results.concat(), tf.argsort(order))


@tf.custom_gradient
def gather(table: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """Returns rows of a table, with a dense gradient.

    TensorFlow's would be `IndexedSlices`. Adam of Keras 3 squares them without summing equal rows, which replicas that
    share items have, and updates all rows anyway.
    """

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return tf.math.unsorted_segment_sum(upstream, rows, table.shape[0]), None

    return tf.gather(table, rows), gradient
