"""Text files by name or pattern, local or on a TensorFlow file system, plain or compressed, line by line."""

from __future__ import annotations

import codecs
import glob
import hashlib
import io
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
import tensorflow as tf

FilePattern: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}  # file extensions and codecs of Arrow
_CHUNK = 1 << 16


def expand_paths(file_pattern: FilePattern, argument: str = "file_pattern") -> list[str]:
    """Expands paths and glob patterns to files: lists in their order, matches of a pattern sorted.

    Args:
      file_pattern: A path, a glob pattern, or a list of these.
      argument: The name of the argument in error messages.

    Returns:
      The files.

    Raises:
      ValueError: If there is no path or pattern, a pattern matches no file, or a file is matched twice.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> for name in ("b.txt", "a.txt"):
      ...     (folder / name).touch()
      >>> [pathlib.Path(path).name for path in data.expand_paths(folder / "*.txt")]
      ['a.txt', 'b.txt']
    """
    patterns: Any = [file_pattern] if isinstance(file_pattern, (str, os.PathLike)) else file_pattern
    are_paths = isinstance(patterns, (list, tuple)) and all(isinstance(name, (str, os.PathLike)) for name in patterns)
    if not are_paths or not patterns:
        raise ValueError(f"`{argument}` must be a path, a pattern or a list of these, got {file_pattern!r}.")
    paths: list[str] = []
    for name in map(os.fspath, patterns):
        try:
            matches = _matches(name)
        except tf.errors.OpError as error:
            raise ValueError(f"`{argument}` must match files, got {name!r}: {error.message}") from None
        if not matches:
            why = "a folder" if tf.io.gfile.isdir(name) else "which matches none"
            raise ValueError(f"`{argument}` must match files, got {name!r}, {why}.")
        paths.extend(matches)
    for before, path in itertools.pairwise(sorted(paths)):
        if before == path:
            raise ValueError(f"`{argument}` must match each file once, got {path!r} twice.")
    return paths


def _matches(name: str) -> list[str]:
    # The name of an existing file is taken literally, even with "[" in it.
    if is_file(name):
        return [name]
    matches = tf.io.gfile.glob(name) if _is_remote(name) else glob.glob(name, recursive=True)
    return sorted(filter(is_file, matches))


def _is_remote(path: str) -> bool:
    return "://" in path


def is_file(path: str) -> bool:
    """Whether a file of this name exists."""
    return tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path)


def numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file with their numbers, counted from 1, without a UTF-8 byte order mark.

    Raises:
      ValueError: If compressed data is truncated or damaged (`path:line: problem`).
    """
    codec = COMPRESSED.get(os.path.splitext(path)[1])
    number = 0
    with _open(path) as file:
        # The outer buffer speeds up reading line by line several times.
        lines = io.BufferedReader(pa.CompressedInputStream(file, codec), _CHUNK) if codec else file
        try:
            for number, line in enumerate(lines, start=1):
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        except OSError as error:
            if codec is None:
                raise
            raise ValueError(f"{path}:{number + 1}: truncated or damaged {codec} data: {error}") from None


def _open(path: str) -> BinaryIO:
    if not _is_remote(path):
        return open(path, "rb")
    file = tf.io.gfile.GFile(path, "rb")
    file.closed = False  # which Arrow asks for
    return file


def state_of(path: str) -> list[Any]:
    """Returns the full name, size and modification time of a file, or a hash of its content if the time is unknown."""
    if not _is_remote(path):
        return [os.path.abspath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns]
    info = tf.io.gfile.stat(path)
    return [path, info.length, info.mtime_nsec or digest([path])]


def digest(paths: Iterable[str]) -> str:
    """Returns a hash of the contents of files.

    Args:
      paths: The files; their order matters.

    Returns:
      16 hexadecimal digits.

    Example:
      >>> from tfr_smooth import data
      >>> data.digest([])
      'e3b0c44298fc1c14'
    """
    checksum = hashlib.sha256()
    for path in paths:
        with _open(path) as file:
            while chunk := file.read(1 << 20):
                checksum.update(chunk)
        checksum.update(b"end of a file")
    return checksum.hexdigest()[:16]
