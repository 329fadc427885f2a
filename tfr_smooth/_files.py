"""Atomic writes: files and folders are written under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_WRITER = f".unfinished-{socket.gethostname()}-"
# Of TensorFlow's checkpoints.
_LEFTOVERS = ("ckpt-*_temp", "ckpt-*.tempstate*")


def user_cache(name: str) -> Path:
    """Returns a folder of this package in the cache folder of the user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfr_smooth" / name


def write_text(path: str | os.PathLike[str], chunks: Iterable[str]) -> None:
    """Writes UTF-8 text to `path` without converting line endings; an existing file is unchanged on failure."""
    write_bytes(path, (chunk.encode() for chunk in chunks))


def write_bytes(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Writes bytes to `path`; an existing file is unchanged on failure."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.writelines(chunks)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yields a temporary path for a file or folder that replaces `path` on success and is removed on failure.

    The temporary name starts with ".unfinished-" and ends with the name of `path`. Those that killed processes of this
    machine left are removed. A symbolic link stays, as does the mode of a file.

    Args:
      path: The file or folder to create or replace.
      overwrite: Whether to replace an existing non-empty folder.

    Yields:
      The temporary path.

    Raises:
      OSError: If `path` is a non-empty folder and `overwrite` is False, or the disk is full.
    """
    path, own = Path(os.path.realpath(path)), str(os.getpid())
    _remove_left(path.parent, glob.escape(path.name))
    temporary = path.with_name(f"{_WRITER}{own}-{_started(own)}-{uuid.uuid4().hex[:8]}.{path.name}")
    try:
        yield temporary
        if overwrite and temporary.is_dir() and path.is_dir():
            shutil.rmtree(path)  # `os.replace` only replaces empty folders.
        elif path.is_file():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # such as a full disk
            error.filename = str(path)
        raise
    finally:  # The temporary path still exists only after a failure.
        _remove(temporary)


def reserve(path: str | os.PathLike[str]) -> None:
    """Allocates the space of a sparse file: where a disk is full, a write to a map of it would end the process.

    Raises:
      OSError: If the disk is full.
    """
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Returns whether TensorFlow, which reads checkpoints by patterns, would not find one with this path."""
    return any(mark in os.fspath(path) for mark in "[]*?\\")


@contextlib.contextmanager
def readable(folder: str) -> Iterator[str]:
    """Yields a path by which TensorFlow finds the checkpoints of a folder: a link to it if its own is a pattern."""
    if not is_pattern(folder) or "://" in folder:
        yield folder
        return
    with tempfile.TemporaryDirectory() as parent:
        link = Path(parent, "link")
        link.symlink_to(Path(folder).absolute(), target_is_directory=True)
        yield os.fspath(link)


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Holds the lock of a folder of checkpoints, created if missing, and removes what a killed process left there.

    Without locks of the operating system, and for remote folders, it does nothing.

    Args:
      folder: The folder.

    Raises:
      ValueError: If another process holds the lock.
    """
    if fcntl is None or "://" in os.fspath(folder):
        yield
        return
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"`checkpoint_dir` must be of one training run, got {folder}, which is in use.") from None
        except OSError:  # a file system without locks
            pass
        for pattern in _LEFTOVERS:
            for left in Path(folder).glob(pattern):
                _remove(left)
        _remove_left(Path(folder), "*")
        yield


def _remove_left(folder: Path, names: str) -> None:
    """Removes what killed processes of this machine left of files whose names match a pattern."""
    for left in folder.glob(f"{glob.escape(_WRITER)}*.{names}"):
        if not _is_running(*left.name.removeprefix(_WRITER).split("-")[:2]):
            _remove(left)


def _is_running(process: str, started: str) -> bool:
    if os.name != "posix" or not process.isdecimal():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return started == _started(process)


def _started(process: str) -> str:
    """Returns when a process started: in a container, each has the same number. "" if the system does not say it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def as_json(content: Any) -> str:
    """Returns JSON for people to read, of NumPy's values and configured objects, too."""
    plain = json.loads(json.dumps(content, default=_plain), parse_constant=str)  # JSON has no NaN
    return json.dumps(plain, indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Returns a value that JSON does not have as one that it has."""
    if hasattr(value, "get_config"):
        return {"class": type(value).__name__, "config": value.get_config()}
    if hasattr(value, "tolist"):
        return value.tolist()  # NumPy scalars and arrays
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, set) else str(value)
