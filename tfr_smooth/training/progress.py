"""A progress log of training: one line per epoch, and a CSV table."""

from __future__ import annotations

import csv
import io
import os
import sys
import time
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _files

_LINES = 10  # approximate number of lines per training run outside a terminal
_CLEAR = "\x1b[K"  # clears the rest of the terminal line


class ProgressLog(tf.keras.callbacks.Callback):
    """Prints the metrics of the last epoch and the remaining time, and writes a CSV table of all epochs.

    On a terminal, it updates one line, which also counts batches. Otherwise, such as in a log file, it prints a line
    for every tenth of the epochs. The remaining time is shown from the second epoch on. It also reports when the first
    step is traced and compiled, which may take a while.
    Use `verbose=0` in `fit`, and pass this callback after callbacks that add metrics.

    Args:
      path: The CSV file to write, with the columns "epoch", from 1 on, and the metrics. Its folder is created if
        missing. A resumed training run keeps the rows of earlier epochs. None writes no file.
      verbose: Whether to print.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> features, labels = tf.random.normal([8, 5, 3]), tf.tile([[2.0, 1.0, 0.0, 0.0, -1.0]], [8, 1])
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> model.compile(optimizer="adam", loss="smoothi_ndcg")
      >>> progress = tfr_smooth.training.ProgressLog()
      >>> _ = model.fit(features, labels, epochs=2, verbose=0, callbacks=[progress])  # doctest: +ELLIPSIS
      Compiling the first step ...
      Epoch 1/2: loss ..., ... s
      Epoch 2/2: loss ..., done
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, verbose: bool = True) -> None:
        super().__init__()
        self._supports_tf_logs = True  # Else Keras 2 waits for the logs of each step.
        self._path, self._verbose = path, _arguments.boolean("verbose", verbose)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self._rows: list[dict[str, Any]] | None = None
        self._durations: list[float] = []
        self._shown, self._has_compiled = 0.0, False
        self._line = ""  # the line of the last epoch, until it is printed
        self._is_terminal = self._verbose and sys.stdout.isatty()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self._epoch, self._start = epoch, time.monotonic()

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        if self._verbose and not self._has_compiled:
            self._has_compiled = True
            print("Compiling the first step ...", flush=True)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        if self._is_terminal and time.monotonic() - self._shown > 0.5:
            self._shown = time.monotonic()
            steps = self.params.get("steps")
            of_all = f" of {steps}" if steps else ""
            self._overwrite(f"{self._name()}: batch {batch + 1}{of_all}")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        values = {name: float(value) for name, value in (logs or {}).items()}
        self._durations.append(time.monotonic() - self._start)
        shown = " ".join(f"{name} {value:.4f}" for name, value in values.items())
        self._line = f"{self._name()}: {shown}, {_duration(self._durations[-1])}"
        if epoch + 1 == self.params["epochs"]:
            self._line += ", done"
        elif later := self._durations[1:]:  # The first epoch includes compilation, so it does not predict later ones.
            self._line += f", {_duration((self.params['epochs'] - epoch - 1) * sum(later) / len(later))} left"
        if self._is_terminal:
            self._overwrite(self._line)
        elif self._verbose and epoch % -(-self.params["epochs"] // _LINES) == 0:
            self._print_line()
        if self._path is not None:
            self._write({"epoch": epoch + 1, **values})

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self._print_line()

    def _print_line(self) -> None:
        if self._verbose and self._line:
            print(f"\r{self._line}{_CLEAR}" if self._is_terminal else self._line, flush=True)
        self._line = ""

    def _overwrite(self, text: str) -> None:
        print(f"\r{text}{_CLEAR}", end="", flush=True)

    def _name(self) -> str:
        return f"Epoch {self._epoch + 1}/{self.params['epochs']}"

    def _write(self, row: dict[str, Any]) -> None:
        assert self._path is not None
        if self._rows is None:
            self._rows = []
            if os.path.exists(self._path):
                with open(self._path, newline="") as file:
                    self._rows = [old for old in csv.DictReader(file) if int(old["epoch"]) < row["epoch"]]
        self._rows.append(row)
        names = list(dict.fromkeys(name for each in self._rows for name in each))
        text = io.StringIO()
        table = csv.DictWriter(text, names, lineterminator="\n")
        table.writeheader()
        table.writerows(self._rows)
        os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
        _files.write_text(self._path, [text.getvalue()])


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 1:
        return f"{int(hours)} h {int(minutes) % 60} min"
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min"
