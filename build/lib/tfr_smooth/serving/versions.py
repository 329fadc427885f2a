"""Version folders as TF Serving watches them: PATH/1, PATH/2, ..., each there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tfr_smooth import _arguments, _files


def next_version(path: str | os.PathLike[str]) -> int:
    """Returns the number behind the last version in a folder; 1 where there is none."""
    path = Path(path)
    names = [child.name for child in path.iterdir()] if path.is_dir() else []
    return max((int(name) for name in names if name.isascii() and name.isdigit()), default=0) + 1


def publish(path: str | os.PathLike[str], version: int | None, write: Callable[[Path, int], None]) -> Path:
    """Makes a version folder.

    It is written as PATH/.unfinished-..., which a server passes over because the name is no number, and then renamed in
    one step. A process that is killed leaves that folder behind, and nothing else.

    Args:
      path: A folder of this machine, made if it is not there.
      version: Its number, >= 1, or None for the next one that no other process takes.
      write: Fills the folder it is given; also gets the number.

    Returns:
      The version's folder.

    Raises:
      ValueError: If the path is on a remote file system, where a folder cannot be renamed in one step, the number is
        not an integer >= 1 or None, or that version is there already.
    """
    if "://" in os.fspath(path):
        raise ValueError(f"`path` must be a local folder (copy the finished version from there), got {path!r}.")
    if version is not None:
        _arguments.integer("version", version, least=1)
    while True:
        number = next_version(path) if version is None else version
        target = Path(path) / str(number)
        try:
            return _publish(target, number, write)
        except OSError as error:
            if not target.exists():
                raise
            if version is not None:
                raise ValueError(f"`version` must be a new one, got {number}: {target} is there already.") from error
            # Another process took the number in the meantime.


def _publish(target: Path, number: int, write: Callable[[Path, int], None]) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    _refuse_to_replace(target)
    with _files.replacing(target, overwrite=False) as unfinished:
        unfinished.mkdir()
        write(unfinished, number)
        _refuse_to_replace(target)
    return target


def _refuse_to_replace(target: Path) -> None:
    if target.exists():
        raise FileExistsError(target)
