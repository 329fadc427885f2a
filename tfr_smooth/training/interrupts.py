"""Ctrl-C between the steps of a training run."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


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
