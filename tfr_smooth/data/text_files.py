"""Text files by name or pattern: on disk or a file system of TensorFlow, as they are or compressed, line by line."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import glob
import gzip
import hashlib
import io
import itertools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import tensorflow as tf

from tfr_smooth import _extras

FilePattern: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_CHUNK = 1 << 16


class _Compression(NamedTuple):
    """A way to compress, what unpacks an open file, and what that raises where the data is cut or damaged."""

    name: str
    unpacked: Callable[[BinaryIO], Any]
    errors: tuple[type[Exception], ...]


def expand_paths(file_pattern: FilePattern, argument: str = "file_pattern") -> list[str]:
    """Turns paths and glob patterns into files: list order, the matches of a pattern sorted.

    Raises:
      ValueError: With the argument's name: no path or pattern, one that matches nothing, or a file that comes twice.
    """
    if isinstance(file_pattern, (str, os.PathLike)):
        patterns = [file_pattern]
    elif isinstance(file_pattern, (list, tuple)):
        patterns = list(file_pattern)
    else:
        raise ValueError(f"`{argument}` must be a path, a pattern or a list of these, got {file_pattern!r}.")
    if not patterns:
        raise ValueError(f"`{argument}` must name at least one file, got an empty list.")
    paths: list[str] = []
    for pattern in patterns:
        if not isinstance(pattern, (str, os.PathLike)):
            raise ValueError(f"`{argument}` must hold paths or patterns, got {pattern!r}.")
        name = os.fspath(pattern)
        try:
            matches = _matches(name)
        except tf.errors.OpError as error:
            raise ValueError(f"`{argument}` must match files, got {name!r}: {error.message}") from None
        if not matches:
            why = "a folder" if is_folder(name) else "which matches none"
            raise ValueError(f"`{argument}` must match files, got {name!r}, {why}.")
        paths.extend(matches)
    for before, path in itertools.pairwise(sorted(paths)):
        if before == path:
            raise ValueError(f"`{argument}` must match a file once, got {path!r} twice.")
    return paths


def _matches(name: str) -> list[str]:
    # A file that is there is meant literally, even with "[" in its name.
    if is_file(name):
        return [name]
    found = tf.io.gfile.glob(name) if _is_remote(name) else glob.glob(name, recursive=True)
    return sorted(filter(is_file, found))


def _is_remote(path: str) -> bool:
    return "://" in path


def is_file(path: str) -> bool:
    """Whether there is a file of this name."""
    if _is_remote(path):
        return tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path)
    return os.path.isfile(path)


def is_folder(path: str) -> bool:
    """Whether there is a folder of this name."""
    return tf.io.gfile.isdir(path) if _is_remote(path) else os.path.isdir(path)


def numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file with their numbers, from 1 on, without the mark of UTF-8 that may be at its start.

    Raises:
      ValueError: Truncated or damaged compressed data, as `path:line: what is wrong`.
      ImportError: What unpacks the file is not installed.
    """
    compression = _COMPRESSIONS.get(os.path.splitext(path)[1], _no_compression)()
    number = 0
    with _open(path) as file, compression.unpacked(file) as stream:
        try:
            for number, line in enumerate(stream, start=1):
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        except compression.errors as error:
            raise ValueError(f"{path}:{number + 1}: truncated or damaged {compression.name} data: {error}") from None


def _no_compression() -> _Compression:
    return _Compression("", contextlib.nullcontext, ())


def _compression(name: str, opener: Callable[[BinaryIO], Any], *errors: type[Exception]) -> _Compression:
    # The outer buffer makes reading line by line several times faster.
    return _Compression(name, lambda file: io.BufferedReader(opener(file), _CHUNK), errors)


def _zstd() -> _Compression:
    try:
        from compression import zstd
    except ImportError:
        # The package of the name zstandard takes a file that was cut for a whole one.
        with _extras.needed("backports.zstd", extra="zstd", by="A .zst file"):
            from backports import zstd
    return _compression("zstd", zstd.open, EOFError, zstd.ZstdError)


# By the end of a file's name.
_COMPRESSIONS: dict[str, Callable[[], _Compression]] = {
    ".gz": lambda: _compression("gzip", gzip.open, EOFError, gzip.BadGzipFile, zlib.error),
    ".bz2": lambda: _compression("bzip2", bz2.open, EOFError, OSError),
    ".zst": _zstd,
}
COMPRESSED = tuple(_COMPRESSIONS)


def _open(path: str) -> BinaryIO:
    if _is_remote(path):
        return io.BufferedReader(_RemoteFile(path), _CHUNK)
    return open(path, "rb")


class _RemoteFile(io.RawIOBase):
    """A file of a TensorFlow file system, for `io`."""

    def __init__(self, path: str) -> None:
        self._file = tf.io.gfile.GFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def state_of(path: str) -> list[Any]:
    """Returns the full name, the size and the time of change of a file; its content's hash where no time is known."""
    if not _is_remote(path):
        return [os.path.abspath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns]
    found = tf.io.gfile.stat(path)
    return [path, found.length, found.mtime_nsec or digest([path])]


def digest(paths: Iterable[str]) -> str:
    """Returns a hash of what some files hold, in their order."""
    found = hashlib.sha256()
    for path in paths:
        with _open(path) as file:
            while chunk := file.read(1 << 20):
                found.update(chunk)
        found.update(b"end of a file")
    return found.hexdigest()[:16]
