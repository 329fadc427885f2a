"""Atomic writes of files."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a file, in a folder that is created if missing. A killed process leaves the old file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished-{uuid.uuid4().hex[:8]}.{path.name}")
    try:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
