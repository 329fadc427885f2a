"""An ensemble of scorers as one model, whose members train at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth.models.feed_forward import PADDING_SCORE
from tfr_smooth.models.scorer import Scorer


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class AverageScorer(Scorer):
    r"""Scores each document by the mean of several scorers: $s(x) = \frac{1}{M} \sum_m s_m(x)$.

    Scorers trained with different seeds make different errors, and their mean ranks better than a single scorer.
    `fit` trains the scorers at once, on the same batches, each with its own loss: the gradient of a scorer is that of
    training it alone. The training loss is the mean over the scorers; metrics are those of the mean score.

    Args:
      scorers: At least one scorer with the inputs and outputs of `FeedForwardScorer`.
      name: Name of the model. None uses Keras's default.

    The inputs are those of `FeedForwardScorer`. Returns scores [batch, list], float32; `PADDING_SCORE` at padding. With
    `training=True`, returns the scores of each scorer, [scorers, batch, list].

    Raises:
      ValueError: If `scorers` is empty.

    Time and memory are the sums over the scorers.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> scorers = [models.FeedForwardScorer(hidden=[8]) for _ in range(3)]
      >>> features = tf.random.normal([2, 4, 5])
      >>> mean = sum(scorer(features) for scorer in scorers) / 3.0
      >>> bool(tf.reduce_all(abs(models.AverageScorer(scorers)(features) - mean) < 1e-5))
      True
    """

    def __init__(self, scorers: Sequence[tf.keras.Model], name: str | None = "average_scorer") -> None:
        super().__init__(name=name, autocast=False)
        if not scorers:
            raise ValueError("`scorers` must contain at least one model, got none.")
        self.scorers = list(scorers)
        self.supports_jit = False

    def build(self, input_shape: Any) -> None:
        """Creates the weights of the scorers."""
        for scorer in self.scorers:
            if not scorer.built:
                scorer.build(input_shape)
        self.built = True

    @property
    def num_features(self) -> int | None:
        """Number of features per document, if the first scorer defines it; otherwise None."""
        return getattr(self.scorers[0], "num_features", None)

    def adapt(self, dataset: Iterable[Any]) -> None:
        """Adapts `FeedForwardScorer`s of equal `normalization` and `linear_path` to a training set.

        Args:
          dataset: Batches of (inputs, labels), as for `FeedForwardScorer.adapt`. Iterated at most twice.
        """
        first, *others = self.scorers
        first.adapt(dataset)
        for other in others:
            other.adapt_like(first)

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]; in training, those of each scorer, [scorers, batch, list]."""
        scores = tf.stack([scorer(inputs, training=training) for scorer in self.scorers])
        return scores if training else _mean(scores)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> tf.Tensor:
        """Called by Keras: returns the mean of the losses of the scorers, with the sum of their gradients."""
        if y_pred.shape.rank < 3:
            return super().compute_loss(x, y, y_pred, sample_weight, **kwargs)
        count = len(self.scorers)
        y = tf.nest.map_structure(lambda labels: tf.concat([labels] * count, axis=0), y)
        if sample_weight is not None:
            sample_weight = tf.concat([sample_weight] * count, axis=0)
        y_pred = tf.reshape(y_pred, [-1, tf.shape(y_pred)[2]])
        loss = super().compute_loss(x, y, y_pred, sample_weight, **kwargs)
        return loss + (count - 1.0) * (loss - tf.stop_gradient(loss))

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Called by Keras: returns the metrics of the mean score."""
        return super().compute_metrics(x, y, y_pred if y_pred.shape.rank < 3 else _mean(y_pred), sample_weight)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        scorers = [tf.keras.utils.serialize_keras_object(scorer) for scorer in self.scorers]
        return {"scorers": scorers, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> AverageScorer:
        """Creates the model from the result of `get_config`."""
        scorers = [tf.keras.utils.deserialize_keras_object(scorer) for scorer in config["scorers"]]
        return cls(**{**config, "scorers": scorers})


def _mean(scores: tf.Tensor) -> tf.Tensor:
    # The mean rounds, also at padding.
    return tf.where(scores[0] > PADDING_SCORE, tf.reduce_mean(scores, axis=0), PADDING_SCORE)
