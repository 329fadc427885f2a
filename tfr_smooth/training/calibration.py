"""Calibration after training: Platt scaling and isotonic regression of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, models

METHODS = ("platt", "isotonic")


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
      `models.PlattCalibration` or `models.IsotonicCalibration`.

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


def _platt(labels: np.ndarray, scores: np.ndarray) -> models.PlattCalibration:
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
    return models.PlattCalibration(slope=slope / scale, intercept=intercept - slope * center / scale)


def _isotonic(labels: np.ndarray, scores: np.ndarray) -> models.IsotonicCalibration:
    from scipy import optimize

    # The scores of models are float32, and so are the knots.
    knots, group = np.unique(scores.astype(np.float32), return_inverse=True)
    counts = np.bincount(group)
    values = optimize.isotonic_regression(np.bincount(group, labels) / counts, weights=counts).x
    # Knots within a constant piece have no effect.
    changes = np.concatenate([[True], np.diff(values) != 0.0, [True]])
    kept = changes[:-1] | changes[1:]
    return models.IsotonicCalibration(scores=knots[kept].tolist(), values=values[kept].tolist())
