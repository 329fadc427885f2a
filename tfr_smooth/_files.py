"""Writing files: under a temporary name in the same folder first, so that a path never holds half a file."""

from __future__ import annotations

import contextlib
import os
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
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a path to write to; what is there becomes `path` in the end, or is removed if anything fails."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)  # there only if something failed
