"""The training of a compiled model: it resumes after an interruption and ends with the weights of the best epoch."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _files
from tfr_smooth.training import cluster
from tfr_smooth.training.interrupts import deferred_interrupts
from tfr_smooth.training.progress import ProgressLog
from tfr_smooth.training.resuming import ResumableTraining
from tfr_smooth.training.validation import Validation


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
    verbose: bool = False,
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
        as of `ProgressLog`. None for none.
      settings: Settings that identify the training run, as JSON values, as for `ResumableTraining`.
      prepare: Called before the first epoch unless the training run is resumed, such as to adapt the model.
      callbacks: Further callbacks, which receive the results of the validation.
      verbose: Whether to print the progress.

    Returns:
      The training loss and the validation metrics of all epochs, by name.

    Raises:
      ValueError: If the checkpoints are those of other settings or of more epochs, or another process trains there.
      KeyboardInterrupt: After Ctrl-C, at the end of the step; a second Ctrl-C interrupts the step.

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
    resumable, history = None, tf.keras.callbacks.History()
    used = [*([] if validation is None else [validation]), *callbacks]
    with contextlib.ExitStack() as stack:
        check = stack.enter_context(deferred_interrupts())
        finished, log = 0, None
        if checkpoint_dir is not None:
            if cluster.is_chief(model.distribute_strategy):
                stack.enter_context(_files.locked(checkpoint_dir))
                log = os.path.join(checkpoint_dir, "log.csv")
            resumable = ResumableTraining(checkpoint_dir, validation=validation, settings=dict(settings or {}))
            finished = resumable.restore(model)
            used.append(resumable)
        if finished > epochs:
            raise ValueError(f"`epochs` must be >= the {finished} finished ones in {checkpoint_dir}, got {epochs}.")
        if finished and verbose:
            print(f"Resuming after {finished} finished epochs in {checkpoint_dir}", flush=True)
        if not finished and prepare is not None:
            prepare()
        check()
        hooks = dict.fromkeys(("on_train_batch_end", "on_epoch_end"), lambda number, logs: check())
        interrupts = tf.keras.callbacks.LambdaCallback(**hooks)
        interrupts._supports_tf_logs = True  # as in `ProgressLog`
        if finished < epochs and not (validation is not None and validation.stopped):
            if steps_per_epoch is None:  # Keras does not know the size of all datasets.
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "Your input ran out of data; interrupting training")
            model.fit(
                dataset_fn(finished),
                initial_epoch=finished,
                epochs=epochs,
                steps_per_epoch=steps_per_epoch,
                shuffle=False,
                verbose=0,
                callbacks=[*used, history, ProgressLog(log, verbose=verbose), interrupts],
            )
    if validation is not None:
        if verbose and validation.stopped:
            last = len(validation.history["loss"])
            print(f"Stopped early after epoch {last} of {epochs}; the best one is {validation.best_epoch}", flush=True)
        validation.restore_best(model)
        return validation.history
    return dict(history.history) if resumable is None else resumable.history
