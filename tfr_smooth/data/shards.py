"""Names, compression and completeness of the files of a sharded TFRecord."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfr_smooth import _files

_SHARD = re.compile(r"(?P<stem>.+)-\d{5}-of-\d{5}(?P<packed>(\.gz)?)")


def compression(path: str | os.PathLike[str]) -> str:
    """Returns TensorFlow's name of the compression of a file, by the file's extension."""
    return "GZIP" if os.fspath(path).endswith(".gz") else ""


def shard_paths(target: Path, num_shards: int) -> list[Path]:
    """Returns the files to write.

    Args:
      target: The file name for a single shard.
      num_shards: The number of files.

    Returns:
      The paths.

    Raises:
      ValueError: If shards of a different number of shards exist, as a pattern would match both.
    """
    stem, packed = (target.stem, ".gz") if compression(target) else (target.name, "")
    paths = [target]
    if num_shards > 1:
        paths = [target.with_name(f"{stem}-{i:05d}-of-{num_shards:05d}{packed}") for i in range(num_shards)]
    matches = ((path, _SHARD.fullmatch(path.name)) for path in target.parent.glob("*"))
    strangers = {path for path, match in matches if match and match["stem"] == stem} - set(paths)
    if strangers:
        raise ValueError(f"`num_shards` must match the existing files, got {num_shards} and {min(strangers)}.")
    return paths


class Unfinished:
    """The progress of a conversion, in a file next to its target that exists only while the conversion is unfinished.

    Args:
      target: The file name for a single shard.
      sources: The files to convert.
      settings: Other settings that the files depend on, as JSON values.

    Attributes:
      finished: The number of shards that an interrupted conversion with the same settings has finished.
    """

    def __init__(self, target: Path, sources: Sequence[str], settings: dict[str, Any]) -> None:
        self._path = _marker(target)
        stats = [os.stat(path) for path in sources]
        described = [[path, s.st_size, s.st_mtime_ns] for path, s in zip(sources, stats, strict=True)]
        self._settings = json.loads(json.dumps({**settings, "sources": described}))
        before = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.finished = before["finished"] if before.get("settings") == self._settings else 0

    def finish(self, count: int) -> None:
        """Records the number of finished shards."""
        _files.write_text(self._path, [json.dumps({"settings": self._settings, "finished": count})])

    def remove(self) -> None:
        """Records that all shards are finished."""
        self._path.unlink(missing_ok=True)


def check_finished(paths: Sequence[str]) -> None:
    """Raises a `ValueError` if a file is a shard of an unfinished conversion."""
    for path in map(Path, paths):
        match = _SHARD.fullmatch(path.name)
        if match and _marker(path.with_name(match["stem"] + match["packed"])).exists():
            raise ValueError(
                f"`file_pattern` must match complete files, got {os.fspath(path)!r} from an interrupted conversion; "
                "run it again."
            )


def _marker(target: Path) -> Path:
    return target.with_name(f".{target.name}.unfinished.json")
