"""A catalog's scores for users who are sequences of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.losses import RankingLoss
from tfr_smooth.recommendation.baseline_scores import BaselineScores
from tfr_smooth.recommendation.catalog_losses import catalog_loss
from tfr_smooth.recommendation.factors import Answers, CatalogModel, candidates, chosen
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.sequences import SequenceEncoder


@_serialization.register
class CatalogSequences(CatalogModel):
    """`CatalogModel` whose users have the output of an encoder of their latest items.

    Args:
      user_encoder: The encoder.
      baselines: Scores of baselines, which are added outside of the training. None: none.
      **options: Arguments of `CatalogModel`; `dim` is the size of the encoder.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import recommendation
      >>> from tfr_smooth.recommendation.sequences import SequenceEncoder
      >>> encoder = SequenceEncoder(size=4, num_features=5)
      >>> model = recommendation.CatalogSequences(num_users=10, num_items=30, user_encoder=encoder)
      >>> model.history_vectors(tf.constant([[3, 7, -1]])).shape
      TensorShape([1, 4])
    """

    def __init__(
        self, *, user_encoder: SequenceEncoder, baselines: BaselineScores | None = None, **options: Any
    ) -> None:
        encoder = _arguments.instance("user_encoder", user_encoder, SequenceEncoder)
        if (dim := options.setdefault("dim", encoder.size)) != encoder.size:
            raise ValueError(f"`user_encoder` must return vectors of the size {dim}, `dim`, got {encoder.size}.")
        super().__init__(**options)
        self.user_encoder: Any = encoder
        self.baselines = _arguments.instance("baselines", baselines, BaselineScores, optional=True)
        # A Markov chain may look further back than the encoder.
        length = max(encoder.num_features, 0 if baselines is None else baselines.order)
        self._take_users(_Encoded(self.num_users, encoder, length))
        encoder.vectors_of = lambda items: self._normalized(self._items.vectors(items))
        self.supports_jit = False

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), **_serialization.arguments_of(self)}

    def renewed(self, baselines: BaselineScores | None = None) -> CatalogSequences:
        """Returns a new model of one device with the vectors and with these baselines; it has no sequences yet."""
        model = CatalogSequences.from_config({**self.get_config(), "baselines": baselines})
        model.continue_from(self, np.arange(self.num_users), np.arange(self.num_items))
        return model

    def set_sequences(self, interactions: Interactions) -> None:
        """Sets the latest items of users."""
        items, _ = interactions.latest(np.arange(interactions.num_users), self._users.latest.shape[1])
        self._users.latest.assign(items)

    def call(self, inputs: tf.Tensor | dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores of all items for indices of users; in the training, vectors.

        Args:
          inputs: Indices of users, [batch], or the inputs of `SequenceBatches`.
          training: Whether to apply dropout.

        Returns:
          float32 [batch, items]; or the vectors of users before each item of sequences, [batch, length, size].
        """
        if not isinstance(inputs, dict):
            return super().call(inputs, training)
        # Dropout follows from the number of the step, so that a resumed training has the same.
        step = getattr(getattr(self, "optimizer", None), "iterations", 0) if training else None
        vectors = self.user_encoder.outputs(inputs["items"], inputs["segments"], step)
        flat = self._of_users(tf.reshape(vectors, [-1, self.dim]))
        return tf.reshape(flat, [-1, inputs["items"].shape[1], flat.shape[1]])

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, **options: Any) -> None:
        """Configures training like Keras's `compile`; sequences need one loss, which `compute_loss` computes."""
        self._loss = _arguments.instance("loss", loss, RankingLoss)
        super().compile(optimizer, _ComputedLoss(), **options)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Returns Keras's loss; each position of a sequence is a list."""
        value = self._sequence_loss(x, y, y_pred)[tf.newaxis]
        return super().compute_loss(x, tf.zeros_like(value), value, *args, **kwargs)

    def _sequence_loss(self, inputs: dict[str, tf.Tensor], following: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the mean loss of the positions of `SequenceBatches` with these vectors."""
        items, offsets = None, tf.zeros([self.num_items])
        if "candidates" in inputs:
            items = candidates(inputs["candidates"])
            is_item = tf.reduce_max(inputs["candidates"], axis=0) >= 0
            offsets = tf.where(is_item, tf.reduce_max(inputs["offsets"], axis=0), -np.inf)
        of_items = self._of_items(self._items.vectors(items), items)
        # With padding, which is rare, batches have equal shapes: programs are compiled once.
        users = tf.reshape(vectors, [-1, of_items.shape[1]]) / self.temperature
        relevant, weights = (tf.reshape(each, [-1]) for each in (following, inputs["weights"]))
        return catalog_loss(self._loss, users, of_items, relevant, weights, offsets)

    def latest_items(self, users: tf.Tensor) -> tf.Tensor:
        """Returns the latest items of users, int32 [batch, length], in order after padding with -1."""
        return tf.cast(chosen(self._users.latest, users), tf.int32)

    def _of_histories(self, catalog: Any) -> Callable[[tf.Tensor], tf.Tensor]:
        return lambda items: self._of_users(self.user_encoder(items))

    def answers(self, catalog: Any) -> tuple[Answers, Answers]:
        """Returns functions of users and of histories to vectors and scores."""
        of_items = self._of_histories(catalog)

        def of_histories(items: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return self._answer(of_items(items), catalog, items)

        def of_users(users: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            latest = self.latest_items(tf.maximum(users, 0))
            return of_histories(tf.where(users[:, tf.newaxis] < 0, -1, latest))

        return of_users, of_histories

    @property
    def served_variables(self) -> list[Any]:
        """All variables: the encoder reads the vectors of items."""
        return self.variables


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
        return self.encoder(chosen(self.latest, rows))

    def continue_from(self, other: _Encoded, places: np.ndarray) -> None:
        """Copies the encoder of others."""
        self.encoder.set_weights(other.encoder.get_weights())


class _ComputedLoss(RankingLoss):
    """A loss that is computed already, [1], for all replicas."""

    def __call__(self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: Any = None) -> tf.Tensor:
        return y_pred[0]
