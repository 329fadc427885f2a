"""Matrix factorization as a Keras model that scores the whole catalog."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.losses import RankingLoss
from tfr_smooth.models import Scorer
from tfr_smooth.recommendation.batches import dense_labels
from tfr_smooth.recommendation.catalog_loss import catalog_loss
from tfr_smooth.recommendation.dense_gather import gather
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.sequences import SequenceEncoder
from tfr_smooth.recommendation.tables import TableEncoder
from tfr_smooth.recommendation.transitions import Transitions

SIMILARITIES = ("cosine", "dot")

# Of the gradient ascent of `history_vectors`. On MovieLens-1M, more steps change NDCG by less than 0.001.
_STEPS, _MOMENTUM = 20, 0.9

# The part of the users and items with an encoder that have its output alone in a training step. On MovieLens-100K, more
# helps neither known nor new items.
_WITHOUT_FACTORS = 0.2


@_serialization.register
class CatalogFactors(Scorer):
    r"""Scores of all items for users: $s_{ui} = \cos(p_u, q_i) / \tau + b_i$ or $p_u^\top q_i / \tau + b_i$.

    The vectors p and q are factors, one per user and item, or, with encoders of their features (two towers), the sum of
    the encoder's output and a factor. Users and items without interactions have the encoder's output
    alone, without a bias. So does a random fifth of the others in each training step, as in DropoutNet (Volkovs, Yu and
    Poutanen, NeurIPS 2017), which keeps the scores of both comparable. Items without interactions are no negatives
    then: their scores are no part of the loss. The biases b are optional.

    Args:
      num_users: Number of users, >= 1.
      num_items: Number of items, >= 1.
      dim: Dimension of the factors, >= 1.
      similarity: "cosine" or "dot".
      temperature: Tau, the divisor of the similarities, > 0.
      item_bias: Whether each item has a trained bias, initially 0; otherwise biases are 0. The
        vectors that the methods return then have one more component, the last: 1 for users, $\tau b_i$ for items.
      seed: Seed of the initial factors, >= 0.
      user_encoder: The encoder of the features of users, as `Recommender` creates it for a table, or of their latest
        items, without factors. None for factors only.
      item_encoder: The same for items.
      transitions: Scores of a Markov chain, which are added to those of sequences outside of the training. None: none.
      name: Name of the model.

    Raises:
      ValueError: If an argument is invalid, or the vectors of users and items have different sizes.

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
        item_bias: bool = False,
        seed: int = 0,
        user_encoder: TableEncoder | SequenceEncoder | None = None,
        item_encoder: TableEncoder | None = None,
        transitions: Transitions | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self._config: dict[str, Any] = {
            "num_users": _arguments.integer("num_users", num_users, least=1),
            "num_items": _arguments.integer("num_items", num_items, least=1),
            "dim": _arguments.integer("dim", dim, least=1),
            "similarity": _arguments.choice("similarity", similarity, SIMILARITIES),
            "temperature": _arguments.real("temperature", temperature, above=0.0),
            "item_bias": _arguments.boolean("item_bias", item_bias),
            "seed": _arguments.integer("seed", seed, least=0),
        }
        self._users = _Table("users", num_users, dim, 2 * seed, user_encoder)
        self._items = _Table("items", num_items, dim, 2 * seed + 1, item_encoder)
        if self._users.size != self._items.size:
            raise ValueError(
                "`user_encoder` and `item_encoder` must return vectors of the same size, that of the factors if one is"
                f" None, got {self._users.size} for users and {self._items.size} for items."
            )
        if item_bias:
            self._items.add_bias()
        self._sequences = user_encoder if isinstance(user_encoder, SequenceEncoder) else None
        if self._sequences is not None:
            self._sequences.vectors_of = lambda items: self._normalized(self._items.vectors(items))
        self.transitions = _arguments.instance("transitions", transitions, Transitions, optional=True)
        self.supports_jit = user_encoder is None and item_encoder is None
        self.built = True  # the constructor creates all weights

    def set_features(
        self, interactions: Interactions, *, users: np.ndarray | None = None, items: np.ndarray | None = None
    ) -> None:
        """Sets the features that the encoders take, and which users and items have interactions.

        Args:
          interactions: The interactions of the training.
          users: float32 [users, features], for a model with `user_encoder`: for sequences, `Interactions.latest`.
          items: float32 [items, features], for a model with `item_encoder`.
        """
        self._users.set_features(users, interactions.items_per_user > 0)
        self._items.set_features(items, interactions.users_per_item > 0)

    def continue_from(self, other: CatalogFactors, users: np.ndarray, items: np.ndarray) -> None:
        """Copies the trained weights of another model with the same arguments.

        Args:
          other: The model, with some of the users and items.
          users: The places of its users in this model, [users].
          items: The places of its items in this model, [items].
        """
        self._users.continue_from(other._users, users)
        self._items.continue_from(other._items, items)

    def set_typical(self, users: np.ndarray) -> None:
        """Gives users the vector of an empty history, unless they have an encoder.

        Args:
          users: bool [users], not for all.
        """
        if users.any() and self._users.encoder is None:
            factors = self._users.vectors().numpy()
            others = self._normalized(tf.constant(factors[~users]))
            direction = tf.math.l2_normalize(tf.reduce_mean(others, axis=0), axis=0)
            factors[users] = tf.reduce_mean(tf.norm(others, axis=1)) * direction
            self._users.factors.assign(factors)

    def set_sequences(self, interactions: Interactions) -> None:
        """Sets the latest items of users, for a model of sequences.

        Args:
          interactions: The interactions, with the users and items of the model.
        """
        if self._sequences is not None:
            items, _ = interactions.latest(np.arange(interactions.num_users), self._sequences.num_features)
            self._users.set_features(items, interactions.items_per_user > 0)

    def call(self, inputs: tf.Tensor | dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores of all items, or of candidates; in the training of sequences, vectors.

        Args:
          inputs: Indices of users, [batch], the inputs of `candidate_batches`, or those of `SequenceBatches`.
          training: Whether to apply dropout: of sequences, and of the factors beside encoders.

        Returns:
          float32 [batch, items], or [batch, candidates], of which the offsets are a part; or the vectors of users
          before each item of sequences, [batch, length, size].
        """
        # The number of the step, from which dropout follows, so that all replicas and a resumed training have the same.
        step = self._step() if training else None
        if not isinstance(inputs, dict):
            # Keras calls saved models, and models under a strategy, with floats first.
            users = tf.cast(inputs, tf.int32)
            scores = self._scores(*self._vectors(users, None, step))
            return scores if self.transitions is None else scores + self.transitions(self.latest_items(users))
        if self._sequences is not None:
            vectors = self._sequences.outputs(inputs["items"], inputs["segments"], step)
            flat = self._of_users(tf.reshape(vectors, [-1, self._users.size]))
            return tf.reshape(flat, [-1, inputs["items"].shape[1], flat.shape[1]])
        users, items = tf.cast(inputs["users"], tf.int32), _candidates(inputs["items"])
        return self._scores(*self._vectors(users, items, step)) + inputs["offsets"]

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, **options: Any) -> None:
        """Configures training like Keras's `compile`; sequences need one loss, which `compute_loss` computes."""
        if self._sequences is not None:
            self._loss, loss = _arguments.instance("loss", loss, RankingLoss), _ComputedLoss()
        super().compile(optimizer, loss, **options)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Returns Keras's loss; each position of a sequence is a list, of which new items with features are no part."""
        if self._sequences is not None:
            y_pred = self._sequence_loss(x, y, y_pred)[tf.newaxis]
            y = tf.zeros_like(y_pred)
        elif self._items.has_factor is not None:
            has_factor = _chosen(self._items.has_factor, _candidates(x["items"]) if isinstance(x, dict) else None)
            y = tf.where(has_factor[:, 0] > 0.0, y, -1.0)
        return super().compute_loss(x, y, y_pred, *args, **kwargs)

    def _sequence_loss(self, inputs: dict[str, tf.Tensor], following: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the mean loss of the positions of `SequenceBatches` with these vectors."""
        items, offsets = None, tf.zeros([self._config["num_items"]])
        if "candidates" in inputs:
            items = _candidates(inputs["candidates"])
            is_item = tf.reduce_max(inputs["candidates"], axis=0) >= 0
            offsets = tf.where(is_item, tf.reduce_max(inputs["offsets"], axis=0), -np.inf)
        if self._items.has_factor is not None:
            offsets = tf.where(_chosen(self._items.has_factor, items)[:, 0] > 0.0, offsets, -np.inf)
        step = self._step()
        of_items = self._of_items(self._items.vectors(items, step), items, step)
        is_position = tf.where(following >= 0)
        users, relevant, weights = (tf.gather_nd(each, is_position) for each in (vectors, following, inputs["weights"]))
        return catalog_loss(self._loss, users / self._config["temperature"], of_items, relevant, weights, offsets)

    def _step(self) -> Any:
        return getattr(getattr(self, "optimizer", None), "iterations", 0)

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

    def latest_items(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the latest items of users with sequences, int32 [batch, length], in order after padding with -1."""
        return tf.cast(self._users.features_of(users), tf.int32)

    def vector_scores(self, vectors: tf.Tensor) -> tf.Tensor:
        """Scores all items for vectors of users, without transitions.

        Args:
          vectors: float32 [batch, size], from `user_vectors` or `history_vectors`.

        Returns:
          float32 [batch, items].
        """
        return self._scores(vectors, self.item_vectors())

    def item_vectors(self) -> tf.Tensor:
        """Returns the vectors of the items, [items, size], normalized for the cosine: the input of a search index."""
        return self._of_items(self._items.vectors(), None)

    def item_cosines(self, items: np.ndarray) -> tf.Tensor:
        """Returns the cosines of the vectors of items, [batch], with those of all items: [batch, items]."""
        vectors = tf.math.l2_normalize(self.item_vectors()[:, : self._items.size], axis=1)
        return tf.matmul(tf.gather(vectors, items), vectors, transpose_b=True)

    def user_vectors(self, users: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the vectors of users, normalized for the cosine.

        Args:
          users: Indices of users, [batch]. None: all users.

        Returns:
          float32 [batch, size].
        """
        return self._of_users(self._users.vectors(users))

    def history_vectors(self, items: tf.Tensor) -> tf.Tensor:
        r"""Returns vectors of users who are not in the training, from their items.

        The vector p of a user with the items H has the greatest likelihood

        $$\frac{1}{|H|} \sum_{i \in H} \log \frac{e^{s_i(p)}}{\sum_j e^{s_j(p)}}$$

        among vectors with the mean norm of the users' vectors, which is 1 for the cosine (without the component of the
        biases). It is approached in 20 steps of projected gradient ascent with momentum. A model of sequences returns
        the output of its encoder instead, for the latest items in the given order.

        Args:
          items: Indices of items, int32 [batch, longest], in any order; below 0 for padding.

        Returns:
          float32 [batch, size]. Users without items get the mean of the users' vectors, with this norm, or what the
          encoder has learned for an empty history.

        Time O(items * dim) per user and step, memory O(items) per user.
        """
        if self._sequences is not None:
            return self._of_users(self._sequences(items))
        catalog = self.item_vectors()
        vectors, users = catalog[:, : self._users.size], self.user_vectors()[:, : self._users.size]
        relevant = dense_labels(items, self._config["num_items"])
        mean = tf.matmul(tf.math.divide_no_nan(relevant, tf.reduce_sum(relevant, axis=1, keepdims=True)), vectors)
        is_empty = tf.reduce_all(relevant == 0.0, axis=1, keepdims=True)
        norm, scale = (tf.reduce_mean(tf.norm(each, axis=1)) for each in (users, vectors))
        direction, velocity = tf.math.l2_normalize(mean, axis=1), tf.zeros_like(mean)
        for _ in range(_STEPS):
            scores = self._scores(self._with_last(norm * direction), catalog)
            expected = tf.matmul(tf.nn.softmax(scores), vectors)
            velocity = _MOMENTUM * velocity + (mean - expected) / scale
            direction = tf.math.l2_normalize(direction + velocity, axis=1)
        typical = tf.math.l2_normalize(tf.reduce_mean(users, axis=0, keepdims=True), axis=1)
        return self._with_last(norm * tf.where(is_empty, typical, direction))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        layers = {"user_encoder": self._users.encoder, "item_encoder": self._items.encoder}
        layers["transitions"] = self.transitions
        configs = {name: tf.keras.utils.serialize_keras_object(layer) for name, layer in layers.items()}
        return {**self._config, **configs, "name": self.name}

    def get_build_config(self) -> dict[str, Any]:
        """Returns what `.keras` files store to recreate the weights: nothing but the configuration is needed."""
        return {}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Does nothing: the constructor creates all weights."""

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> CatalogFactors:
        """Returns the model of `get_config`, with new weights."""
        encoders = {
            name: tf.keras.utils.deserialize_keras_object(config[name], custom_objects=custom_objects)
            for name in ("user_encoder", "item_encoder", "transitions")
            if config.get(name) is not None
        }
        return cls(**{**config, **encoders})

    def _vectors(
        self, users: tf.Tensor | None, items: tf.Tensor | None, step: Any = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors of users and items, given by their indices; None: of all."""
        vectors = self._items.vectors(items, step)
        return self._of_users(self._users.vectors(users, step)), self._of_items(vectors, items, step)

    def _of_users(self, factors: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of users with these factors."""
        return self._with_last(self._normalized(factors))

    def _of_items(self, factors: tf.Tensor, items: tf.Tensor | None, step: Any = None) -> tf.Tensor:
        """Returns the vectors of the items with these factors."""
        vectors = self._normalized(factors)
        if self._items.bias is None:
            return vectors
        return tf.concat([vectors, self._config["temperature"] * self._items.biases(items, step)], axis=1)

    def _with_last(self, vectors: tf.Tensor) -> tf.Tensor:
        """Appends the component 1 that multiplies the biases."""
        return vectors if self._items.bias is None else tf.pad(vectors, [[0, 0], [0, 1]], constant_values=1.0)

    def _scores(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
        return tf.matmul(users, items, transpose_b=True) / self._config["temperature"]

    def _normalized(self, vectors: tf.Tensor) -> tf.Tensor:
        return tf.math.l2_normalize(vectors, axis=1) if self._config["similarity"] == "cosine" else vectors


class _Table(tf.keras.layers.Layer):
    """Vectors of all users or items: factors, or an encoder's outputs for their features plus factors.

    Args:
      what: "users" or "items".
      count: Their number.
      dim: Dimension of the factors.
      seed: Seed of the factors.
      encoder: See `CatalogFactors`.
    """

    def __init__(self, what: str, count: int, dim: int, seed: int, encoder: TableEncoder | None) -> None:
        super().__init__(name=what)
        if not isinstance(encoder, SequenceEncoder):
            _arguments.instance(f"{what[:-1]}_encoder", encoder, TableEncoder, optional=True)
        self.encoder: Any = encoder
        self.factors: Any = None
        self.has_factor, self.bias, self.size, self._seed = None, None, dim, seed
        self.built = True  # the constructor creates all weights
        constant: dict[str, Any] = {"initializer": "zeros", "trainable": False}
        if encoder is not None:
            self.size = encoder.size
            self._features = self.add_weight(name="features", shape=(count, encoder.num_features), **constant)
        if isinstance(encoder, TableEncoder):
            self.has_factor = self.add_weight(name="has_factor", shape=(count, 1), **constant)
        if not isinstance(encoder, SequenceEncoder):
            initializer = tf.keras.initializers.RandomNormal(stddev=0.1, seed=seed)
            self.factors = self.add_weight(name="factors", shape=(count, self.size), initializer=initializer)

    def add_bias(self) -> None:
        """Creates a bias per row."""
        self.bias = self.add_weight(name="bias", shape=self.factors.shape[:1], initializer="zeros")

    def vectors(self, rows: tf.Tensor | None = None, step: Any = None) -> tf.Tensor:
        """Returns the vectors of rows, [batch, size].

        Args:
          rows: The rows, [batch]. None: all.
          step: The number of the training step, in which a random fifth has the outputs alone. None: no training.
        """
        if self.encoder is None:
            return _chosen(self.factors, rows)
        outputs = self.encoder(self.features_of(rows))
        return outputs if self.factors is None else outputs + self._own(self.factors, rows, step)

    def features_of(self, rows: tf.Tensor | None) -> tf.Tensor:
        """Returns the features of rows, [batch, features]."""
        return _chosen(self._features, rows)

    def biases(self, rows: tf.Tensor | None, step: Any) -> tf.Tensor:
        """Returns the biases of rows, [batch, 1], for the same arguments."""
        return self._own(tf.convert_to_tensor(self.bias)[:, tf.newaxis], rows, step)

    def _own(self, weight: Any, rows: tf.Tensor | None, step: Any) -> tf.Tensor:
        """Returns what rows have besides the outputs of the encoder, which is 0 for those without interactions."""
        if self.has_factor is None:
            return _chosen(weight, rows)
        has_factor = tf.convert_to_tensor(self.has_factor)
        if step is not None:
            seed = tf.stack([tf.cast(step, tf.int64), self._seed])
            has_factor *= tf.cast(tf.random.stateless_uniform(has_factor.shape, seed) >= _WITHOUT_FACTORS, tf.float32)
        return _chosen(has_factor, rows) * _chosen(weight, rows)

    def set_features(self, features: np.ndarray | None, has_interactions: np.ndarray) -> None:
        """Sets the features, the statistics of the encoder, and which rows have a factor besides."""
        if self.encoder is not None:
            self._features.assign(features)
            self.encoder.learn(features)
        if self.has_factor is not None:
            self.has_factor.assign(has_interactions[:, np.newaxis].astype(np.float32))

    def continue_from(self, other: _Table, places: np.ndarray) -> None:
        """Copies the weights of a table whose rows have these places."""
        if [weight.shape[1:] for weight in self.weights] != [weight.shape[1:] for weight in other.weights]:
            raise ValueError("`init_model` must have the same arguments of the vectors, such as `dim`.")
        if self.encoder is not None:
            self.encoder.set_weights(other.encoder.get_weights())
        for ours, theirs in ((self.factors, other.factors), (self.bias, other.bias)):
            if ours is not None:
                values = tf.convert_to_tensor(ours).numpy()
                values[places] = tf.convert_to_tensor(theirs).numpy()
                ours.assign(values)


def _candidates(items: tf.Tensor) -> tf.Tensor:
    """Returns the sampled items of a batch, [batch, candidates], of which all rows are equal."""
    # A replica without rows gets any items.
    return tf.maximum(tf.reduce_max(tf.cast(items, tf.int32), axis=0), 0)


def _chosen(weight: Any, rows: tf.Tensor | None) -> tf.Tensor:
    values = tf.convert_to_tensor(weight)
    return values if rows is None else gather(values, rows)


class _ComputedLoss(RankingLoss):
    """A loss that is computed already, [1], for all replicas."""

    def __call__(self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: Any = None) -> tf.Tensor:
        return y_pred[0]
