"""How near a smooth metric is to the exact one on a model's own scores, and how many lists still have a gradient."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, registry
from tfr_smooth.functional import inputs
from tfr_smooth.losses import MetricLoss
from tfr_smooth.ops import ExactRanking, Ranking

# A gradient has vanished where its norm is below this part of the median list's, or below this.
_RELATIVE, _ABSOLUTE = 1e-3, 1e-6
# Exact values that are nearer to the best one than this are the best one.
_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class Smoothness:
    """What a smooth metric is at one temperature, over the lists with a relevant document.

    Args:
      value: The temperature.
      smooth: The mean of the smooth metric.
      exact: The mean of the exact metric.
      gap: The mean over lists of |smooth - exact|.
      correlation: Spearman's rank correlation of smooth and exact over lists; NaN where either is constant.
      vanishing_share: The share of lists without a gradient, among those whose ranking is not already the best: the
        norm of the gradient with respect to the list's scores is below 1e-3 of these lists' median, or below 1e-6.
    """

    value: float
    smooth: float
    exact: float
    gap: float
    correlation: float
    vanishing_share: float


@dataclasses.dataclass(frozen=True)
class SmoothnessReport:
    """What a loss is at each temperature. Print it for a table.

    Args:
      hyperparameter: The name of the temperature.
      rows: The temperatures.
      recommended: The temperature to start with.
      reason: Why.
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
    loss: MetricLoss,
    *,
    values: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
    hyperparameter: str | None = None,
    largest_vanishing_share: float = 0.05,
) -> SmoothnessReport:
    """Compares temperatures of a loss on a model's scores, and recommends one.

    A sharp ranking is near to the exact metric but has no gradient; a soft one has a gradient, but of another metric.
    The recommendation is the value with the smallest gap among those with a gradient for almost all lists, and the one
    with the smallest share of vanishing gradients if there are none. That is a heuristic for the scores as they are: it
    knows nothing of what the model learns from the gradient, and scores grow during training. It saves trials of values
    that cannot work, and does not replace validation.

    Args:
      model: The model, or any function from a batch's inputs to scores [batch, list].
      dataset: Finite batches of (inputs, labels), such as the training set.
      loss: One minus a metric read off a smooth ranking.
      values: The temperatures to compare, each > 0.
      hyperparameter: The name of the ranking's temperature; None for that of a ranking of this library.
      largest_vanishing_share: The largest share of lists without a gradient that is accepted, in (0, 1).

    Returns:
      The figures for each value, and the recommended value.

    Raises:
      ValueError: If an argument is not one of these, or the dataset has no list with a relevant document.

    Time: one forward pass, and value and gradient of the loss, per value. Memory: a batch.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> scores = tf.constant([[2.0, 1.0, 0.0], [0.2, 0.0, 0.1]])
      >>> dataset = [(scores, tf.constant([[0, 2, 1], [0, 0, 1]]))]
      >>> loss = tfr_smooth.losses.ApproxNDCGLoss()
      >>> report = tfr_smooth.training.diagnose_smoothness(lambda scores: scores, dataset, loss, values=(1.0, 50.0))
      >>> print(report.recommended, [round(row.vanishing_share, 2) for row in report.rows])
      1.0 [0.0, 0.5]
    """
    _arguments.instance("loss", loss, MetricLoss)
    limit = _arguments.real("largest_vanishing_share", largest_vanishing_share, above=0.0, below=1.0)
    name = _temperature_name(loss.ranking, hyperparameter)
    if not values:
        raise ValueError("`values` must hold at least one number, got none.")
    rows = []
    for value in values:
        ranking = dataclasses.replace(loss.ranking, **{name: value})  # type: ignore[type-var]
        rows.append(Smoothness(value, **_measurement(model, loss, ranking)(dataset)))
    if any(math.isnan(row.gap) for row in rows):
        raise ValueError("`model` must return finite scores for finite labels, got NaN.")
    accepted = [row for row in rows if row.vanishing_share <= limit]
    if accepted:
        best, reason = min(accepted, key=lambda row: row.gap), "the smallest gap"
        reason += f" with a gradient for all but {limit:.0%} of the lists"
    else:
        best, reason = min(rows, key=lambda row: row.vanishing_share), "the smallest share of vanishing gradients"
        reason += f", which is more than {limit:.0%} for every value"
    return SmoothnessReport(name, tuple(rows), best.value, reason)


