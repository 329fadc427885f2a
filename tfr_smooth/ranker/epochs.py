"""The epoch that validation queries select, and the training queries that are held out to do so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.data import Lists
from tfr_smooth.data.labels import have_different_labels
from tfr_smooth.training.validation import Evaluation, ExactValidation

_FRACTION, _MOST, _LEAST = 0.2, 500, 30  # of the queries, and how many of them, are held out
_GROUPS = 50  # of validation queries, whose means are compared
_ERRORS = 2.0  # standard errors by which an earlier epoch must be better than the last one
_ENOUGH = 0.95  # of the queries: a training with so many need not be repeated with all of them


def hold_out(lists: Lists, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Holds out a fifth of the queries, but at most 500.

    Args:
      lists: The lists.
      seed: The seed of the held-out queries.

    Returns:
      The indices of the other queries, and of the held-out ones with documents of different labels, in random order;
      None if these are fewer than 30.
    """
    if len(lists) < _LEAST:
        return None
    rest, held = lists.split_queries(min(_FRACTION, _MOST / len(lists)), seed=seed)
    held = np.random.default_rng(seed).permutation(held[have_different_labels(lists)[held]])
    return (rest, held) if len(held) >= _LEAST else None


def is_repeated(lists: Lists, queries: np.ndarray) -> bool:
    """Returns whether a training with these queries must be repeated with all."""
    return len(queries) < _ENOUGH * len(lists)


def group_size(lists: Lists, batch_size: int) -> int:
    """Returns the number of queries of a batch of `SelectedEpoch`: there are at least 50 batches if there can be."""
    return min(batch_size, math.ceil(len(lists) / _GROUPS))


class SelectedEpoch(ExactValidation):
    r"""Selects the last epoch, unless an earlier one is clearly better on the validation queries.

    With the mean $m_e$ of a metric after each epoch e, the best epoch b, and the last epoch l, whose learning rate is
    the lowest, l is selected unless $m_b - m_l$ is more than two standard errors of this difference over the batches.
    So noise does not shorten a training.

    Args:
      dataset: The validation queries, in batches of about the same number of queries.
      metric: The metric that selects, another object than those of `evaluation`.
      evaluation: The metrics.
      **options: Options of `ExactValidation`.

    Attributes:
      by_batch: The metric by epoch and batch.
    """

    _of_state = (*ExactValidation._of_state, "by_batch")

    def __init__(
        self, dataset: tf.data.Dataset, metric: tf.keras.metrics.Metric, evaluation: Evaluation, **options: Any
    ) -> None:
        super().__init__(dataset, evaluation.metrics, monitor=metric.name, **options)
        self.evaluation = evaluation
        self._metric = metric
        self.by_batch: list[list[float]] = []

    def _exact(self, model: tf.keras.Model) -> dict[str, float]:
        assert self.evaluation is not None
        values, by_batch = self.evaluation.run(self._batches, self._shared, self._metric)
        self.by_batch.append(by_batch)
        return values

    def restore_best(self, model: tf.keras.Model) -> None:
        """Sets the weights of the trained model to those after the selected epoch."""
        values = self.history[self._monitor]
        if self.best_epoch is None or is_clearly_better(self.by_batch[self.best_epoch - 1], self.by_batch[-1]):
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


def is_clearly_better(values: Sequence[float], others: Sequence[float]) -> bool:
    """Returns whether a mean is higher than another by more than two standard errors of the paired difference.

    Args:
      values: A metric by batch.
      others: The same of the other model.
    """
    better = np.subtract(values, others)
    return len(better) > 1 and bool(better.mean() > _ERRORS * better.std(ddof=1) / math.sqrt(len(better)))
