"""Ctrl-C between the steps of a training run."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Ctrl-C takes effect where the yielded function is called, or at the end: TensorFlow may lose the exception.

    A second Ctrl-C takes effect at once.

    Yields:
      A function that raises `KeyboardInterrupt` after Ctrl-C.
    """
    previous, pending = signal.getsignal(signal.SIGINT), False
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield lambda: None
        return

    def handle(number: int, frame: Any) -> None:
        nonlocal pending
        if pending:
            previous(number, frame)
        pending = True

    def check() -> None:
        if pending:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield check
        check()
    finally:
        signal.signal(signal.SIGINT, previous)


class InterruptCheck(tf.keras.callbacks.Callback):
    """Calls a function after each step of a training run.

    Args:
      check: The function.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        super().__init__()
        self._supports_tf_logs = True  # as in `ProgressLog`
        self._check = check

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Called by Keras."""
        self._check()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Called by Keras."""
        self._check()
