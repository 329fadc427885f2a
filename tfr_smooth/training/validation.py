"""Validation after each epoch: checkpoints of the best model, early stopping, and the selection of an epoch."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _files
from tfr_smooth.data.batches import share_by_data
from tfr_smooth.training import strategies

MODES = ("max", "min", "last")


class Validation(tf.keras.callbacks.Callback):
    """Computes validation metrics after each epoch, saves the best model, and optionally stops early.

    The metrics are added to the epoch's logs as `val_NAME`, so the progress bar, the history and later callbacks
    receive them; pass this callback to `fit` before those. After training, `best_epoch` (counted from 1; ties go to the
    earlier epoch) and `best_value` describe the best epoch, `best_weights` are the model's weights after it (None
    without `path` if that was before the run resumed), and `history` has the logs of all epochs.

    Args:
      metrics_fn: A function from the model to its metrics by name, such as {"ndcg": 0.5}; called after each epoch.
      monitor: The name of the metric that determines the best epoch. NaN is never best.
      mode: "max" if higher is better, "min" if lower is better, "last" if the last epoch is the best.
      path: The file of the best model, which must end in ".keras". None saves nothing.
      patience: The number of epochs without improvement, >= 1, after which training stops. None never stops early.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> dataset = tf.data.Dataset.from_tensors((tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1])))
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> model.compile(optimizer="adam", loss=tfr_smooth.losses.SmoothINDCGLoss())
      >>> validation = tfr_smooth.training.Validation(lambda model: {"ndcg": 0.5}, monitor="ndcg", patience=2)
      >>> _ = model.fit(dataset, epochs=5, verbose=0, callbacks=[validation])
      >>> validation.best_epoch, validation.history["val_ndcg"]
      (1, [0.5, 0.5, 0.5])
    """

    _of_state: tuple[str, ...] = ("best_epoch", "best_value", "stopped", "history")  # that resuming needs

    def __init__(
        self,
        metrics_fn: Callable[[tf.keras.Model], Mapping[str, float]],
        *,
        monitor: str,
        mode: str = "max",
        path: str | os.PathLike[str] | None = None,
        patience: int | None = None,
    ) -> None:
        super().__init__()
        if path is not None and not os.fspath(path).endswith(".keras"):
            raise ValueError(f"`path` must end in '.keras', got {os.fspath(path)!r}.")
        self._metrics_fn = metrics_fn
        self._monitor = "val_" + monitor
        self._mode = _arguments.choice("mode", mode, MODES)
        self._path = None if path is None else os.fspath(path)
        self._patience = None if patience is None else _arguments.integer("patience", patience, least=1)
        self.best_epoch: int | None = None
        self.best_value: float | None = None
        self.best_weights: list[np.ndarray] | None = None
        self.stopped = False
        self.history: dict[str, list[float]] = {}

    def __str__(self) -> str:
        """Returns which epoch is used."""
        last = len(next(iter(self.history.values()), ()))
        more = "; with more epochs, it may be better" if self._mode != "last" and 1 < last == self.best_epoch else ""
        return f"Epoch {self.best_epoch or last} of {last} is used{more}"

    def evaluate(self) -> dict[str, float]:
        """Evaluates the current model.

        Returns:
          Metric name to value.
        """
        return dict(self._metrics_fn(self.model))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: evaluates the model, saves it if it is the best, and stops early."""
        logs = {} if logs is None else logs
        logs.update({f"val_{name}": value for name, value in self.evaluate().items()})
        for name, value in logs.items():
            self.history.setdefault(name, []).append(float(value))
        value = logs[self._monitor]
        if self._is_better(value):
            self.best_epoch, self.best_value, self.best_weights = epoch + 1, value, self.model.get_weights()
            if self._path is not None:
                self._save(self._path)
        if self._patience is not None and epoch + 1 - (self.best_epoch or 0) >= self._patience:
            self.stopped = True
            self.model.stop_training = True

    def _is_better(self, value: float) -> bool:
        if self._mode == "last" or self.best_value is None:
            return self._mode == "last" or value == value
        return value > self.best_value if self._mode == "max" else value < self.best_value

    def _save(self, path: str) -> None:
        with strategies.path_to_save(self.model.distribute_strategy, path) as own_path:
            os.makedirs(os.path.dirname(os.path.abspath(own_path)), exist_ok=True)
            with _files.replacing(own_path) as unfinished:
                self.model.save(os.fspath(unfinished))

    def get_state(self) -> dict[str, Any]:
        """Returns the state that a resumed training run needs.

        Returns:
          JSON-serializable values.
        """
        return {name: getattr(self, name) for name in self._of_state}

    def set_state(self, state: dict[str, Any], model: tf.keras.Model) -> None:
        """Restores the state of an earlier run.

        Args:
          state: The result of `get_state`.
          model: A model whose weights may change: the best ones are read from `path`.

        Raises:
          ValueError: If the file of the best model is missing or damaged.
        """
        self.__dict__.update({name: state[name] for name in self._of_state})
        if self._path is None or self.best_epoch is None:
            return
        try:
            model.load_weights(self._path)
        except Exception as error:  # Each damage raises another type.
            raise ValueError(
                f"{self._path} must be the model of epoch {self.best_epoch}, the best one, but it is missing or "
                f"damaged: {' '.join(str(error).split())}. Remove the checkpoints to train from the start."
            ) from error
        self.best_weights = model.get_weights()

    def restore_best(self, model: tf.keras.Model) -> None:
        """Sets the weights of a model to those of the best epoch, if there is one.

        Args:
          model: The trained model.
        """
        if self.best_weights is not None:
            model.set_weights(self.best_weights)


