"""Checkpoints of the whole training state, to resume training after an interruption."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _files, _keras
from tfr_smooth.training import strategies
from tfr_smooth.training.validation import Validation

_PROGRESS = "progress/.ATTRIBUTES/py_state"  # the name of a `_Json` in a checkpoint


class _Json(tf.train.experimental.PythonState):
    """Python values in a checkpoint, as JSON. Not a variable, which would be one of the strategy."""

    def __init__(self) -> None:
        self.value: Any = None

    def serialize(self) -> str:
        return json.dumps(self.value)

    def deserialize(self, string_value: str | bytes) -> None:
        self.value = json.loads(string_value)


class ResumableTraining(tf.keras.callbacks.Callback):
    """Saves the whole training state after each epoch, and restores it.

    The state is the model, its optimizer, the number of finished epochs and the state of the validation callback, in
    one `tf.train.Checkpoint`, so they are always consistent. An interrupted epoch is repeated from its start. With data
    whose order depends only on the epoch (`data.Lists.batches` with `seed` and `first_epoch`), a resumed training run
    ends with the same result as an uninterrupted one, except for dropout with Keras 2, whose state is not saved. Pass
    this callback to `fit` after the validation callback.

    With multiple workers, the chief writes the checkpoints and all workers restore them. After a failure, restart all
    workers.

    If the last checkpoint is damaged, the one before is restored, with a warning.

    Args:
      directory: Directory of the checkpoints and of `log.csv`, a table of the logs of all epochs, from 1 on; created if
        missing. Multiple workers need a shared directory.
      validation: The validation callback to save and restore. None saves no validation state.
      settings: Settings that identify the training run, as JSON values, such as the learning rate. Restoring with
        different settings is an error. None stores no settings.

    Example:
      >>> import tempfile
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> dataset = tf.data.Dataset.from_tensors((tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1])))
      >>> directory = tempfile.mkdtemp()
      >>> for epochs in (1, 3):  # the second run resumes after the first epoch
      ...     model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      ...     model.compile(optimizer="adam", loss=tfr_smooth.losses.SmoothINDCGLoss())
      ...     model.build([None, None, 2])
      ...     resumable = tfr_smooth.training.ResumableTraining(directory)
      ...     start = resumable.restore(model)
      ...     _ = model.fit(dataset, initial_epoch=start, epochs=epochs, verbose=0, callbacks=[resumable])
      ...     print(start)
      0
      1
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        validation: Validation | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._directory = os.fspath(directory)
        self._validation = validation
        self._settings = json.loads(json.dumps(settings or {}))
        self._progress = _Json()
        self.history: dict[str, list[float]] = {}
        self._checkpoint: tf.train.Checkpoint | None = None
        self._strategy: tf.distribute.Strategy | None = None

    def restore(self, model: tf.keras.Model) -> int:
        """Restores the last checkpoint into a built and compiled model.

        Args:
          model: The model, with the same architecture and optimizer as in the interrupted run.

        Returns:
          The number of finished epochs, for `initial_epoch` of `fit`. 0 if there is no checkpoint.

        Raises:
          ValueError: If the checkpoint has different settings, the workers found different checkpoints, or the file of
            the best model is missing or damaged.
        """
        self._strategy = model.distribute_strategy
        with self._strategy.scope():
            model.optimizer.build(model.trainable_variables)
        # Lists of variables: TensorFlow does not track layers in a list of a Keras 3 model.
        self._checkpoint = tf.train.Checkpoint(
            model=_keras.tensorflow_variables(model.variables),
            optimizer=_keras.tensorflow_variables(model.optimizer.variables),
            progress=self._progress,
        )
        found = {epoch for epoch, name in _checkpoints(self._directory) if name.endswith(".index")}
        epochs = sorted(found, reverse=True)
        # This also prevents the chief from writing before all workers have found the checkpoint.
        last = strategies.number_by_worker(self._strategy, max(epochs, default=0))
        if len(set(last)) > 1:
            raise ValueError(f"`directory` must be the same for all workers, got checkpoints of epochs {last}.")
        for epoch in epochs:
            try:
                self._restore(epoch, model)
            except (tf.errors.OpError, RuntimeError, LookupError) as error:
                path, reason = _path(self._directory, epoch), " ".join(str(error).split())
                warnings.warn(f"{path} is damaged and is not used: {reason}", stacklevel=2)
            else:
                if strategies.is_chief(self._strategy):  # the process may have been killed after the checkpoint
                    self._complete(self._directory, epoch)
                return epoch
        if epochs:
            raise ValueError(f"`directory` must have a checkpoint that is not damaged, got {self._directory}.")
        return 0

    def _restore(self, epoch: int, model: tf.keras.Model) -> None:
        assert self._checkpoint is not None
        with _files.readable(self._directory) as folder:
            path = _path(folder, epoch)
            progress = json.loads(tf.train.load_checkpoint(path).get_tensor(_PROGRESS))
            self._check(progress["settings"])
            if self._validation is not None:
                self._validation.set_state(progress["validation"], model)
            self._checkpoint.read(path).assert_consumed()
        self.history = progress["history"]

    def _check(self, settings: dict[str, Any]) -> None:
        """Checks that a checkpoint is one of this training, before anything is restored."""
        differences = ", ".join(
            f"{name}={self._settings.get(name)!r} (was {settings.get(name)!r})"
            for name in sorted(set(settings) | set(self._settings))
            if self._settings.get(name) != settings.get(name)
        )
        if differences:
            expected = f"match the training in {self._directory}"
            raise ValueError(
                f"`settings` must {expected}, got {differences}. Use another directory for another training."
            )

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        if self._checkpoint is None:
            raise ValueError("`restore` must be called before `fit`: it returns the epoch to start from.")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: saves the state of the training."""
        assert self._checkpoint is not None and self._strategy is not None
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(float(value))
        state = None if self._validation is None else self._validation.get_state()
        self._progress.value = {"settings": self._settings, "history": self.history, "validation": state}
        with strategies.path_to_save(self._strategy, self._directory) as directory:
            self._checkpoint.write(_path(directory, epoch + 1))
            self._complete(directory, epoch + 1)

    def _complete(self, directory: str, epochs: int) -> None:
        """Does what follows a checkpoint, unless it is done: writes the log and removes older checkpoints."""
        # Not Keras's `CSVLogger`: it would repeat the rows of epochs that finished, but not in a checkpoint.
        rows = itertools.zip_longest(range(1, epochs + 1), *self.history.values(), fillvalue="")
        csv.writer(text := io.StringIO()).writerows([["epoch", *self.history], *rows])
        log = Path(directory, "log.csv")
        if not log.is_file() or log.read_bytes() != text.getvalue().encode():
            _files.write_text(log, [text.getvalue()])
        for old, name in _checkpoints(directory):
            if old < epochs - 1:  # The one before this remains, in case that this is damaged.
                tf.io.gfile.remove(os.path.join(directory, name))


def _path(folder: str, epoch: int) -> str:
    return os.path.join(folder, f"ckpt-{epoch}")


def _checkpoints(folder: str) -> list[tuple[int, str]]:
    """Returns the files of checkpoints as (epoch, name): TensorFlow's list of them may be damaged, too."""
    names = tf.io.gfile.listdir(folder) if tf.io.gfile.isdir(folder) else []
    matches = (re.fullmatch(r"ckpt-([1-9][0-9]*)\.(index|data-[0-9]+-of-[0-9]+)", name) for name in names)
    return [(int(match[1]), match[0]) for match in matches if match]
