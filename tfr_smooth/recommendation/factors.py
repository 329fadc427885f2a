"""Matrix factorization as a Keras model that scores the whole catalog."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.recommendation.batches import dense_labels

SIMILARITIES = ("cosine", "dot")

# Of the gradient ascent of `history_vectors`. On MovieLens-1M, more steps change NDCG by less than 0.001.
_STEPS, _MOMENTUM = 20, 0.9


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

    def call(self, inputs: tf.Tensor | dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the scores of all items, or of candidates.

        Args:
          inputs: Indices of users, [batch], or the inputs of `candidate_batches`.

        Returns:
          float32 [batch, items], or [batch, candidates], of which the offsets are a part.
        """
        if not isinstance(inputs, dict):
            # Keras calls saved models with floats.
            return self.vector_scores(self.user_vectors(tf.cast(inputs, tf.int32)))
        # All rows are equal. A replica without rows gets any items.
        items = tf.maximum(tf.reduce_max(inputs["items"], axis=0), 0)
        vectors = self._normalized(tf.gather(tf.convert_to_tensor(self._items), items))
        return self._scores(self.user_vectors(inputs["users"]), vectors) + inputs["offsets"]

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

    def vector_scores(self, vectors: tf.Tensor) -> tf.Tensor:
        """Scores all items for vectors of users.

        Args:
          vectors: float32 [batch, dim], from `user_vectors` or `history_vectors`.

        Returns:
          float32 [batch, items].
        """
        return self._scores(vectors, self.item_vectors())

    def item_vectors(self) -> tf.Tensor:
        """Returns the vectors of the items, [items, dim], normalized for the cosine: the input of a search index."""
        return self._normalized(tf.convert_to_tensor(self._items))

    def user_vectors(self, users: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the vectors of users, normalized for the cosine.

        Args:
          users: Indices of users, [batch]. None: all users.

        Returns:
          float32 [batch, dim].
        """
        vectors = tf.convert_to_tensor(self._users)
        return self._normalized(vectors if users is None else tf.gather(vectors, users))

    def history_vectors(self, items: tf.Tensor) -> tf.Tensor:
        r"""Returns vectors of users who are not in the training, from their items.

        The vector p of a user with the items H has the greatest likelihood

        $$\frac{1}{|H|} \sum_{i \in H} \log \frac{e^{s_i(p)}}{\sum_j e^{s_j(p)}}$$

        among vectors with the mean norm of the users' vectors, which is 1 for the cosine. It is approached in 20 steps
        of projected gradient ascent with momentum.

        Args:
          items: Indices of items, int32 [batch, longest], in any order; below 0 for padding.

        Returns:
          float32 [batch, dim]. Users without items get the mean of the users' vectors, with this norm.

        Time O(items * dim) per user and step, memory O(items) per user.
        """
        vectors, users = self.item_vectors(), self.user_vectors()
        relevant = dense_labels(items, self._config["num_items"])
        mean = tf.matmul(tf.math.divide_no_nan(relevant, tf.reduce_sum(relevant, axis=1, keepdims=True)), vectors)
        is_empty = tf.reduce_all(relevant == 0.0, axis=1, keepdims=True)
        norm, scale = (tf.reduce_mean(tf.norm(each, axis=1)) for each in (users, vectors))
        direction, velocity = tf.math.l2_normalize(mean, axis=1), tf.zeros_like(mean)
        for _ in range(_STEPS):
            expected = tf.matmul(tf.nn.softmax(self.vector_scores(norm * direction)), vectors)
            velocity = _MOMENTUM * velocity + (mean - expected) / scale
            direction = tf.math.l2_normalize(direction + velocity, axis=1)
        typical = tf.math.l2_normalize(tf.reduce_mean(users, axis=0, keepdims=True), axis=1)
        return norm * tf.where(is_empty, typical, direction)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self._config, "name": self.name}

    def _scores(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
        return tf.matmul(users, items, transpose_b=True) / self._config["temperature"]

    def _normalized(self, vectors: tf.Tensor) -> tf.Tensor:
        return tf.math.l2_normalize(vectors, axis=1) if self._config["similarity"] == "cosine" else vectors