def selecting(
    params: Mapping[str, Any], unselected: str, value: Callable[[tf.keras.Model, str], float], folder: Path | None
) -> Validation:
    """Returns the validation of an estimator by one measure.

    Args:
      params: The arguments of the estimator, with `select_by` and `patience`.
      unselected: The measure to show if `select_by` is "last".
      value: A function from the model and the name of the measure to its value.
      folder: The directory of `best.keras`, or None.
    """
    measure, mode = (unselected, "last") if params["select_by"] == "last" else (params["select_by"], "max")
    options: dict[str, Any] = {"mode": mode, "patience": params["patience"], "path": folder and folder / "best.keras"}
    return Validation(lambda model: {measure: value(model, measure)}, monitor=measure, **options)


class ExactValidation(Validation):
    """Evaluates exact metrics on a validation set after each epoch, saves the best model, and optionally stops early.

    Each list has the same weight, whatever the batches are, or the weight in the dataset. Logs, `best_epoch`,
    `best_value` and `history` are as in `Validation`.

    Under a `tf.distribute` strategy, each replica scores its shard of a batch, and each worker computes the metrics
    over all lists, so all workers have the same values as training on one device. With multiple workers, the chief
    writes.

    Args:
      dataset: A finite dataset of (inputs, labels) or (inputs, labels, weights), such as from `data.Lists.batches`.
      metrics: Metrics to compute, such as `metrics.NDCGMetric()`. Do not use them elsewhere.
      monitor: The name of the metric that determines the best epoch. None uses the first metric. NaN is never best.
      mode: "max" if higher is better, "min" if lower is better, "last" if the last epoch is the best.
      path: The file of the best model, which must end in ".keras". None saves nothing.
      patience: The number of epochs without improvement, >= 1, after which training stops. None never stops early.

    Raises:
      ValueError: If an argument is invalid or the dataset repeats forever.

    Time per epoch: one forward pass over the dataset. Memory: one batch.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> features, labels = tf.random.normal([8, 5, 3]), tf.tile([[2.0, 1.0, 0.0, 0.0, -1.0]], [8, 1])
      >>> dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(4)
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> model.compile(optimizer="adam", loss=tfr_smooth.losses.SmoothINDCGLoss())
      >>> validation = tfr_smooth.training.ExactValidation(dataset, [tfr_smooth.metrics.NDCGMetric()], patience=2)
      >>> history = model.fit(dataset, epochs=2, verbose=0, callbacks=[validation])
      >>> sorted(history.history), len(validation.history["val_ndcg"])
      (['loss', 'val_ndcg'], 2)
    """

    _of_lists: Any = None  # the metric whose values of lists are kept, or None
    of_last: list[list[float]] = []

    def __init__(
        self,
        dataset: tf.data.Dataset,
        metrics: Sequence[tf.keras.metrics.Metric],
        *,
        monitor: str | None = None,
        mode: str = "max",
        path: str | os.PathLike[str] | None = None,
        patience: int | None = None,
    ) -> None:
        if not metrics:
            raise ValueError("`metrics` must name at least one metric, got none.")
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise ValueError("`dataset` must be finite, got one that repeats forever.")
        names = [metric.name for metric in metrics]
        best_by = _arguments.choice("monitor", monitor or names[0], names)
        super().__init__(self._exact, monitor=best_by, mode=mode, path=path, patience=patience)
        self._dataset = dataset
        self._metrics = list(metrics)
        self._traced_for: tf.keras.Model | None = None

    def set_model(self, model: tf.keras.Model) -> None:
        """Called by Keras before training."""
        super().set_model(model)
        strategy = model.distribute_strategy
        ragged = any(isinstance(spec, tf.RaggedTensorSpec) for spec in tf.nest.flatten(self._dataset.element_spec))
        # Ragged tensors cannot be gathered: each process then scores all lists.
        self._shared = strategy.num_replicas_in_sync > 1 and not ragged
        self._batches = self._dataset
        if self._shared:
            self._batches = strategy.experimental_distribute_dataset(share_by_data(self._dataset))
        if self._traced_for is not model:  # one trace for all trainings of a model
            self._traced_for = model
            self._traced = _compiled.traced(self._step, input_signature=self._batches.element_spec)

    def _exact(self, model: tf.keras.Model) -> dict[str, float]:
        for metric in self._metrics:
            metric.reset_state()
        self.of_last = np.concatenate([self._traced(*batch) for batch in self._batches], axis=1).tolist()
        return {metric.name: float(metric.result()) for metric in self._metrics}

    def _step(self, inputs: Any, *targets: tf.Tensor) -> tf.Tensor:
        """Adds a batch to the metrics, and returns the weights and the values of its lists, [2, lists]."""
        model, strategy = self.model, self.model.distribute_strategy
        if self._shared:
            scores = strategy.run(lambda share: model(share, training=False), args=(inputs,))
            targets = tuple(strategy.gather(target, axis=0) for target in targets)
            scores = strategy.gather(scores, axis=0)
        else:
            scores = model(inputs, training=False)
        labels, *weights = targets
        for metric in self._metrics:
            metric.update_state(labels, scores, *weights)
        if self._of_lists is None:
            return tf.zeros([2, 0])
        return tf.stack(self._of_lists.by_list(labels, scores, *weights))


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
        self._of_lists = next(metric for metric in metrics if metric.name == monitor)
        self.of_best: list[list[float]] = []

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: evaluates the model, saves it if it is the best, and stops early."""
        super().on_epoch_end(epoch, logs)
        if self.best_epoch == epoch + 1:
            self.of_best = self.of_last

    def restore_best(self, model: tf.keras.Model) -> None:
        """Sets the weights of the trained model to those after the selected epoch."""
        values = self.history[self._monitor]
        if self.best_epoch is None or is_clearly_better(self.of_best[1], self.of_last[1], self.of_last[0]):
            super().restore_best(model)
        elif self.best_epoch < len(values):
            self.best_epoch, self.best_value, self.best_weights = len(values), values[-1], model.get_weights()
            if self._path is not None:
                self.set_model(model)  # Keras does not, if there was no epoch left to train.
                self._save(self._path)

    def __str__(self) -> str:
        """Returns the selected epoch, and why."""
        values, name = self.history[self._monitor], self._of_lists.name
        if self._mode == "last":
            return super().__str__()
        if self.best_epoch in (None, len(values)):
            return f"Epoch {len(values)} is used: {name} {values[-1]:.4f}, and no earlier one is clearly better"
        last = f"{values[-1]:.4f} after epoch {len(values)}"
        return f"Epoch {self.best_epoch} is used: {name} {self.best_value:.4f}, but {last}"


def is_clearly_better(
    values: npt.ArrayLike, others: npt.ArrayLike, weights: npt.ArrayLike, errors: float = 2.0
) -> bool:
    """Returns whether a mean is clearly higher than another: the table of results.md, "The number of epochs".

    Args:
      values: A metric by query.
      others: The same of the other model.
      weights: The weights of the queries, >= 0.
      errors: By more than how many standard errors of the paired difference it must be higher.
    """
    better, shares = np.subtract(values, others), np.divide(weights, max(np.sum(weights), np.finfo(float).tiny))
    mean, count = (shares * better).sum(), np.count_nonzero(shares)
    squares = np.square(shares * (better - mean)).sum()
    return bool(count > 1 and mean > errors * math.sqrt(squares * count / (count - 1)))
