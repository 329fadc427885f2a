"""The training of a compiled model: it resumes after an interruption and ends with the weights of the best epoch."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _files, _keras
from tfr_smooth.training import strategies
from tfr_smooth.training.resuming import ResumableTraining
from tfr_smooth.training.validation import Validation


class StopOnNaN(tf.keras.callbacks.Callback):
    """Ends a training whose loss becomes NaN with an error that names the step and the features that are not finite.

    `train` uses it, and so do the estimators. Without it, all weights become NaN, and the training goes on.

    Args:
      dataset: The training data, finite, as passed to `fit`: the error names its features that have missing or infinite
        values in real documents. None names none.
      names: The names of the features. None calls them by their number, from 1.

    Raises:
      ValueError: In `fit`, at the first step after which the mean loss of the epoch is NaN.

    Time O(1) per step. Waits for the loss of each step, which costs less than a progress bar.

    Example:
      >>> import tfr_smooth
      >>> features, labels = tf.constant([[[0.5], [float("nan")]]]), tf.constant([[1.0, 0.0]])
      >>> dataset = tf.data.Dataset.from_tensors((features, labels))
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[])
      >>> model.compile(optimizer="sgd", loss="softmax")
      >>> callback = tfr_smooth.training.StopOnNaN(dataset)
      >>> _ = model.fit(dataset, callbacks=[callback], shuffle=False, verbose=0)
      Traceback (most recent call last):
      ...
      ValueError: The loss is NaN since step 1 of epoch 1. Features with missing or infinite values: 1.
    """

    def __init__(self, dataset: tf.data.Dataset | None = None, *, names: Sequence[str] | None = None) -> None:
        super().__init__()
        self.dataset, self.names = dataset, names
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Takes the number of the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Checks the loss."""
        if not math.isnan(float((logs or {}).get("loss", 0.0))):
            return
        message = f"The loss is NaN since step {batch + 1} of epoch {self._epoch + 1}."
        if wrong := self._not_finite():
            raise ValueError(f"{message} Features with missing or infinite values: {', '.join(wrong)}.")
        raise ValueError(f"{message} The features are finite: try a lower learning rate, or check labels and weights.")

    def _not_finite(self) -> list[str]:
        """Returns the names of the features that are not finite in real documents."""
        wrong: Any = False
        for element in self.dataset or ():
            inputs = element[0] if isinstance(element, (tuple, list)) else element
            inputs = inputs if isinstance(inputs, Mapping) else {"features": inputs}
            if "features" not in inputs:
                return []
            mask = inputs.get("mask")
            mask = np.ones(inputs["features"].shape[:-1], bool) if mask is None else np.asarray(mask, bool)
            wrong = wrong | ~np.isfinite(np.asarray(inputs["features"])[mask]).all(axis=0)
        places = np.flatnonzero(wrong)
        return [str(place + 1) if self.names is None else repr(self.names[place]) for place in places.tolist()]


