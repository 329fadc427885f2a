"""Writing files and folders: under a temporary name beside the path first, so that it never holds half of one."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path


def write_text(path: str | os.PathLike[str], chunks: Iterable[str]) -> None:
    """Writes UTF-8 text, with the line ends as they are, to `path`, or leaves what is there if anything fails."""
    write_bytes(path, (chunk.encode() for chunk in chunks))


def write_bytes(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Writes bytes to `path`, or leaves what is there if anything fails."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.writelines(chunks)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Gives a path for a file or a folder: what is there in the end becomes `path`, or is removed if anything fails.

    The name starts with ".unfinished-", and ends as that of `path` does. A folder that holds something is replaced only
    with `overwrite`, and else an `OSError`.
    """
    path = Path(path)
    temporary = path.with_name(f".unfinished-{uuid.uuid4().hex[:8]}.{path.name}")
    try:
        yield temporary
        if overwrite and temporary.is_dir() and path.is_dir():
            shutil.rmtree(path)  # The operating system replaces empty folders alone.
        os.replace(temporary, path)
    finally:  # there only if something failed
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
