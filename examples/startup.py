"""Starts the scripts, which end with one line on Ctrl-C. They import it before TensorFlow."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import signal
import sys
import types
from collections.abc import Callable
from typing import Any

_hint = ""


def run(main: Callable[[list[str]], object], *, resume: str = "", **kwargs: Any) -> None:
    """Runs a script whose flags are absl's.

    Args:
      main: A function of the arguments that are not flags.
      resume: A sentence that says how to resume after Ctrl-C. Empty if there is nothing to resume.
      **kwargs: Arguments of `absl.app.run`.
    """
    from absl import app, logging

    global _hint
    _hint = resume
    logging.set_verbosity(logging.ERROR)
    app.run(main, **kwargs)


def tensorboard(folder: os.PathLike[str]) -> Any:
    """Returns Keras's callback, or raises an error that says how to install TensorBoard."""
    import importlib.util

    import tensorflow as tf

    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError("--tensorboard requires TensorBoard: pip install tensorboard")
    return tf.keras.callbacks.TensorBoard(folder)


def _show(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
    """Shows an error that ends the program; after Ctrl-C, ends it at once with the exit status of shells."""
    if not issubclass(kind, KeyboardInterrupt):
        return sys.__excepthook__(kind, error, traceback)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.flush()
    print(f"Interrupted. {_hint}".rstrip(), file=sys.stderr, flush=True)
    # TensorFlow's threads may take minutes to end.
    os._exit(130)


sys.path.append(str(pathlib.Path(__file__).absolute().parents[1]))  # for `import experiments`
if multiprocessing.parent_process() is None:
    sys.excepthook = _show
else:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent process ends this worker.
import tfr_smooth  # noqa: E402, F401  # which hides TensorFlow's log
