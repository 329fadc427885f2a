"""Scorers around another one: calibrated, to probabilities or expected labels, and with a bias of the position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.encoded_scorer import PADDING_SCORE
from tfr_smooth.models.scorer import FeatureScorer, Scorer

METHODS = ("platt", "isotonic")
_LINKS = ("exp", "sigmoid")


@_serialization.register
class PlattCalibration(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Platt scaling of scores: $\sigma(a s + b)$.

    (Platt, "Probabilistic Outputs for Support Vector Machines", 1999.) `training.fit_calibration` creates it.

    Args:
      slope: The slope $a$, > 0.
      intercept: The intercept $b$.
      name: Name of the layer. None uses Keras's default.

    Call with scores of any shape. Returns probabilities in [0, 1], float32, in the order of the scores
    up to rounding.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(N).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> print(PlattCalibration(slope=2.0, intercept=1.0)(tf.constant([[-0.5, 1.0]])).numpy().round(4))
      [[0.5    0.9526]]
    """

    def __init__(self, *, slope: float, intercept: float, name: str | None = None) -> None:
        super().__init__(name=name, dtype="float32")
        self.slope = _arguments.real("slope", slope, above=0.0)
        self.intercept = _arguments.real("intercept", intercept)

    def call(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns probabilities."""
        return tf.sigmoid(self.slope * scores + self.intercept)


@_serialization.register
class IsotonicCalibration(tf.keras.layers.Layer):
    """An increasing function of scores that is linear between knots and constant outside of them.

    `training.fit_calibration` creates it by isotonic regression.

    Args:
      scores: The knots, strictly increasing in float32; at least one.
      values: The values at the knots, increasing.
      name: Name of the layer. None uses Keras's default.

    Call with scores of any shape. Returns values, float32. No two scores change their order, but scores within a
    constant piece become ties.

    Raises:
      ValueError: If the numbers are not increasing, or not equally many.

    Time O(N log knots), memory O(N).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> calibration = IsotonicCalibration(scores=[0.0, 1.0, 2.0], values=[0.1, 0.2, 0.8])
      >>> print(calibration(tf.constant([[-3.0, 0.5, 1.5, 9.0]])).numpy().round(2))
      [[0.1  0.15 0.5  0.8 ]]
    """

    def __init__(self, *, scores: Sequence[float], values: Sequence[float], name: str | None = None) -> None:
        super().__init__(name=name, dtype="float32")
        self._knots, self._values = np.array(scores, np.float32), np.array(values, np.float32)
        finite = self._knots.ndim == 1 and self._knots.size and np.isfinite(self._knots).all()
        if not finite or (np.diff(self._knots) <= 0.0).any():
            raise ValueError(f"`scores` must be strictly increasing numbers, at least one, got {scores!r}.")
        same = self._values.shape == self._knots.shape and np.isfinite(self._values).all()
        if not same or (np.diff(self._values) < 0.0).any():
            raise ValueError(f"`values` must be {len(self._knots)} increasing numbers, got {values!r}.")

    def call(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns the interpolated values."""
        if len(self._knots) == 1:
            return tf.fill(tf.shape(scores), self._values[0])
        inside = tf.clip_by_value(scores, self._knots[0], self._knots[-1])
        # The first knot after the score, or the last knot.
        after = tf.searchsorted(self._knots[1:-1], tf.reshape(inside, [-1]), side="right")
        after = tf.reshape(after, tf.shape(scores)) + 1
        left, right = tf.gather(self._knots, after - 1), tf.gather(self._knots, after)
        low, high = tf.gather(self._values, after - 1), tf.gather(self._values, after)
        # The minimum keeps the order where the sum is rounded up.
        return tf.minimum(low + (high - low) * ((inside - left) / (right - left)), high)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"scores": self._knots.tolist(), "values": self._values.tolist(), "name": self.name}


@_serialization.register
class CalibratedScorer(FeatureScorer):
    """A scorer whose scores are calibrated: probabilities of relevance, or expected labels.

    Args:
      scorer: A model with the inputs and outputs of `FeedForwardScorer`.
      calibration: The function of its scores, a layer such as `PlattCalibration`.
      name: Name of the model. None uses Keras's default.

    Call with the inputs of the scorer. Returns calibrated scores [batch, list]; `PADDING_SCORE` at padding.

    Time and memory are those of the scorer and the calibration.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> calibration = PlattCalibration(slope=1.0, intercept=-2.0)
      >>> scorer = models.CalibratedScorer(models.FeedForwardScorer(hidden=[4]), calibration)
      >>> scorer({"features": tf.ones([1, 2, 3]), "mask": tf.constant([[True, False]])}).shape
      TensorShape([1, 2])
    """

    def __init__(
        self, scorer: tf.keras.Model, calibration: tf.keras.layers.Layer, *, name: str | None = "calibrated_scorer"
    ) -> None:
        super().__init__(name=name, autocast=False)
        self.scorer = scorer
        self.calibration = calibration

    @property
    def num_features(self) -> int | None:
        """The number of features of the scorer."""
        return self.scorer.num_features

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the scorer."""
        if not self.scorer.built:
            self.scorer.build(input_shape)
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns calibrated scores [batch, list]."""
        scores = self.calibration(self.scorer(inputs, training=training))
        mask = inputs.get("mask") if isinstance(inputs, dict) else None
        return scores if mask is None else tf.where(tf.cast(mask, tf.bool), scores, PADDING_SCORE)


