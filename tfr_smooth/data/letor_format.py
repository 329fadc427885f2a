"""The format of ranking files: options of the reader, and files of query sizes."""

from __future__ import annotations

import dataclasses
import functools
import numbers
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.text_files import COMPRESSED, FilePattern, expand_paths, is_file, numbered_lines

QUERY_MIN = "query_min"
# The file extensions of query sizes in LightGBM and XGBoost.
_SIZES_ENDINGS = (".query", ".group")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LetorFormat:
    """The format of ranking files, for `read_letor`, `scan_letor` and `scan_split`.

    Args:
      query_ids: Where a line contains its query id. "qid": `qid:text` after the label. "comment": the first word of the
        comment, as in `2 1:0.5 # 934`; there are no document ids then.
      group_sizes: Files with the number of documents of each query, one number per line, as in LightGBM and XGBoost,
        for data without `qid:text`. A path, a pattern or a list, one file for each data file. None uses `FILE.query` or
        `FILE.group` next to a FILE whose first line has no `qid:text`. The query ids are "0", "1" and so on.
      first_index: The index of the first feature: 1 or 0.
      missing: Tokens for missing values and their replacements: a finite number, or "query_min", the smallest value of
        the feature in the query (0 if the query has none). `{"NULL": "query_min"}` reads `1:NULL`. None allows no
        missing values.
      labeled: Whether to read labels. If False, all labels are 0, and a line may have any label or none.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> LetorFormat(missing={"NULL": 0}).missing
      {'NULL': 0.0}
    """

    query_ids: str = "qid"
    group_sizes: FilePattern | None = None
    first_index: int = 1
    missing: Mapping[str, float | str] | None = None
    labeled: bool = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.choice("query_ids", self.query_ids, ("qid", "comment"))
        if self.group_sizes is not None:
            if self.query_ids == "comment":
                raise ValueError("`group_sizes` must be None with `query_ids='comment'`, got both.")
            object.__setattr__(self, "group_sizes", expand_paths(self.group_sizes, "group_sizes"))
        if isinstance(self.first_index, bool) or self.first_index not in (0, 1):
            raise ValueError(f"`first_index` must be 0 or 1, got {self.first_index!r}.")
        object.__setattr__(self, "missing", _checked_missing(self.missing))
        _arguments.boolean("labeled", self.labeled)

    @functools.cached_property
    def replaced(self) -> dict[bytes, float]:
        """Token to its replacement, NaN for "query_min"."""
        values = self.missing or {}
        return {token.encode(): np.nan if value == QUERY_MIN else float(value) for token, value in values.items()}

    def sizes_files(self, paths: Sequence[str]) -> list[str | None]:
        """Returns the file of query sizes for each data file.

        Args:
          paths: The data files.

        Returns:
          One entry per data file: the path of its file of query sizes, or None if it has query ids.

        Raises:
          ValueError: If the number of files in `group_sizes` is not the number of data files, or a data file has two
            candidates.
        """
        if isinstance(self.group_sizes, list):
            if len(self.group_sizes) != len(paths):
                expected = f"`group_sizes` must match one file for each of the {len(paths)} data files"
                raise ValueError(f"{expected}, got {len(self.group_sizes)}.")
            return list(self.group_sizes)
        if self.query_ids == "comment":
            return [None] * len(paths)
        return [_sizes_beside(path) for path in paths]

    def settings(self) -> dict[str, Any]:
        """Returns the settings that identify the format, without file names.

        Returns:
          Field name to its value, as JSON-serializable values.
        """
        return {
            "query_ids": self.query_ids,
            "first_index": self.first_index,
            "missing": self.missing,
            "labeled": self.labeled,
        }


def _checked_missing(missing: Any) -> dict[str, float | str] | None:
    if missing is None:
        return None
    expected = "`missing` must map tokens to finite numbers or 'query_min'"
    if not isinstance(missing, Mapping):
        raise ValueError(f"{expected}, got {missing!r}.")
    checked: dict[str, float | str] = {}
    for token, value in missing.items():
        if not isinstance(token, str) or _is_finite(token) or set(token) & set(" \t\n\r\v\f#"):
            raise ValueError(f"`missing` must have non-numeric tokens without whitespace or '#', got {token!r}.")
        if value == QUERY_MIN:
            checked[token] = QUERY_MIN
        elif isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(np.float32(value)):
            checked[token] = float(value)
        else:
            raise ValueError(f"{expected}, got {value!r} for {token!r}.")
    return checked


def _is_finite(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


PLAIN = LetorFormat()


def checked_format(format: LetorFormat | None) -> LetorFormat:
    """Returns the argument `format` of a reader, or the default format for None."""
    return PLAIN if format is None else _arguments.instance("format", format, LetorFormat)


def _sizes_beside(path: str) -> str | None:
    """Returns the file of query sizes next to a file without query ids; None if there is none."""
    root, ending = os.path.splitext(path)
    roots = [path, root] if ending in COMPRESSED else [path]
    found = [name for name in (root + ending for root in roots for ending in _SIZES_ENDINGS) if is_file(name)]
    if not found or _has_query_ids(path):
        return None
    if len(found) > 1:
        raise ValueError(
            f"`group_sizes` must name the file of query sizes of {path}, got None and the candidates {found}."
        )
    return found[0]


def _has_query_ids(path: str) -> bool:
    """Whether the first document has a query id; True for a file without documents, which the reader rejects."""
    for _, line in numbered_lines(path):
        words = line.split(None, 2)
        if words and not words[0].startswith(b"#"):
            return any(word.startswith(b"qid:") for word in words[:2])
    return True


def read_sizes(path: str) -> Iterator[int]:
    """Yields the query sizes, one per line; blank lines are skipped.

    Raises:
      ValueError: If a line is not an integer >= 1 (`path:line: problem`).
    """
    for number, line in numbered_lines(path):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or len(text) > 9 or int(text) == 0:
            shown = text.decode(errors="replace")[:60]
            raise ValueError(f"{path}:{number}: query size {shown!r} is not an integer >= 1")
        yield int(text)
