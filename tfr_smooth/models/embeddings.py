"""Embeddings of the codes of ids, sets and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras, _serialization


@_serialization.register
class Embeddings(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Maps codes among the features of documents to the mean of their vectors.

    $$y_t = \frac{1}{|C_t|} \sum_{c \in C_t} E_t[c], \qquad C_t = \{c_{t,1}, c_{t,2}, \dots\} \setminus \{0\}$$

    for each table t of vectors, or 0 without codes. The code 1 is that of rare values in training, whose vector unseen
    values then have, too.

    Args:
      tables: For each table, (first, length, rows): the place of its first code among the features, the number of codes
        per document and the number of vectors.
      dim: The length of the vectors, >= 1.
      seed: Seed of the initial vectors. None uses Keras's global seed.
      **kwargs: `name` and other arguments of a Keras layer.

    Call with features [documents, features], whose codes are integers in [0, rows). Returns float32 [documents, tables
    * dim].

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(documents * codes * dim); gradients are sparse.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> layer = models.Embeddings([(1, 2, 10)], dim=4)
      >>> layer(tf.constant([[0.5, 3.0, 7.0], [0.1, 0.0, 0.0]])).numpy()[1].tolist()
      [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self, tables: Sequence[Sequence[int]], *, dim: int = 16, seed: int | None = None, **kwargs: Any
    ) -> None:
        # Codes exceed the integers of float16.
        super().__init__(dtype="float32", **kwargs)
        self.tables = [tuple(int(number) for number in table) for table in tables]
        self.dim = _arguments.integer("dim", dim, least=1)
        self.seed = seed
        self.vectors = []
        for number, (_, _, rows) in enumerate(self.tables):
            initializer = tf.keras.initializers.RandomNormal(0.1, seed=None if seed is None else seed + number)
            name = f"embeddings_{number}"
            self.vectors.append(self.add_weight(name=name, shape=(rows, self.dim), initializer=initializer))
        self.built = True

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the mean vectors [documents, tables * dim]."""
        vectors = []
        for (first, length, _), table in zip(self.tables, _keras.tensorflow_variables(self.vectors), strict=True):
            codes = tf.cast(features[:, first : first + length], tf.int32)
            if length == 1:
                vectors.append(tf.gather(table, codes[:, 0]))
            else:
                vectors.append(_mean(table, codes))
        return tf.concat(vectors, axis=1)


def _mean(table: tf.Tensor, codes: tf.Tensor) -> tf.Tensor:
    """Returns the mean vectors of codes [documents, length], each computed once for equal documents in a row.

    A set of the query, such as the items of a session, is that of all documents of its list.
    """
    is_new = tf.reduce_any(tf.not_equal(codes[1:], codes[:-1]), axis=1)
    is_new = tf.concat([tf.ones_like(codes[:1, 0], tf.bool), is_new], axis=0)
    different = tf.boolean_mask(codes, is_new)
    known = tf.cast(different > 0, tf.float32)
    total = tf.reduce_sum(tf.gather(table, different) * known[:, :, tf.newaxis], axis=1)
    means = tf.math.divide_no_nan(total, tf.reduce_sum(known, axis=1, keepdims=True))
    return tf.gather(means, tf.cumsum(tf.cast(is_new, tf.int32)) - 1)