class SmoothnessMonitor(tf.keras.callbacks.Callback):
    """Adds the gap between smooth and exact metric, and the share of vanishing gradients, to the logs of each epoch.

    As `smooth_gap` and `vanishing_share`, both as in `Smoothness`, at the temperature that the loss has then. A share
    that grows to most of the lists says that the training has stopped for want of a gradient. Each worker of a training
    measures the whole dataset.

    Args:
      dataset: Finite batches of (inputs, labels), such as the training set or a part of it.
      loss: The loss: one minus a metric read off a smooth ranking.

    Raises:
      ValueError: If `loss` is not a `MetricLoss`.

    Time: one forward pass over the dataset, and value and gradient of the loss, per epoch. Memory: a batch.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> dataset = tf.data.Dataset.from_tensors((tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1])))
      >>> model, loss = tfr_smooth.models.FeedForwardScorer(hidden=[4]), tfr_smooth.losses.SmoothINDCGLoss()
      >>> model.compile(optimizer="adam", loss=loss)
      >>> monitor = tfr_smooth.training.SmoothnessMonitor(dataset, loss)
      >>> sorted(model.fit(dataset, epochs=1, verbose=0, callbacks=[monitor]).history)
      ['loss', 'smooth_gap', 'vanishing_share']
    """

    def __init__(self, dataset: Iterable[Any], loss: MetricLoss) -> None:
        super().__init__()
        self._dataset = dataset
        self._loss = _arguments.instance("loss", loss, MetricLoss)
        self._measure: Callable[[Iterable[Any]], dict[str, float]] | None = None

    def set_model(self, model: tf.keras.Model) -> None:
        """Called by Keras before training."""
        super().set_model(model)
        self._measure = _measurement(model, self._loss, self._loss.ranking)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: measures the model."""
        assert self._measure is not None
        figures = self._measure(self._dataset)
        if logs is not None:
            logs.update(smooth_gap=figures["gap"], vanishing_share=figures["vanishing_share"])


def _temperature_name(ranking: Ranking, name: str | None) -> str:
    """Returns the name, or that of the temperature of a ranking of the registry."""
    known = [entry.temperature for entry in registry.RANKINGS.values() if entry.ranking is type(ranking)]
    name = known[0] if name is None and known else name
    names = [field.name for field in dataclasses.fields(ranking)] if dataclasses.is_dataclass(ranking) else [""]
    return registry.check_name("hyperparameter", name, names)


def _measurement(
    model: Callable[..., tf.Tensor], loss: MetricLoss, ranking: Ranking
) -> Callable[..., dict[str, float]]:
    """Returns a function from a dataset to the figures of `Smoothness`, but for the value."""
    metric, is_ragged = loss.metric, loss.get_config()["ragged"]
    score = functools.partial(model, training=False) if isinstance(model, tf.keras.Model) else model

    @tf.function(reduce_retracing=True, autograph=False)
    def of_lists(batch_inputs: Any, labels: tf.Tensor) -> tf.Tensor:
        """Returns [4, lists]: smooth, exact and best value, and the norm of the gradient."""
        batch = inputs.clean(*inputs.to_dense(labels, score(batch_inputs), is_ragged))
        relevance = metric.relevance(batch.labels)
        with tf.GradientTape() as tape:
            tape.watch(batch.scores)
            smooth = metric.compute(relevance, batch.scores, batch.mask, ranking)
        norm = tf.norm(tape.gradient(smooth, batch.scores, unconnected_gradients="zero"), axis=1)
        exact, best = (
            metric.compute(relevance, scores, batch.mask, ExactRanking()) for scores in (batch.scores, relevance)
        )
        figures = tf.stack([batch.validity * smooth, batch.validity * exact, best, norm])
        # A list with NaN counts, so that it shows.
        counts = tf.logical_or(metric.has_relevant(batch.labels, batch.mask), tf.math.is_nan(batch.validity))
        return tf.boolean_mask(figures, counts, axis=1)

    return lambda dataset: _figures(*np.concatenate([of_lists(*batch).numpy() for batch in dataset], axis=1))


def _figures(smooth: np.ndarray, exact: np.ndarray, best: np.ndarray, norm: np.ndarray) -> dict[str, float]:
    """Returns the figures of `Smoothness`, but for the value, from those of the lists."""
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
    """Returns the rank of each value, and the mean rank of equal ones."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
