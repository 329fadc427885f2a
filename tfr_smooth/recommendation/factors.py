"""Matrix factorization as a Keras model that scores the whole catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _keras, _serialization
from tfr_smooth.losses import RankingLoss
from tfr_smooth.models.scorer import FeatureScorer
from tfr_smooth.recommendation.baseline_scores import BaselineScores
from tfr_smooth.recommendation.catalog_losses import catalog_loss
from tfr_smooth.recommendation.catalog_order import blocks
from tfr_smooth.recommendation.histories import folding_in
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.sequences import SequenceEncoder, gather

Encoder = Callable[[np.ndarray, np.ndarray], np.ndarray]

SIMILARITIES = ("cosine", "dot")

# Users whose sequences are encoded together, and so padded to the longest one. Not tuned.
_TOGETHER = 64


@_serialization.register
class CatalogFactors(FeatureScorer):
    r"""Scores of all items for users: $s_{ui} = \cos(p_u, q_i) / \tau + b_i$ or $p_u^\top q_i / \tau + b_i$.

    The vectors p and q are factors, one per user and item; or users have the output of an encoder of their latest
    items. The biases b are optional.

    Args:
      num_users: Number of users, >= 1.
      num_items: Number of items, >= 1.
      dim: Dimension of the factors, >= 1.
      similarity: "cosine" or "dot".
      temperature: Tau, the divisor of the similarities, > 0.
      item_bias: Whether each item has a trained bias, initially 0; otherwise biases are 0. The
        vectors that the methods return then have one more component, the last: 1 for users, $\tau b_i$ for items.
      seed: Seed of the initial factors, >= 0.
      user_encoder: The encoder of the latest items of users, which then have no factors. None: factors of users.
      baselines: Scores of baselines, which are added to those of sequences outside of the training. None: none.
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
        item_bias: bool = False,
        seed: int = 0,
        user_encoder: SequenceEncoder | None = None,
        baselines: BaselineScores | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.num_users = _arguments.integer("num_users", num_users, least=1)
        self.num_items = _arguments.integer("num_items", num_items, least=1)
        self.dim = _arguments.integer("dim", dim, least=1)
        self.similarity = _arguments.choice("similarity", similarity, SIMILARITIES)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)
        self.item_bias = _arguments.boolean("item_bias", item_bias)
        self.seed = _arguments.integer("seed", seed, least=0)
        self.user_encoder = _arguments.instance("user_encoder", user_encoder, SequenceEncoder, optional=True)
        if user_encoder is not None and user_encoder.size != dim:
            raise ValueError(f"`user_encoder` must return vectors of the size {dim}, `dim`, got {user_encoder.size}.")
        self.baselines = _arguments.instance("baselines", baselines, BaselineScores, optional=True)
        self._users: Any
        if user_encoder is None:
            self._users = _Factors("users", num_users, dim, 2 * seed)
        else:  # A Markov chain may look further back than the encoder.
            length = max(user_encoder.num_features, 0 if baselines is None else baselines.order)
            self._users = _Encoded(num_users, user_encoder, length)
        self._items = _Factors("items", num_items, dim, 2 * seed + 1, has_bias=item_bias)
        if self.user_encoder is not None:
            self.user_encoder.vectors_of = lambda items: self._normalized(self._items.vectors(items))
        self.supports_jit = user_encoder is None
        self.built = True  # the constructor creates all weights
        users, vectors = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, dim + item_bias])
        self._vectors_graph = _compiled.traced(self.user_vectors, input_signature=[users])
        self._scores_graph = _compiled.traced(self._all_scores, input_signature=[users, vectors])

    def continue_from(self, other: CatalogFactors, users: np.ndarray, items: np.ndarray) -> None:
        """Copies the trained weights of another model with the same arguments.

        Args:
          other: The model, with some of the users and items.
          users: The places of its users in this model, [users].
          items: The places of its items in this model, [items].
        """
        for ours, theirs, places in ((self._users, other._users, users), (self._items, other._items, items)):
            # Not those of sequences, which are set anew.
            shapes = [[weight.shape[1:] for weight in each.trainable_weights] for each in (ours, theirs)]
            if shapes[0] != shapes[1]:
                raise ValueError("`init_model` must have the same arguments of the vectors, such as `dim`.")
            ours.continue_from(theirs, places)

    def renewed(self, baselines: BaselineScores | None = None) -> CatalogFactors:
        """Returns a new model of one device with the vectors, after propagation, and with these baselines.

        It has no sequences yet.
        """
        config = _serialization.arguments_of(self, of=CatalogFactors)
        model = CatalogFactors.from_config({**config, "baselines": baselines})
        model.continue_from(self, np.arange(self.num_users), np.arange(self.num_items))
        # Without propagation, there are no others.
        for table, vectors in zip((model._users, model._items), self._propagated(), strict=False):
            table.factors.assign(vectors)
        return model

    def start_new(self, interactions: Interactions, users: np.ndarray) -> None:
        """Gives new users, with factors, vectors of their items.

        Args:
          interactions: The interactions.
          users: The users who are not new, [users].
        """
        new = np.setdiff1d(np.flatnonzero(interactions.items_per_user), users)
        if self.user_encoder is None and len(new):
            factors, of_items = self._users.vectors().numpy(), self.history_graph(self.item_vectors())
            norm = np.linalg.norm(factors[users], axis=1).mean()
            for block in blocks(len(new), self.num_items):
                vectors = of_items(tf.constant(interactions.padded(new[block])[0]))[:, : self.dim]
                factors[new[block]] = norm * tf.math.l2_normalize(vectors, axis=1)
            self._users.factors.assign(factors)

    def set_new(
        self, interactions: Interactions, *, users: Encoder | None = None, items: Encoder | None = None
    ) -> None:
        """Gives vectors to users and items without interactions, and to such items a bias.

        Their directions are those that an encoder of their features learns from the vectors of the others. Their norm
        is the mean norm, and their bias the mean bias, of the others.

        Args:
          interactions: The interactions of the training.
          users: A function from the vectors of users, [users, dim], and the users to learn from, bool [users], to
            vectors of all users. None: the mean direction.
          items: The same for items. None changes no item.

        Time and memory O((users + items) * dim), besides those of the encoders.
        """
        if self.user_encoder is None:
            self._set_new(self._users, interactions.items_per_user > 0, users or _mean)
        if items is not None:
            is_known = interactions.users_per_item > 0
            self._set_new(self._items, is_known, items)
            if self.baselines is not None and not is_known.all():
                self.baselines.set_new(is_known, self.item_cosines)

    def _set_new(self, table: _Factors, is_known: np.ndarray, encoder: Encoder) -> None:
        if is_known.all():
            return
        factors, is_new = table.vectors().numpy(), ~is_known
        vectors = self._normalized(tf.constant(factors)).numpy()
        directions = tf.math.l2_normalize(encoder(vectors, is_known)[is_new], axis=1)
        factors[is_new] = np.linalg.norm(vectors[is_known], axis=1).mean() * directions
        table.factors.assign(factors)
        if table.bias is not None:
            biases = tf.convert_to_tensor(table.bias).numpy()
            table.bias.assign(np.where(is_known, biases, biases[is_known].mean()))

    def set_sequences(self, interactions: Interactions) -> None:
        """Sets the latest items of users, for a model of sequences.

        Args:
          interactions: The interactions, with the users and items of the model.
        """
        if self.user_encoder is not None:
            items, _ = interactions.latest(np.arange(interactions.num_users), self._users.latest.shape[1])
            self._users.latest.assign(items)

    def call(self, inputs: tf.Tensor | dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores of all items, or of candidates; in the training of sequences, vectors.

        Args:
          inputs: Indices of users, [batch], the inputs of `candidate_batches`, or those of `SequenceBatches`.
          training: Whether to apply dropout of sequences.

        Returns:
          float32 [batch, items], or [batch, candidates], of which the offsets are a part; or the vectors of users
          before each item of sequences, [batch, length, size].
        """
        if not isinstance(inputs, dict):
            # Keras calls saved models, and models under a strategy, with floats first.
            users = tf.cast(inputs, tf.int32)
            return self._all_scores(users, self.user_vectors(users))
        if self.user_encoder is not None:
            # Dropout follows from the number of the step, so that a resumed training has the same.
            step = getattr(getattr(self, "optimizer", None), "iterations", 0) if training else None
            vectors = self.user_encoder.outputs(inputs["items"], inputs["segments"], step)
            flat = self._of_users(tf.reshape(vectors, [-1, self.dim]))
            return tf.reshape(flat, [-1, inputs["items"].shape[1], flat.shape[1]])
        users, items = tf.cast(inputs["users"], tf.int32), _candidates(inputs["items"])
        return self._scores(*self._vectors(users, items)) + inputs["offsets"]

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, **options: Any) -> None:
        """Configures training like Keras's `compile`; sequences need one loss, which `compute_loss` computes."""
        if self.user_encoder is not None:
            self._loss, loss = _arguments.instance("loss", loss, RankingLoss), _ComputedLoss()
        super().compile(optimizer, loss, **options)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Returns Keras's loss; each position of a sequence is a list."""
        if self.user_encoder is not None:
            y_pred = self._sequence_loss(x, y, y_pred)[tf.newaxis]
            y = tf.zeros_like(y_pred)
        return super().compute_loss(x, y, y_pred, *args, **kwargs)

    def _sequence_loss(self, inputs: dict[str, tf.Tensor], following: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the mean loss of the positions of `SequenceBatches` with these vectors."""
        items, offsets = None, tf.zeros([self.num_items])
        if "candidates" in inputs:
            items = _candidates(inputs["candidates"])
            is_item = tf.reduce_max(inputs["candidates"], axis=0) >= 0
            offsets = tf.where(is_item, tf.reduce_max(inputs["offsets"], axis=0), -np.inf)
        of_items = self._of_items(self._items.vectors(items), items)
        # With padding, which is rare, batches have equal shapes: programs are compiled once.
        users = tf.reshape(vectors, [-1, of_items.shape[1]]) / self.temperature
        relevant, weights = (tf.reshape(each, [-1]) for each in (following, inputs["weights"]))
        return catalog_loss(self._loss, users, of_items, relevant, weights, offsets)

    def catalog_scores(self, users: np.ndarray) -> np.ndarray:
        """Returns the scores of all items, from a graph that is traced once.

        Args:
          users: Indices of users, [batch], integers.

        Returns:
          [batch, items], float32.
        """
        return self._scores_graph(tf.constant(users, tf.int32), self.traced_vectors(users)).numpy()

    def traced_vectors(self, users: np.ndarray) -> np.ndarray:
        """Returns `user_vectors` from a graph that is traced once, for sequences of about the same length at a time."""
        if self.user_encoder is None:
            return self._vectors_graph(tf.constant(users, tf.int32)).numpy()
        lengths = (self.latest_items(tf.constant(users, tf.int32)).numpy() >= 0).sum(axis=1)
        order = np.argsort(lengths, kind="stable")
        vectors = np.empty([len(users), self.dim + self.item_bias], np.float32)
        for first in range(0, len(users), _TOGETHER):
            block = order[first : first + _TOGETHER]
            vectors[block] = self._vectors_graph(tf.constant(users[block], tf.int32))
        return vectors

    def _all_scores(self, users: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the scores of all items for users with these vectors."""
        scores = self.vector_scores(vectors)
        return scores if self.baselines is None else scores + self.baselines(self.latest_items(users))

    def latest_items(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the latest items of users with sequences, int32 [batch, length], in order after padding with -1."""
        return tf.cast(_chosen(self._users.latest, users), tf.int32)

    def vector_scores(self, vectors: tf.Tensor) -> tf.Tensor:
        """Scores all items for vectors of users, without baselines.

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
        vectors = tf.math.l2_normalize(self.item_vectors()[:, : self.dim], axis=1)
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
        biases). It is approached in four Newton steps with the mean curvature for users. A model of sequences returns
        the output of its encoder instead, for the latest items in the given order.

        Args:
          items: Indices of items, int32 [batch, longest], in any order; below 0 for padding.

        Returns:
          float32 [batch, size]. Users without items get the mean of the users' vectors, with this norm, or what the
          encoder has learned for an empty history.

        Time O(items * dim) per user and step, memory O(items) per user; O(items * dim^2) first, see `history_graph`.
        """
        return self.history_graph(self.item_vectors())(items)

    def history_graph(self, catalog: Any) -> Callable[[tf.Tensor], tf.Tensor]:
        """Returns `history_vectors` as a graph, for many calls: what all users have in common is computed once.

        Args:
          catalog: The result of `item_vectors`, or a variable with it.
        """
        if self.user_encoder is not None:
            of_items = lambda items: self._of_users(self.user_encoder(items))  # noqa: E731
        else:
            of_items = folding_in(catalog, self.user_vectors().numpy(), self.dim, self.temperature)
        return _compiled.traced(of_items, input_signature=[tf.TensorSpec([None, None], tf.int32)])

    def _vectors(self, users: tf.Tensor | None, items: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the vectors of users and items, given by their indices; None: of all."""
        return self._of_users(self._users.vectors(users)), self._of_items(self._items.vectors(items), items)

    def _propagated(self) -> list[tf.Tensor]:
        """Returns the factors of all users and of all items, if these are propagated."""
        return []

    def _of_users(self, factors: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of users with these factors."""
        return self._with_last(self._normalized(factors))

    def _of_items(self, factors: tf.Tensor, items: tf.Tensor | None) -> tf.Tensor:
        """Returns the vectors of the items with these factors."""
        vectors = self._normalized(factors)
        if self._items.bias is None:
            return vectors
        biases = _chosen(tf.convert_to_tensor(self._items.bias)[:, tf.newaxis], items)
        return tf.concat([vectors, self.temperature * biases], axis=1)

    def _with_last(self, vectors: tf.Tensor) -> tf.Tensor:
        """Appends the component 1 that multiplies the biases."""
        return vectors if self._items.bias is None else tf.pad(vectors, [[0, 0], [0, 1]], constant_values=1.0)

    def _scores(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
        return tf.matmul(users, items, transpose_b=True) / self.temperature

    def _normalized(self, vectors: tf.Tensor) -> tf.Tensor:
        return tf.math.l2_normalize(vectors, axis=1) if self.similarity == "cosine" else vectors


class _Factors(tf.keras.layers.Layer):
    """A vector per user or item.

    Args:
      what: "users" or "items".
      count: Their number.
      dim: The dimension.
      seed: Seed of the vectors.
      has_bias: Whether each has a bias, initially 0.

    Attributes:
      is_sparse: Whether the gradient of some rows is sparse, so that a step costs as much as these.
    """

    is_sparse = False

    def __init__(self, what: str, count: int, dim: int, seed: int, *, has_bias: bool = False) -> None:
        super().__init__(name=what)
        self.built = True  # the constructor creates all weights
        initializer = tf.keras.initializers.RandomNormal(stddev=0.1, seed=seed)
        self.factors: Any = self.add_weight(name="factors", shape=(count, dim), initializer=initializer)
        self.bias: Any = self.add_weight(name="bias", shape=(count,), initializer="zeros") if has_bias else None

    def vectors(self, rows: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the vectors of rows, given by their indices [batch], or of all: [batch, dim]."""
        if self.is_sparse and rows is not None:
            return tf.gather(_keras.tensorflow_variables([self.factors])[0], rows)
        return _chosen(self.factors, rows)

    def continue_from(self, other: _Factors, places: np.ndarray) -> None:
        """Copies the weights of others, which have these places."""
        for ours, theirs in zip(self.weights, other.weights, strict=True):
            values = tf.convert_to_tensor(ours).numpy()
            values[places] = tf.convert_to_tensor(theirs).numpy()
            ours.assign(values)


class _Encoded(tf.keras.layers.Layer):
    """Users who have the output of an encoder for their latest items.

    Args:
      count: The number of users.
      encoder: The encoder.
      length: The number of latest items.
    """

    def __init__(self, count: int, encoder: SequenceEncoder, length: int) -> None:
        super().__init__(name="users")
        self.built = True  # the constructor creates all weights
        self.encoder: Any = encoder
        shape: dict[str, Any] = {"shape": (count, length), "initializer": "zeros"}
        self.latest: Any = self.add_weight(name="features", trainable=False, **shape)

    def vectors(self, rows: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the vectors of users, given by their indices [batch], or of all: [batch, size]."""
        return self.encoder(_chosen(self.latest, rows))

    def continue_from(self, other: _Encoded, places: np.ndarray) -> None:
        """Copies the encoder of others."""
        self.encoder.set_weights(other.encoder.get_weights())


def _mean(vectors: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Returns the mean of known vectors for each row."""
    return np.broadcast_to(vectors[is_known].mean(axis=0), vectors.shape)


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
