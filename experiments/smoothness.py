"""Diagnoses how close a smooth metric is to the exact one, and for how many lists its gradient vanishes."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.losses import MeasureLoss
from tfr_smooth.rankings import ExactRanking, Ranking

# A gradient vanishes if its norm is below this fraction of the median over lists, or below this absolute value.
_RELATIVE, _ABSOLUTE = 1e-3, 1e-6
# Exact values within this distance of the best value count as the best value.
_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class Smoothness:
    """Properties of a smooth metric at one temperature, over the lists with a relevant document.

    Args:
      value: The temperature.
      smooth: The mean of the smooth metric.
      exact: The mean of the exact metric.
      gap: The mean over lists of |smooth - exact|.
      correlation: Spearman's rank correlation of smooth and exact over lists; NaN if either is constant.
      vanishing_share: The share of lists with a vanishing gradient, among the lists that are not already ranked
        optimally: the norm of the gradient with respect to the list's scores is below 1e-3 of the median norm of these
        lists, or below 1e-6.

    Example:
      >>> from experiments.smoothness import Smoothness
      >>> row = Smoothness(value=10.0, smooth=0.6, exact=0.61, gap=0.02, correlation=0.9, vanishing_share=0.0)
      >>> row.gap
      0.02
    """

    value: float
    smooth: float
    exact: float
    gap: float
    correlation: float
    vanishing_share: float


@dataclasses.dataclass(frozen=True)
class SmoothnessReport:
    """A comparison of temperatures, as returned by `diagnose_smoothness`. Print it for a table.

    Args:
      hyperparameter: The name of the temperature.
      rows: One `Smoothness` per temperature.
      recommended: The temperature to start with.
      reason: The reason for the recommendation.

    Example:
      >>> from experiments.smoothness import Smoothness, SmoothnessReport
      >>> row = Smoothness(value=10.0, smooth=0.6, exact=0.61, gap=0.02, correlation=0.9, vanishing_share=0.0)
      >>> report = SmoothnessReport("alpha", (row,), recommended=10.0, reason="the smallest gap")
      >>> print(str(report).splitlines()[-1])
      Recommended: alpha=10, the smallest gap.
    """

    hyperparameter: str
    rows: tuple[Smoothness, ...]
    recommended: float
    reason: str

    def __str__(self) -> str:
        """Returns the table and the recommendation."""
        names = [field.name for field in dataclasses.fields(Smoothness)][1:]
        lines = [f"{self.hyperparameter:>12}" + "".join(f"{name:>17}" for name in names)]
        for row in self.rows:
            lines.append(f"{row.value:>12g}" + "".join(f"{getattr(row, name):>17.4f}" for name in names))
        return "\n".join([*lines, f"Recommended: {self.hyperparameter}={self.recommended:g}, {self.reason}."])


def diagnose_smoothness(
    model: Callable[[Any], tf.Tensor],
    dataset: Iterable[Any],
    loss: MeasureLoss,
    *,
    values: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
    hyperparameter: str | None = None,
    largest_vanishing_share: float = 0.05,
) -> SmoothnessReport:
    """Compares temperatures of a loss on a model's scores, and recommends one.

    A sharp ranking is close to the exact metric but has a vanishing gradient; a soft ranking has a gradient, but of a
    different metric. The recommendation is the value with the smallest gap among the values with a gradient for almost
    all lists, or the value with the smallest share of vanishing gradients if there are none. This is a heuristic for
    the current scores: it does not measure what the model learns from the gradient, and scores grow during training. It
    rules out values that cannot work and does not replace validation.

    Args:
      model: The model, or any function from a batch's inputs to scores [batch, list].
      dataset: A finite dataset of (inputs, labels), such as the training set.
      loss: A loss that is one minus a smooth metric, such as `losses.SmoothINDCGLoss()`.
      values: The temperatures to compare, each > 0.
      hyperparameter: The name of the ranking's temperature. None uses its first field, which is the temperature of all
        rankings of this library.
      largest_vanishing_share: The largest accepted share of lists with a vanishing gradient, in (0, 1).

    Returns:
      The report, with one row per value and the recommended value.

    Raises:
      ValueError: If an argument is invalid, the dataset has no list with a relevant document, or the model returns NaN.

    Time: one forward pass, and value and gradient of the loss, per value. Memory: one batch.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> from experiments import smoothness
      >>> scores = tf.constant([[2.0, 1.0, 0.0], [0.2, 0.0, 0.1]])
      >>> dataset = [(scores, tf.constant([[0, 2, 1], [0, 0, 1]]))]
      >>> loss = tfr_smooth.losses.ApproxNDCGLoss()
      >>> report = smoothness.diagnose_smoothness(lambda scores: scores, dataset, loss, values=(1.0, 50.0))
      >>> print(report.recommended, [round(row.vanishing_share, 2) for row in report.rows])
      1.0 [0.0, 0.5]
    """
    _check_loss(loss)
    limit = largest_vanishing_share
    if not 0.0 < limit < 1.0:
        raise ValueError(f"`largest_vanishing_share` must be a number in (0, 1), got {limit!r}.")
    name = _temperature_name(loss.ranking, hyperparameter)
    if not values:
        raise ValueError("`values` must contain at least one number, got none.")
    rows = []
    for value in values:
        ranking = dataclasses.replace(loss.ranking, **{name: value})
        rows.append(Smoothness(value, **_measurement(model, loss, ranking)(dataset)))
    if any(math.isnan(row.gap) for row in rows):
        raise ValueError("`model` must return finite scores for finite labels, got NaN.")
    accepted = [row for row in rows if row.vanishing_share <= limit]
    if accepted:
        best, reason = min(accepted, key=lambda row: row.gap), "the smallest gap"
        reason += f" among values with a gradient for at least {1.0 - limit:.0%} of the lists"
    else:
        best, reason = min(rows, key=lambda row: row.vanishing_share), "the smallest share of vanishing gradients"
        reason += f"; it exceeds {limit:.0%} for every value"
    return SmoothnessReport(name, tuple(rows), best.value, reason)


class SmoothnessMonitor(tf.keras.callbacks.Callback):
    """Logs the gap between the smooth and exact metric, and the share of vanishing gradients, after each epoch.

    The logs are named `smooth_gap` and `vanishing_share`, as defined in `Smoothness`, at the current temperature of the
    loss. A share that approaches 1 indicates that training has stalled because gradients vanish. In distributed
    training, each worker measures the whole dataset.

    Args:
      dataset: A finite dataset of (inputs, labels), such as the training set or a part of it.
      loss: The training loss: one minus a smooth metric, such as `losses.SmoothINDCGLoss()`.

    Raises:
      ValueError: If `loss` is not a `MeasureLoss`.

    Time per epoch: one forward pass over the dataset, and value and gradient of the loss. Memory: one batch.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> from experiments import smoothness
      >>> dataset = tf.data.Dataset.from_tensors((tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1])))
      >>> model, loss = tfr_smooth.models.FeedForwardScorer(hidden=[4]), tfr_smooth.losses.SmoothINDCGLoss()
      >>> model.compile(optimizer="adam", loss=loss)
      >>> monitor = smoothness.SmoothnessMonitor(dataset, loss)
      >>> sorted(model.fit(dataset, epochs=1, verbose=0, callbacks=[monitor]).history)
      ['loss', 'smooth_gap', 'vanishing_share']
    """

    def __init__(self, dataset: Iterable[Any], loss: MeasureLoss) -> None:
        super().__init__()
        self._dataset = dataset
        _check_loss(loss)
        self._loss = loss
        self._measure: Callable[[Iterable[Any]], dict[str, float]] | None = None

    def set_model(self, model: tf.keras.Model) -> None:
        """Called by Keras before training."""
        super().set_model(model)
        self._measure = _measurement(model, self._loss, self._loss.ranking)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: measures the model."""
        assert self._measure is not None
        measured = self._measure(self._dataset)
        if logs is not None:
            logs.update(smooth_gap=measured["gap"], vanishing_share=measured["vanishing_share"])


