"""Atomic writes: files and folders are written under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path


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

    The temporary name starts with ".unfinished-" and ends with the name of `path`.

    Args:
      path: The file or folder to create or replace.
      overwrite: Whether to replace an existing non-empty folder.

    Yields:
      The temporary path.

    Raises:
      OSError: If `path` is a non-empty folder and `overwrite` is False.
    """
    path = Path(path)
    temporary = path.with_name(f".unfinished-{uuid.uuid4().hex[:8]}.{path.name}")
    try:
        yield temporary
        if overwrite and temporary.is_dir() and path.is_dir():
            shutil.rmtree(path)  # `os.replace` only replaces empty folders.
        os.replace(temporary, path)
    finally:  # The temporary path still exists only after a failure.
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
