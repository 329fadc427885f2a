"""Files by name or pattern, local or on a file system of pyarrow, and their lines, plain or compressed."""

from __future__ import annotations

import codecs
import fnmatch
import glob
import io
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import fs

FilePattern: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}  # file extensions and codecs of Arrow
_CHUNK = 1 << 16  # bytes; not tuned
_LOCAL = fs.LocalFileSystem()
_PATTERN = re.compile(r"[*?\[]")


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
            filesystem, path = file_system(name)
            matches = _matches(filesystem, path)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"`{argument}` must match files, got {name!r}: {error}") from None
        if not matches:
            why = "a folder" if is_folder(filesystem, path) else "which matches none"
            raise ValueError(f"`{argument}` must match files, got {name!r}, {why}.")
        if matches == [path]:  # in a URI, it may be written with %20
            matches = [name]
        elif not isinstance(filesystem, fs.LocalFileSystem):
            before, _, after = name.partition(path)  # such as s3:// and options
            matches = [before + match + after for match in matches]
        paths.extend(matches)
    for before, path in itertools.pairwise(sorted(paths)):
        if before == path:
            raise ValueError(f"`{argument}` must match each file once, got {path!r} twice.")
    return paths


def file_system(name: str) -> tuple[fs.FileSystem, str]:
    """Returns the file system of a path or URI, and the path there."""
    return fs.FileSystem.from_uri(name) if "://" in name else (_LOCAL, name)


def is_folder(filesystem: fs.FileSystem, path: str) -> bool:
    """Returns whether a path is that of a folder."""
    if isinstance(filesystem, fs.LocalFileSystem):  # which takes a path with a colon for a URI
        return os.path.isdir(path)
    return filesystem.get_file_info(path).type == fs.FileType.Directory


def _matches(filesystem: fs.FileSystem, pattern: str) -> list[str]:
    """Returns the files that match a pattern, sorted."""
    # The name of an existing file is taken literally, even with "[".
    if isinstance(filesystem, fs.LocalFileSystem):
        found = [pattern] if os.path.isfile(pattern) else glob.glob(pattern, recursive=True)
        return sorted(filter(os.path.isfile, found))
    if filesystem.get_file_info(pattern).is_file:
        return [pattern]
    folder = _PATTERN.split(pattern)[0].rpartition("/")[0]
    infos = filesystem.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return sorted(info.path for info in infos if info.is_file and fnmatch.fnmatchcase(info.path, pattern))


def numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file with their numbers, counted from 1, without a UTF-8 byte order mark.

    Raises:
      ValueError: If compressed data is truncated or damaged (`path:line: problem`).
    """
    codec, number = COMPRESSED.get(os.path.splitext(path)[1]), 0
    filesystem, inside = file_system(path if "://" in path else os.path.abspath(path))
    # The buffer speeds up reading line by line several times.
    with io.BufferedReader(filesystem.open_input_stream(inside, compression=codec), _CHUNK) as lines:
        try:
            for number, line in enumerate(lines, start=1):
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        except OSError as error:
            if codec is None:
                raise
            raise ValueError(f"{path}:{number + 1}: truncated or damaged {codec} data: {error}") from None


def state_of(path: str) -> list[Any]:
    """Returns the full name, the size and the modification time of a file."""
    path = path if "://" in path else os.path.abspath(path)
    filesystem, inside = file_system(path)
    info = filesystem.get_file_info(inside)
    return [path, info.size, info.mtime_ns]
