"""The selection of an epoch by validation queries, of which noise does not shorten a training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.training.validation import ExactValidation

# Standard errors by which an earlier epoch must be better than the last one: the table of results.md, "The number of
# epochs".
_ERRORS = 2.0


class SelectedEpoch(ExactValidation):
    r"""Selects the last epoch, unless an earlier one is clearly better on the validation queries.

    With the mean $m_e$ of a metric after each epoch e, the best epoch b, and the last epoch l, whose learning rate is
    the lowest, l is selected unless $m_b - m_l$ is more than two standard errors of this difference over the queries.
    So noise does not shorten a training.

    Args:
      dataset: The validation queries.
      metrics: The metrics.
      monitor: The name of the one that selects.
      **options: Options of `ExactValidation`.

    Attributes:
      of_best: The weights and the values of the metric of the queries after the best epoch so far.
      of_last: The same after the last epoch.
    """

    _of_state = (*ExactValidation._of_state, "of_best", "of_last")

    def __init__(
        self, dataset: tf.data.Dataset, metrics: Sequence[tf.keras.metrics.Metric], *, monitor: str, **options: Any
    ) -> None:
        super().__init__(dataset, metrics, monitor=monitor, **options)
        self._metric = next(metric for metric in metrics if metric.name == monitor)
        self.of_best: list[list[float]] = []
        self.of_last: list[list[float]] = []

    def _exact(self, model: tf.keras.Model) -> dict[str, float]:
        assert self.evaluation is not None
        values, of_lists = self.evaluation.run(self._batches, self._shared, self._metric)
        self.of_last = of_lists.tolist()
        return values

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: evaluates the model, saves it if it is the best, and stops early."""
        super().on_epoch_end(epoch, logs)
        if self.best_epoch == epoch + 1:
            self.of_best = self.of_last

    def restore_best(self, model: tf.keras.Model) -> None:
        """Sets the weights of the trained model to those after the selected epoch."""
        values = self.history[self._monitor]
        if self.best_epoch is None or is_clearly_better(self.of_best[1], *reversed(self.of_last)):
            super().restore_best(model)
        elif self.best_epoch < len(values):
            self.best_epoch, self.best_value, self.best_weights = len(values), values[-1], model.get_weights()
            if self._path is not None:
                self.set_model(model)  # Keras does not, if there was no epoch left to train.
                self._save(self._path)

    def __str__(self) -> str:
        """Returns the selected epoch, and why."""
        values, name = self.history[self._monitor], self._metric.name
        if self.best_epoch in (None, len(values)):
            return f"Epoch {len(values)} is used: {name} {values[-1]:.4f}, and no earlier one is clearly better"
        last = f"{values[-1]:.4f} after epoch {len(values)}"
        return f"Epoch {self.best_epoch} is used: {name} {self.best_value:.4f}, but {last}"


def is_clearly_better(values: Sequence[float], others: Sequence[float], weights: Sequence[float]) -> bool:
    """Returns whether a mean is higher than another by more than two standard errors of the paired difference.

    Args:
      values: A metric by query.
      others: The same of the other model.
      weights: The weights of the queries, >= 0.
    """
    better, shares = np.subtract(values, others), np.divide(weights, max(sum(weights), np.finfo(float).tiny))
    mean, count = (shares * better).sum(), np.count_nonzero(shares)
    squares = np.square(shares * (better - mean)).sum()
    return bool(count > 1 and mean > _ERRORS * math.sqrt(squares * count / (count - 1)))
