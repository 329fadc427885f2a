"""Atomic writes of files."""

from __future__ import annotations

import os
from pathlib import Path

from tfr_smooth import _files


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a file, in a folder that is created if missing. A killed process leaves the old file."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    _files.write_bytes(path, [content.encode() if isinstance(content, str) else content])