class _Progress(tf.keras.callbacks.ProgbarLogger):
    """Prints a title, and after each epoch its values and how long the others will take, in place of Keras's lines."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def set_params(self, params: Mapping[str, Any]) -> None:
        super().set_params(params)
        self._steps = params["steps"]

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        print(self._title, flush=True)
        self._printed = time.monotonic()
        self._times = [self._printed]  # the start and the ends of epochs

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        if sys.stdout.isatty() and time.monotonic() > self._printed + 1.0:
            self._printed, of = time.monotonic(), f" of {self._steps}" if self._steps else ""
            # The next line starts in its place, which the code erases.
            print(f"Epoch {self._epoch + 1} of {self.epochs}: batch {batch + 1}{of}\033[K", end="\r", flush=True)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._times.append(time.monotonic())
        times = self._times[len(self._times) > 2 :]  # The first epoch also compiles.
        left = (times[-1] - times[0]) / (len(times) - 1) * (self.epochs - epoch - 1)
        numbers = {name: float(value) for name, value in (logs or {}).items()}
        values = ", ".join(f"{name} {each:{'.4f' if abs(each) >= 0.001 else '.3g'}}" for name, each in numbers.items())
        rest = f"; about {left:.0f} s left" if left < 100.0 else f"; about {left / 60.0:.0f} min left"
        erase = "\033[K" if sys.stdout.isatty() else ""
        print(f"Epoch {epoch + 1} of {self.epochs}: {values}{rest if left >= 1.0 else ''}{erase}", flush=True)


@contextlib.contextmanager
def _without_hints_at_retracing() -> Iterator[None]:
    """Hides TensorFlow's warnings that several models each have a step of their own."""
    logger = tf.get_logger()

    def is_other(record: logging.LogRecord) -> bool:
        return "triggered tf.function retracing" not in record.getMessage()

    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def train(
    model: tf.keras.Model,
    dataset_fn: Callable[[int], tf.data.Dataset],
    *,
    epochs: int,
    steps_per_epoch: int | None = None,
    validation: Validation | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    prepare: Callable[[], object] | None = None,
    callbacks: Sequence[tf.keras.callbacks.Callback] = (),
    feature_names: Sequence[str] | None = None,
    verbose: bool = False,
    title: str = "Training",
) -> dict[str, list[float]]:
    """Trains a compiled and built model with `fit`.

    Args:
      model: The model. It ends with the weights of the best epoch, or of the last epoch without validation.
      dataset_fn: A function from the number of finished epochs to the dataset of the remaining ones. An order that
        depends only on the epoch makes a resumed training run equal to an uninterrupted one.
      epochs: The total number of epochs, >= 1.
      steps_per_epoch: The number of batches per epoch. None if each iteration of the dataset is one epoch.
      validation: The validation after each epoch. None for no validation.
      checkpoint_dir: The directory of the checkpoints from which an interrupted training run resumes, and of `log.csv`,
        as of `ResumableTraining`. None for none.
      settings: Settings that identify the training run, as JSON values, as for `ResumableTraining`.
      prepare: Called before the first epoch unless the training run is resumed, such as to adapt the model.
      callbacks: Further callbacks, which receive the results of the validation.
      feature_names: The names of the features, for errors. None calls them by their number, from 1.
      verbose: Whether to print a line per epoch, with the time that the others will take. The last line says which
        epoch is used, and how long the training took.
      title: The first of these lines, such as which of several trainings this is.

    Returns:
      The training loss and the validation metrics of all epochs, by name.

    Raises:
      ValueError: If the checkpoints are those of other settings or of more epochs, another process trains there, or the
        loss becomes NaN, as `StopOnNaN` says.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> dataset = tf.data.Dataset.from_tensors((tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1])))
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> model.compile(optimizer="adam", loss="smoothi_ndcg")
      >>> model.build([None, None, 2])
      >>> validation = tfr_smooth.training.ExactValidation(dataset, [tfr_smooth.metrics.NDCGMetric()])
      >>> history = tfr_smooth.training.train(model, lambda finished: dataset, epochs=3, validation=validation)
      >>> len(history["val_ndcg"])
      3
    """
    resumable, history, finished, start = None, {}, 0, time.monotonic()
    used = [*([] if validation is None else [validation]), *callbacks]
    with contextlib.ExitStack() as stack:
        if checkpoint_dir is not None:
            is_chief = strategies.is_chief(model.distribute_strategy)
            stack.enter_context(_files.locked(checkpoint_dir) if is_chief else contextlib.nullcontext())
            resumable = ResumableTraining(checkpoint_dir, validation=validation, settings=dict(settings or {}))
            finished = resumable.restore(model)
            used.append(resumable)
        if finished > epochs:
            raise ValueError(f"`epochs` must be >= the {finished} finished ones in {checkpoint_dir}, got {epochs}.")
        if not finished and prepare is not None:
            prepare()
        if _keras.IS_KERAS_3:  # which traces a step twice if it creates variables
            with model.distribute_strategy.scope():
                model.optimizer.build(model.trainable_variables)
        if finished < epochs and not (validation is not None and validation.stopped):
            if steps_per_epoch is None:  # Keras does not know the size of all datasets.
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "Your input ran out of data; interrupting training")
            stack.enter_context(_without_hints_at_retracing())
            dataset = dataset_fn(finished)
            one_epoch = dataset if steps_per_epoch is None else dataset.take(steps_per_epoch)
            history = model.fit(
                dataset,
                initial_epoch=finished,
                epochs=epochs,
                steps_per_epoch=steps_per_epoch,
                shuffle=False,
                verbose=2 if verbose else 0,
                callbacks=[StopOnNaN(one_epoch, names=feature_names), *used, *([_Progress(title)] if verbose else [])],
            ).history
    if resumable is not None:
        history = resumable.history
    line = f"Epoch {len(history.get('loss', ()))} is used"
    if validation is not None:
        validation.restore_best(model)
        history, line = validation.history, f"{validation}{', stopped early' if validation.stopped else ''}"
    if verbose:
        resumed = f" after {finished} finished epochs in {checkpoint_dir}" if finished else ""
        print(f"{line}; the training took {time.monotonic() - start:.0f} s{resumed}", flush=True)
    return dict(history)
