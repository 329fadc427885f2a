"""Keras models that score the whole catalog by inner products of vectors, and matrix factorization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _keras, _serialization
from tfr_smooth.models.scorer import FeatureScorer
from tfr_smooth.recommendation.baseline_scores import BaselineScores
from tfr_smooth.recommendation.catalog_order import blocks
from tfr_smooth.recommendation.histories import folding_in
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.sequences import gather

Encoder = Callable[[np.ndarray, np.ndarray], np.ndarray]
Answers = Callable[[tf.Tensor], "tuple[tf.Tensor, tf.Tensor]"]

SIMILARITIES = ("cosine", "dot")


class CatalogModel(FeatureScorer):
    r"""Scores of all items for users: $s_{ui} = \cos(p_u, q_i) / \tau + b_i$ or $p_u^\top q_i / \tau + b_i$.

    The vectors q of the items are factors, and a subclass has those of the users, p. The biases b are optional.

    Args:
      num_users: Number of users, >= 1.
      num_items: Number of items, >= 1.
      dim: Dimension of the factors, >= 1.
      similarity: "cosine" or "dot".
      temperature: Tau, the divisor of the similarities, > 0.
      item_bias: Whether each item has a trained bias, initially 0; otherwise biases are 0. The
        vectors that the methods return then have one more component, the last: 1 for users, $\tau b_i$ for items.
      seed: Seed of the initial factors, >= 0.
      name: Name of the model.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(items) per user of a batch, besides the factors.
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
        self.baselines: BaselineScores | None = None  # whose scores are added

    def _take_users(self, users: Any) -> None:
        """Ends the constructor with the layer that has the vectors of the users."""
        self._users, self.supports_jit = users, True
        self._items = Factors("items", self.num_items, self.dim, 2 * self.seed + 1, has_bias=self.item_bias)
        self.built = True  # the constructor creates all weights
        self._scores_graph = _compiled.traced(self._all_scores, input_signature=[tf.TensorSpec([None], tf.int32)])

    def continue_from(self, other: CatalogModel, users: np.ndarray, items: np.ndarray) -> None:
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

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return _serialization.arguments_of(self, of=CatalogModel)

    def renewed(self) -> CatalogModel:
        """Returns a new model of one device with the vectors."""
        raise NotImplementedError

    def start_new(self, interactions: Interactions, users: np.ndarray) -> None:
        """Gives new users, with factors, vectors of their items.

        Args:
          interactions: The interactions.
          users: The users who are not new, [users].
        """

    def set_sequences(self, interactions: Interactions) -> None:
        """Sets the latest items of users, for a model of sequences.

        Args:
          interactions: The interactions, with the users and items of the model.
        """

    def set_new(self, interactions: Interactions, encoders: Mapping[str, Encoder]) -> None:
        """Gives vectors to users and items without interactions, and to such items a bias.

        Their directions are those that an encoder of their features learns from the vectors of the others. Their norm
        is the mean norm, and their bias the mean bias, of the others.

        Args:
          interactions: The interactions of the training.
          encoders: For "users", a function from the vectors of users, [users, dim], and the users to learn from, bool
            [users], to vectors of all users; without one, they have the mean direction. For "items", the same of items;
            without one, no item is changed.

        Time and memory O((users + items) * dim), besides those of the encoders.
        """
        if "items" in encoders:
            is_known = interactions.users_per_item > 0
            self._set_new(self._items, is_known, encoders["items"])
            if self.baselines is not None and not is_known.all():
                self.baselines.set_new(is_known, self.item_cosines)

    def _set_new(self, table: Factors, is_known: np.ndarray, encoder: Encoder) -> None:
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

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns the scores of all items.

        Args:
          inputs: Indices of users, [batch].
          training: Unused.

        Returns:
          float32 [batch, items].
        """
        # Keras calls saved models, and models under a strategy, with floats first.
        return self._all_scores(tf.cast(inputs, tf.int32))

    def catalog_scores(self, users: np.ndarray) -> np.ndarray:
        """Returns the scores of all items, from a graph that is traced once.

        Args:
          users: Indices of users, [batch], integers.

        Returns:
          [batch, items], float32.
        """
        return self._scores_graph(tf.constant(users, tf.int32)).numpy()

    def _all_scores(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the scores of all items."""
        scores = self.vector_scores(self.user_vectors(users))
        return scores if self.baselines is None else scores + self.baselines(self.latest_items(users))

    def latest_items(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the items of users that baselines see, int32 [batch, any]; below 0 for padding."""
        raise NotImplementedError

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
        of_items = self._of_histories(catalog)
        return _compiled.traced(of_items, input_signature=[tf.TensorSpec([None, None], tf.int32)])

    def _of_histories(self, catalog: Any) -> Callable[[tf.Tensor], tf.Tensor]:
        """Returns the function of `history_graph`."""
        raise NotImplementedError

    def answers(self, catalog: Any) -> tuple[Answers, Answers]:
        """Returns functions for many requests: what these have in common is computed once.

        Args:
          catalog: As for `history_graph`.

        Returns:
          A function of indices of users, int32 [batch], below 0 for unknown ones, who have an empty history; and one of
          the items of histories, as of `history_vectors`. Both return vectors divided by the temperature, float32
          [batch, size], and scores of all items, float32 [batch, items].
        """
        raise NotImplementedError

    def _answer(self, vectors: tf.Tensor, catalog: Any, items: Any) -> tuple[tf.Tensor, tf.Tensor]:
        vectors /= self.temperature
        scores = tf.matmul(vectors, catalog, transpose_b=True)
        return vectors, scores if self.baselines is None else scores + self.baselines(items)

    @property
    def served_variables(self) -> list[Any]:
        """The variables of the vectors of users, besides those of items."""
        return self._users.variables

    def _of_users(self, factors: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of users with these factors; the last component, which is 1, multiplies the biases."""
        vectors = self._normalized(factors)
        return vectors if self._items.bias is None else tf.pad(vectors, [[0, 0], [0, 1]], constant_values=1.0)

    def _of_items(self, factors: tf.Tensor, items: tf.Tensor | None) -> tf.Tensor:
        """Returns the vectors of the items with these factors."""
        vectors = self._normalized(factors)
        if self._items.bias is None:
            return vectors
        biases = chosen(tf.convert_to_tensor(self._items.bias)[:, tf.newaxis], items)
        return tf.concat([vectors, self.temperature * biases], axis=1)

    def _scores(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
        return tf.matmul(users, items, transpose_b=True) / self.temperature

    def _normalized(self, vectors: tf.Tensor) -> tf.Tensor:
        return tf.math.l2_normalize(vectors, axis=1) if self.similarity == "cosine" else vectors


class Factors(tf.keras.layers.Layer):
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
        return chosen(self.factors, rows)

    def continue_from(self, other: Factors, places: np.ndarray) -> None:
        """Copies the weights of others, which have these places."""
        for ours, theirs in zip(self.weights, other.weights, strict=True):
            values = tf.convert_to_tensor(ours).numpy()
            values[places] = tf.convert_to_tensor(theirs).numpy()
            ours.assign(values)


@_serialization.register
class CatalogFactors(CatalogModel):
    """`CatalogModel` with a trained factor for each user.

    Args:
      baselines: Scores of EASE, which are added outside of the training. None: none.
      num_seen: Number of the interactions that these are of, >= 0.
      **options: Arguments of `CatalogModel`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import recommendation
      >>> model = recommendation.CatalogFactors(num_users=10, num_items=30, dim=4)
      >>> model(tf.constant([3, 7])).shape
      TensorShape([2, 30])
    """

    def __init__(self, *, baselines: BaselineScores | None = None, num_seen: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.baselines = _arguments.instance("baselines", baselines, BaselineScores, optional=True)
        self.num_seen = _arguments.integer("num_seen", num_seen, least=0)
        self._take_users(Factors("users", self.num_users, self.dim, 2 * self.seed))
        self._seen: Any = None if baselines is None else Seen(self.num_users, num_seen)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), **_serialization.arguments_of(self)}

    def set_sequences(self, interactions: Interactions) -> None:
        """Sets the items of users that baselines see."""
        if self._seen is not None:
            self._seen.set_weights([interactions.matrix.indptr, interactions.matrix.indices])

    def latest_items(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the items of users, int32 [batch, longest]; below 0 for padding."""
        return self._seen(users)

    @property
    def served_variables(self) -> list[Any]:
        """All variables: baselines have items of users."""
        return self.variables

    def renewed(self, baselines: BaselineScores | None = None, num_seen: int = 0) -> CatalogFactors:
        """Returns a new model of one device with the vectors and with these baselines; it has no items of users yet."""
        model = CatalogFactors.from_config({**self.get_config(), "baselines": baselines, "num_seen": num_seen})
        model.continue_from(self, np.arange(self.num_users), np.arange(self.num_items))
        return model

    def start_new(self, interactions: Interactions, users: np.ndarray) -> None:
        """Gives new users vectors of their items."""
        new = np.setdiff1d(np.flatnonzero(interactions.items_per_user), users)
        if len(new):
            factors, of_items = self._users.vectors().numpy(), self.history_graph(self.item_vectors())
            norm = np.linalg.norm(factors[users], axis=1).mean()
            for block in blocks(len(new), self.num_items):
                vectors = of_items(tf.constant(interactions.padded(new[block])[0]))[:, : self.dim]
                factors[new[block]] = norm * tf.math.l2_normalize(vectors, axis=1)
            self._users.factors.assign(factors)

    def set_new(self, interactions: Interactions, encoders: Mapping[str, Encoder]) -> None:
        """Gives vectors to users and items without interactions."""
        self._set_new(self._users, interactions.items_per_user > 0, encoders.get("users", _mean))
        super().set_new(interactions, encoders)

    def call(self, inputs: tf.Tensor | dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores of all items for indices of users, or those of the inputs of `candidate_batches`."""
        if not isinstance(inputs, dict):
            return super().call(inputs, training)
        users, items = tf.cast(inputs["users"], tf.int32), candidates(inputs["items"])
        of_items = self._of_items(self._items.vectors(items), items)
        return self._scores(self.user_vectors(users), of_items) + inputs["offsets"]

    def _of_histories(self, catalog: Any) -> Callable[[tf.Tensor], tf.Tensor]:
        return folding_in(catalog, self.user_vectors().numpy(), self.dim, self.temperature)

    def answers(self, catalog: Any) -> tuple[Answers, Answers]:
        """Returns functions of users and of histories to vectors and scores."""
        of_items = self._of_histories(catalog)
        unknown = of_items(tf.constant([[-1]]))

        def of_users(users: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            known, is_unknown = tf.maximum(users, 0), users[:, tf.newaxis] < 0
            vectors = tf.where(is_unknown, unknown, self.user_vectors(known))
            items = None if self.baselines is None else tf.where(is_unknown, -1, self.latest_items(known))
            return self._answer(vectors, catalog, items)

        return of_users, lambda items: self._answer(of_items(items), catalog, items)


class Seen(tf.keras.layers.Layer):
    """The items of users.

    Args:
      num_users: Number of users.
      count: Number of the items of all.
    """

    def __init__(self, num_users: int, count: int) -> None:
        super().__init__(name="seen")
        options: dict[str, Any] = {"dtype": "int32", "initializer": "zeros", "trainable": False}
        self._starts = self.add_weight(name="starts", shape=(num_users + 1,), **options)
        self._items = self.add_weight(name="items", shape=(count,), **options)
        self.built = True  # the constructor creates all weights

    def call(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the items of users, int32 [batch, longest]; -1 after the last one."""
        starts, items = map(tf.convert_to_tensor, (self._starts, self._items))
        return tf.gather(tf.RaggedTensor.from_row_splits(items, starts, validate=False), users).to_tensor(-1)


def _mean(vectors: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Returns the mean of known vectors for each row."""
    return np.broadcast_to(vectors[is_known].mean(axis=0), vectors.shape)


def candidates(items: tf.Tensor) -> tf.Tensor:
    """Returns the sampled items of a batch, [batch, candidates], of which all rows are equal."""
    # A replica without rows gets any items.
    return tf.maximum(tf.reduce_max(tf.cast(items, tf.int32), axis=0), 0)


def chosen(weight: Any, rows: tf.Tensor | None) -> tf.Tensor:
    """Returns rows of a weight, or all."""
    values = tf.convert_to_tensor(weight)
    return values if rows is None else gather(values, rows)