def _check_loss(loss: Any) -> None:
    """Raises an error if a loss has no smooth metric."""
    if not isinstance(loss, MeasureLoss):
        raise ValueError(f"`loss` must be a `tfr_smooth.losses.MeasureLoss`, got {type(loss).__name__}.")


def _temperature_name(ranking: Ranking, name: str | None) -> str:
    """Returns the checked name of the temperature; for None, that of the first field."""
    names = [field.name for field in dataclasses.fields(ranking)]
    name = names[0] if name is None else name
    if name not in names:
        raise ValueError(f"`hyperparameter` must be one of {names}, got {name!r}.")
    return name


def _measurement(
    model: Callable[..., tf.Tensor], loss: MeasureLoss, ranking: Ranking
) -> Callable[..., dict[str, float]]:
    """Returns a function from a dataset to the fields of `Smoothness` except the value."""
    measure = loss.measure
    score = functools.partial(model, training=False) if isinstance(model, tf.keras.Model) else model

    def of_lists(batch_inputs: Any, labels: tf.Tensor) -> tf.Tensor:
        """Returns [4, lists]: smooth, exact and best value, and the norm of the gradient."""
        scores = score(batch_inputs)
        mask = getattr(scores, "_keras_mask", None)
        if loss.ragged:
            labels, scores = labels.to_tensor(-1.0), scores.to_tensor()
        scores = scores[:, :, 0] if scores.shape.rank == 3 else scores
        batch = measure.clean(labels, scores, mask)
        with tf.GradientTape() as tape:
            tape.watch(batch.scores)
            smooth = measure.compute(batch.labels, batch.scores, batch.mask, ranking)
        norm = tf.norm(tape.gradient(smooth, batch.scores, unconnected_gradients="zero"), axis=1)
        exact, best = (
            measure.compute(batch.labels, scores, batch.mask, ExactRanking()) for scores in (batch.scores, batch.labels)
        )
        values = tf.stack([batch.validity * smooth, batch.validity * exact, best, norm])
        # A list with NaN counts, so that NaN appears in the result.
        counts = tf.logical_or(measure.has_relevant(batch.labels, batch.mask), tf.math.is_nan(batch.validity))
        return tf.boolean_mask(values, counts, axis=1)

    # TensorFlow counts partial functions by object, and so warns of no retraces.
    traced = tf.function(functools.partial(of_lists), autograph=False, reduce_retracing=True)
    return lambda dataset: _summary(*np.concatenate([traced(*batch).numpy() for batch in dataset], axis=1))


def _summary(smooth: np.ndarray, exact: np.ndarray, best: np.ndarray, norm: np.ndarray) -> dict[str, float]:
    """Returns the fields of `Smoothness` except the value, from the values of the lists."""
    if not len(exact):
        raise ValueError("`dataset` must have a list with a relevant document, got none.")
    norm = norm[exact < best - _ROUNDING]
    vanished = norm < max(_RELATIVE * np.median(norm), _ABSOLUTE) if len(norm) else np.zeros(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.corrcoef(_ranks(smooth), _ranks(exact))[0, 1]
    return {
        "smooth": float(smooth.mean()),
        "exact": float(exact.mean()),
        "gap": float(np.abs(smooth - exact).mean()),
        "correlation": float(correlation),
        "vanishing_share": float(vanished.mean()),
    }


def _ranks(values: np.ndarray) -> np.ndarray:
    """Returns the rank of each value; equal values have their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
