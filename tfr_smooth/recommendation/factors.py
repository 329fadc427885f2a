"""Matrix factorization as a Keras model that scores the whole catalog."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization

SIMILARITIES = ("cosine", "dot")


@tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)
class CatalogFactors(tf.keras.Model):
    r"""Scores of all items for users: $s_{ui} = \cos(p_u, q_i) / \tau$ or $p_u^\top q_i / \tau$.

    Args:
      num_users: Number of users, >= 1.
      num_items: Number of items, >= 1.
      dim: Dimension of the factors p and q, >= 1.
      similarity: "cosine" or "dot".
      temperature: Tau, the divisor of the similarities, > 0.
      seed: Seed of the initial factors, >= 0.
      name: Name of the model.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(items) per user of a batch, besides the factors.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import recommendation
      >>> model = recommendation.CatalogFactors(num_users=10, num_items=30, dim=4)
      >>> model(tf.constant([3, 7])).shape
      TensorShape([2, 30])
    """

    def __init__(
        self,
        *,
        num_users: int,
        num_items: int,
        dim: int = 64,
        similarity: str = "cosine",
        temperature: float = 0.2,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self._config: dict[str, Any] = {
            "num_users": _arguments.integer("num_users", num_users, least=1),
            "num_items": _arguments.integer("num_items", num_items, least=1),
            "dim": _arguments.integer("dim", dim, least=1),
            "similarity": _arguments.choice("similarity", similarity, SIMILARITIES),
            "temperature": _arguments.real("temperature", temperature, above=0.0),
            "seed": _arguments.integer("seed", seed, least=0),
        }
        for place, (what, count) in enumerate((("users", num_users), ("items", num_items))):
            initializer = tf.keras.initializers.RandomNormal(stddev=0.1, seed=2 * seed + place)
            factors = self.add_weight(name=what, shape=(count, dim), initializer=initializer)
            setattr(self, f"_{what}", factors)

    def call(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the scores [batch, items] for indices of users [batch]."""
        vectors = self._normalized(tf.gather(tf.convert_to_tensor(self._users), users))
        return tf.matmul(vectors, self.item_vectors(), transpose_b=True) / self._config["temperature"]

    def catalog_scores(self, users: np.ndarray) -> np.ndarray:
        """Returns the scores of all items, from a graph that is traced once.

        Args:
          users: Indices of users, [batch], integers.

        Returns:
          [batch, items], float32.
        """
        return self._graph(tf.constant(users, tf.int32)).numpy()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def _graph(self, users: tf.Tensor) -> tf.Tensor:
        return self(users)

    def item_vectors(self) -> tf.Tensor:
        """Returns the vectors of the items, [items, dim], normalized for the cosine: the input of a search index."""
        return self._normalized(tf.convert_to_tensor(self._items))

    def user_vectors(self) -> tf.Tensor:
        """Returns the vectors of the users, [users, dim], normalized for the cosine."""
        return self._normalized(tf.convert_to_tensor(self._users))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self._config, "name": self.name}

    def _normalized(self, vectors: tf.Tensor) -> tf.Tensor:
        return tf.math.l2_normalize(vectors, axis=1) if self._config["similarity"] == "cosine" else vectors
