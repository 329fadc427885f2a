"""Writing files: under a temporary name in the same folder first, so that a path never holds half a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_text(path: str | os.PathLike[str], chunks: Iterable[str]) -> None:
    """Writes UTF-8 text, with the line ends as they are, to `path`, or leaves what is there if anything fails."""
    write_bytes(path, (chunk.encode() for chunk in chunks))


def write_bytes(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Writes bytes to `path`, or leaves what is there if anything fails."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.writelines(chunks)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)  # there only if something failed
