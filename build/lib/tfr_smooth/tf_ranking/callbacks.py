"""Keras's callbacks, whose state survives an interruption."""

from __future__ import annotations

import contextlib
import glob
import os
from typing import Any

import tensorflow as tf


class _Surviving:
    """Mixed into a callback: some of its attributes are part of the state of the training."""

    STATE: tuple[str, ...] = ()
    _restored: dict[str, Any] | None = None

    def get_state(self) -> dict[str, Any]:
        """Returns the attributes, as JSON has them."""
        values = {name: getattr(self, name) for name in self.STATE}
        # Keras keeps some as NumPy's numbers.
        return {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resumes from what `get_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)
        self._restored = state

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras, whose callbacks forget everything here."""
        super().on_train_begin(logs)  # type: ignore[misc]
        if self._restored is not None:
            self.set_state(self._restored)


class BestCheckpoint(_Surviving, tf.keras.callbacks.ModelCheckpoint):
    """Saves the weights of each epoch that is the best so far, and removes those of epochs that no longer matter.

    Args:
      directory: Where `ckpt-0001` and so on are written.
      monitor: What selects the best epoch: a name in the logs. NaN is never best.
      mode: "max" if more is better, "min" if less is.
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
        """Called by Keras."""
        before = self.best
        super().on_epoch_end(epoch, logs)
        if self.best != before:
            # The one before stays: a training that is interrupted now resumes with it.
            kept = {self.path(e) for e in (epoch, self.best_epoch) if e is not None}
            self.best_epoch = epoch
            for index in glob.glob(glob.escape(os.path.dirname(self.filepath)) + "/ckpt-*.index"):
                if index.removesuffix(".index") not in kept:
                    for file in glob.glob(glob.escape(index.removesuffix(".index")) + ".*"):
                        with contextlib.suppress(FileNotFoundError):  # Several workers do the same.
                            os.remove(file)


class EarlyStopping(_Surviving, tf.keras.callbacks.EarlyStopping):
    """Keras's `EarlyStopping`, whose patience survives an interruption."""

    STATE = ("best", "best_epoch", "wait", "stopped_epoch")


class ReduceLROnPlateau(_Surviving, tf.keras.callbacks.ReduceLROnPlateau):
    """Keras's `ReduceLROnPlateau`, whose patience survives an interruption."""

    STATE = ("best", "wait", "cooldown_counter")


class States:
    """The states of several callbacks as one, for `training.ResumableTraining`.

    Args:
      callbacks: Any callbacks; those that have no state to keep are left out.
    """

    def __init__(self, callbacks: list[tf.keras.callbacks.Callback]) -> None:
        self._callbacks = [callback for callback in callbacks if isinstance(callback, _Surviving)]

    def get_state(self) -> dict[str, Any]:
        """Returns the states by the names of the classes."""
        return {type(callback).__name__: callback.get_state() for callback in self._callbacks}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resumes from what `get_state` returned."""
        for callback in self._callbacks:
            if type(callback).__name__ in state:
                callback.set_state(state[type(callback).__name__])
