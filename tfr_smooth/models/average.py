"""An ensemble of scorers as one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth.models.feed_forward import PADDING_SCORE


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class AverageScorer(tf.keras.Model):
    r"""Scores each document by the mean of several scorers: $s(x) = \frac{1}{M} \sum_m s_m(x)$.

    Scorers trained with different seeds make different errors, and their mean ranks better than a single scorer.

    Args:
      scorers: At least one scorer with the inputs and outputs of `FeedForwardScorer`.
      name: Name of the model. None uses Keras's default.

    The inputs are those of `FeedForwardScorer`. Returns scores [batch, list], float32; `PADDING_SCORE` at padding.

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

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]."""
        scores = [scorer(inputs, training=training) for scorer in self.scorers]
        mean = tf.add_n([score / len(scores) for score in scores])
        # The mean rounds, also at padding.
        return tf.where(scores[0] > PADDING_SCORE, mean, PADDING_SCORE)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        scorers = [tf.keras.utils.serialize_keras_object(scorer) for scorer in self.scorers]
        return {"scorers": scorers, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> AverageScorer:
        """Creates the model from the result of `get_config`."""
        scorers = [tf.keras.utils.deserialize_keras_object(scorer) for scorer in config["scorers"]]
        return cls(**{**config, "scorers": scorers})
