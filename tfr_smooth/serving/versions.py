"""Version directories for TF Serving: PATH/1, PATH/2, ..., each created atomically."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tfr_smooth import _arguments, _files

_MODEL = "saved_model.pb"


def last(path: str | os.PathLike[str]) -> Path:
    """Returns the directory of the last version, or the given one if it is a version.

    Args:
      path: PATH or PATH/VERSION.

    Raises:
      ValueError: If there is no version.
    """
    path = Path(path)
    numbers = [number for number in _numbers(path) if (path / str(number) / _MODEL).exists()]
    if not numbers and not (path / _MODEL).exists():
        raise ValueError(f"`path` must be the directory of an export or of its versions, got {os.fspath(path)!r}.")
    return path / str(max(numbers)) if numbers else path


def _numbers(path: Path) -> list[int]:
    """Returns the numbers of the versions in a directory."""
    names = [child.name for child in path.iterdir()] if path.is_dir() else []
    return [int(name) for name in names if name.isascii() and name.isdigit()]


def publish(path: str | os.PathLike[str], version: int | None, write: Callable[[Path, int], None]) -> Path:
    """Creates a version directory.

    It is written as PATH/.unfinished-..., which a server ignores because the name is not a number, and then renamed in
    one step. If the process is killed, only the unfinished directory remains.

    Args:
      path: A local directory, created if missing.
      version: The version number, >= 1. None uses the next number that no other process uses.
      write: Called with the directory to fill and the version number.

    Returns:
      The version directory.

    Raises:
      ValueError: If the path is on a remote file system, which cannot rename a directory in one step, or a pattern, the
        number is not an integer >= 1 or None, or the version exists.
    """
    if "://" in os.fspath(path):
        raise ValueError(f"`path` must be a local directory (copy the finished version from there), got {path!r}.")
    if _files.is_pattern(path):
        expected = "without [ ] * ? \\, with which TensorFlow cannot load it"
        raise ValueError(f"`path` must be {expected}, got {os.fspath(path)!r}.")
    if version is not None:
        _arguments.integer("version", version, least=1)
    while True:
        number = max(_numbers(Path(path)), default=0) + 1 if version is None else version
        target = Path(path) / str(number)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise FileExistsError(target)
            with _files.replacing(target, overwrite=False) as unfinished:
                unfinished.mkdir()
                with quiet("tensorflow", logging.WARNING):  # which logs the path of the unfinished directory
                    write(unfinished, number)
            return target
        except OSError as error:
            if not target.exists():
                raise
            if version is not None:
                raise ValueError(f"`version` must be a new version, got {number}: {target} exists.") from error
            # Another process has used the number in the meantime.


@contextlib.contextmanager
def quiet(package: str, least: int = logging.CRITICAL + 1) -> Iterator[None]:
    """Hides what a package logs below a level."""
    log = logging.getLogger(package)
    level = log.level
    log.setLevel(max(level, least))
    try:
        yield
    finally:
        log.setLevel(level)