def fit_calibration(
    labels: Any, scores: Any, *, method: str = "platt", threshold: float | None = 1.0
) -> tf.keras.layers.Layer:
    r"""Fits an increasing function from scores to probabilities of relevance, or to expected labels.

    "platt" maximizes the likelihood of $\sigma(a s + b)$ with the targets of Platt (1999), $(n_+ + 1) / (n_+ + 2)$ for
    the $n_+$ relevant documents and $1 / (n_- + 2)$ for the others. "isotonic" minimizes the squared error over all
    increasing functions (Zadrozny and Elkan, KDD 2002), and interpolates linearly between the scores; it needs more
    documents.

    Args:
      labels: [documents], >= 0.
      scores: [documents], finite; of documents that the model was not trained on.
      method: "platt" or "isotonic".
      threshold: Documents with labels >= this, > 0, are relevant. None fits the expected label instead of a
        probability, by "isotonic" only.

    Returns:
      `PlattCalibration` or `IsotonicCalibration`.

    Raises:
      ValueError: If an argument is invalid, or if with "platt" all documents or none are relevant, or relevant
        documents do not have higher scores.

    Time O(N log N), memory O(N).

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import training
      >>> scores = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)
      >>> print(training.fit_calibration([0, 1, 0, 2], scores, method="isotonic")(scores).numpy())
      [0.  0.5 0.5 1. ]
    """
    _arguments.choice("method", method, METHODS)
    labels, scores = np.asarray(labels, np.float64), np.asarray(scores, np.float64)
    if scores.ndim != 1 or not scores.size or not np.isfinite(scores).all():
        raise ValueError(f"`scores` must be finite numbers [documents], at least one, got shape {scores.shape}.")
    if labels.shape != scores.shape or not (labels >= 0.0).all():
        raise ValueError(f"`labels` must be {len(scores)} numbers >= 0, got shape {labels.shape}.")
    if threshold is not None:
        labels = (labels >= _arguments.real("threshold", threshold, above=0.0)).astype(np.float64)
    elif method == "platt":
        raise ValueError("`threshold` must be a number for the method 'platt', got None.")
    return _platt(labels, scores) if method == "platt" else _isotonic(labels, scores)


def _platt(labels: np.ndarray, scores: np.ndarray) -> PlattCalibration:
    from scipy import optimize, special

    relevant = labels.sum()
    others = len(labels) - relevant
    if not relevant or not others:
        raise ValueError(f"`labels` must have relevant and other documents, got {relevant:g} and {others:g}.")
    targets = np.where(labels, (relevant + 1.0) / (relevant + 2.0), 1.0 / (others + 2.0))
    center, scale = scores.mean(), scores.std() or 1.0
    inputs = np.stack([(scores - center) / scale, np.ones_like(scores)])

    def loss_and_gradient(weights: np.ndarray) -> tuple[float, np.ndarray]:
        logits = weights @ inputs
        gradient = inputs @ (special.expit(logits) - targets) / len(targets)
        return np.mean(np.logaddexp(0.0, logits) - targets * logits), gradient

    slope, intercept = optimize.minimize(loss_and_gradient, [1.0, 0.0], jac=True, options={"gtol": 1e-9}).x
    if slope <= 0.0:
        raise ValueError(f"`scores` must be higher for relevant documents, got the slope {slope / scale:.3g}.")
    return PlattCalibration(slope=slope / scale, intercept=intercept - slope * center / scale)


def _isotonic(labels: np.ndarray, scores: np.ndarray) -> IsotonicCalibration:
    from scipy import optimize

    # The scores of models are float32, and so are the knots.
    knots, group = np.unique(scores.astype(np.float32), return_inverse=True)
    counts = np.bincount(group)
    values = optimize.isotonic_regression(np.bincount(group, labels) / counts, weights=counts).x
    # Knots within a constant piece have no effect.
    changes = np.concatenate([[True], np.diff(values) != 0.0, [True]])
    kept = changes[:-1] | changes[1:]
    return IsotonicCalibration(scores=knots[kept].tolist(), values=values[kept].tolist())


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
