"""Keras callbacks with a state that survives an interruption."""

from __future__ import annotations

import contextlib
import glob
import os
from typing import Any

import tensorflow as tf


class _Surviving:
    """Mixin for callbacks: saves and restores the attributes in `STATE` with the training."""

    STATE: tuple[str, ...] = ()
    _restored: dict[str, Any] | None = None

    def get_state(self) -> dict[str, Any]:
        """Returns the attributes, as JSON values."""
        values = {name: getattr(self, name) for name in self.STATE}
        # Keras stores some as NumPy scalars.
        return {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the attributes that `get_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)
        self._restored = state

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Restores the state, which the callbacks of Keras reset here."""
        super().on_train_begin(logs)  # type: ignore[misc]
        if self._restored is not None:
            self.set_state(self._restored)


class BestCheckpoint(_Surviving, tf.keras.callbacks.ModelCheckpoint):
    """Saves the weights of each epoch that is the best so far, and removes checkpoints that are no longer needed.

    Args:
      directory: The folder of the checkpoints `ckpt-0001`, `ckpt-0002` and so on.
      monitor: The name in the logs that selects the best epoch. NaN is never best.
      mode: "max" if higher is better, "min" if lower is better.
    """

    STATE = ("best", "best_epoch")

    def __init__(self, directory: str, monitor: str, mode: str) -> None:
        super().__init__(
            os.path.join(directory, "ckpt-{epoch:04d}"),
            monitor=monitor,
            mode=mode,
            save_weights_only=True,
            save_best_only=True,
        )
        # Counts from 0.
        self.best_epoch: int | None = None

    def path(self, epoch: int) -> str:
        """Returns the prefix of an epoch's checkpoint."""
        return self.filepath.format(epoch=epoch + 1)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Saves the weights if the epoch is the best so far."""
        before = self.best
        super().on_epoch_end(epoch, logs)
        if self.best != before:
            # Keep the previous best: a training that is interrupted now resumes with it.
            kept = {self.path(e) for e in (epoch, self.best_epoch) if e is not None}
            self.best_epoch = epoch
            for index in glob.glob(glob.escape(os.path.dirname(self.filepath)) + "/ckpt-*.index"):
                if index.removesuffix(".index") not in kept:
                    for file in glob.glob(glob.escape(index.removesuffix(".index")) + ".*"):
                        with contextlib.suppress(FileNotFoundError):  # Another worker may have removed it.
                            os.remove(file)


class EarlyStopping(_Surviving, tf.keras.callbacks.EarlyStopping):
    """Keras's `EarlyStopping` with patience that survives an interruption."""

    STATE = ("best", "best_epoch", "wait", "stopped_epoch")


class ReduceLROnPlateau(_Surviving, tf.keras.callbacks.ReduceLROnPlateau):
    """Keras's `ReduceLROnPlateau` with patience that survives an interruption."""

    STATE = ("best", "wait", "cooldown_counter")


class States:
    """The combined state of several callbacks, for `training.ResumableTraining`.

    Args:
      callbacks: Any callbacks; those without a state to save are ignored.
    """

    def __init__(self, callbacks: list[tf.keras.callbacks.Callback]) -> None:
        self._callbacks = [callback for callback in callbacks if isinstance(callback, _Surviving)]

    def get_state(self) -> dict[str, Any]:
        """Returns the states by class name."""
        return {type(callback).__name__: callback.get_state() for callback in self._callbacks}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the states that `get_state` returned."""
        for callback in self._callbacks:
            if type(callback).__name__ in state:
                callback.set_state(state[type(callback).__name__])
