"""A scorer with a bias for the position at which a document was shown, for training on clicks."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.scorer import Scorer

_LINKS = ("exp", "sigmoid")


@_serialization.register
class PositionBias(_serialization.ConfiguredLayer, Scorer):
    r"""Adds a learned logit of the position to a scorer in training, and omits it at inference.

    With the logit $e_k$ of position k and the score $s(x)$ of a document, the output in training is

    $$s(x) + e_k \quad \text{(additive)} \qquad \text{or} \qquad [e_k, s(x)]$$

    The additive model, or two-tower model, fits any loss, such as `losses.SoftmaxLoss` (Guo et al., "PAL: a
    Position-bias Aware Learning Framework for CTR Prediction in Live Recommender Systems", RecSys 2019, discuss such
    models; TF-Ranking has the same tower). The pair is the input of `losses.ClickEMLoss` (regression EM) and
    `losses.DualLearningLoss`. The logits start at 0. The trained ranker is `scorer`, which this model calls at
    inference; save and export it.

    Args:
      scorer: A model that returns scores [batch, list], such as `FeedForwardScorer` with one member.
      num_positions: Number of positions with a logit of their own, >= 1. Later positions share the last one.
      additive: Whether the output in training is the sum.
      position_rate: Factor of the learning rate of the logits, > 0, for Adam and other optimizers whose steps do not
        depend on the scale of the gradient. The few logits move farther than the many weights of a scorer.
      name: Name of the model. None uses Keras's default.

    Call with the inputs of the scorer as a dict and, for training, `position` [batch, list], integers from 1, 0 for
    padding, as from `data.from_arrays(..., positions=)`. Returns the scores [batch, list] of the scorer; with
    `training=True`, the sum [batch, list], or the pair [batch, list, 2] if not additive.

    Raises:
      ValueError: If an argument is invalid, `position` is missing in training, or the scorer returns other shapes.

    Time and memory are those of the scorer.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import data, models
      >>> features, clicks, positions = np.ones([3, 2]), np.array([1, 0, 0]), np.array([1, 2, 3])
      >>> dataset = data.from_arrays(features, clicks, ["a"] * 3, positions=positions).batches(8)
      >>> model = models.PositionBias(models.FeedForwardScorer(hidden=[4]), num_positions=3)
      >>> model.compile("adam", "softmax")
      >>> history = model.fit(dataset, verbose=0)
      >>> model.predict(dataset, verbose=0).shape, model.propensities().shape
      ((1, 3), (3,))
    """

    def __init__(
        self,
        scorer: tf.keras.Model,
        *,
        num_positions: int,
        additive: bool = True,
        position_rate: float = 5.0,
        name: str | None = "position_bias",
    ) -> None:
        super().__init__(name=name, autocast=False)
        self.scorer = _arguments.instance("scorer", scorer, tf.keras.Model)
        self.num_positions = _arguments.integer("num_positions", num_positions, least=1)
        self.additive = _arguments.boolean("additive", additive)
        self.supports_jit = False
        self.position_rate = _arguments.real("position_rate", position_rate, above=0.0)
        self.positions = self.add_weight(name="positions", shape=[num_positions], initializer="zeros", dtype="float32")

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list], or in training also the logits of the positions."""
        features = {name: value for name, value in inputs.items() if name != "position"}
        scores = self.scorer(features, training=training)
        if not training:
            return scores
        if "position" not in inputs:
            raise ValueError(f"`inputs` must include 'position' in training, got {sorted(inputs)}.")
        if scores.shape.rank != 2:
            raise ValueError(f"`scorer` must return scores [batch, list] in training, got shape {scores.shape}.")
        places = tf.clip_by_value(tf.cast(inputs["position"], tf.int32) - 1, 0, self.num_positions - 1)
        # Adam of Keras 3 squares the sparse gradient of `tf.gather` without summing equal positions.
        logits = self.position_rate * tf.convert_to_tensor(self.positions)
        logits = tf.linalg.matvec(tf.one_hot(places, self.num_positions), logits)
        return scores + logits if self.additive else tf.stack([logits, scores], axis=2)

    def propensities(self, link: str = "exp") -> np.ndarray:
        r"""Returns the propensities relative to the first position.

        Args:
          link: "exp" for $e^{e_k} / e^{e_1}$, the propensities of models trained with a softmax or `DualLearningLoss`;
            "sigmoid" for $\sigma(e_k) / \sigma(e_1)$, those of `ClickEMLoss`.

        Returns:
          float64 [num_positions].

        Raises:
          ValueError: If `link` is unknown.
        """
        logits = self.position_rate * np.asarray(self.positions, np.float64)
        log_rates = logits if _arguments.choice("link", link, _LINKS) == "exp" else -np.logaddexp(0.0, -logits)
        return np.exp(log_rates - log_rates[0])
