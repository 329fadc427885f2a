"""How files of ranking data may be written: options of the reader, and files with the sizes of queries."""

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
# What the names of files with the sizes of queries end in: LightGBM's and XGBoost's.
_SIZES_ENDINGS = (".query", ".group")


def _flag(default: Any, help: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help})


@dataclasses.dataclass(frozen=True, kw_only=True)
class LetorFormat:
    """How files of ranking data are written; `read_letor` has the arguments.

    Attributes:
      query_ids: "qid" or "comment".
      group_sizes: Files with the sizes of the queries, one for each file, or None.
      first_index: 0 or 1.
      missing: Token -> what it becomes: a number, or "query_min".
      labeled: Whether the labels are read.

    Raises:
      ValueError: If an argument is not one of these.

    Example:
      >>> LetorFormat(missing={"NULL": 0}).missing
      {'NULL': 0.0}
    """

    query_ids: str = _flag("qid", "where the query of a line stands: qid, or comment for the first word behind '#'")
    group_sizes: FilePattern | None = _flag(None, "files with the sizes of the queries, separated by commas")
    first_index: int = _flag(1, "the index of the first feature: 1 or 0")
    missing: Mapping[str, float | str] | None = _flag(
        None, "what missing values become, as NULL=0 or NULL=query_min for the least in the query, with commas between"
    )
    labeled: bool = _flag(True, "whether the labels are read: true, or false for documents without")

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

    @classmethod
    def flags(cls) -> dict[str, str]:
        """Returns what a command line says of each field: name -> help."""
        return {field.name: field.metadata["help"] for field in dataclasses.fields(cls)}

    @classmethod
    def from_flags(cls, texts: Mapping[str, str | None]) -> LetorFormat:
        """Returns the format of the flags that were given, as text; None for others.

        Raises:
          ValueError: If a text is no value of its flag.

        Example:
          >>> LetorFormat.from_flags({"first_index": "0", "missing": "NULL=query_min,NaN=0", "labeled": None}).missing
          {'NULL': 'query_min', 'NaN': 0.0}
        """
        given: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
        if "group_sizes" in given:
            given["group_sizes"] = given["group_sizes"].split(",")
        if "first_index" in given:
            given["first_index"] = {"0": 0, "1": 1}.get(given["first_index"], given["first_index"])
        if "labeled" in given:
            given["labeled"] = {"true": True, "false": False}.get(given["labeled"].lower(), given["labeled"])
        if "missing" in given:
            pairs = [pair.rpartition("=") for pair in given["missing"].split(",")]
            if not all(separator for _, separator, _ in pairs):
                raise ValueError(f"`missing` must be TOKEN=VALUE, with commas between, got {given['missing']!r}.")
            given["missing"] = {token: float(value) if _is_finite(value) else value for token, _, value in pairs}
        return cls(**given)

    @functools.cached_property
    def replaced(self) -> dict[bytes, float]:
        """Token -> number, NaN for the minimum of the query."""
        values = self.missing or {}
        return {token.encode(): np.nan if value == QUERY_MIN else float(value) for token, value in values.items()}

    def sizes_files(self, paths: Sequence[str]) -> list[str | None]:
        """Returns the file with the sizes of the queries for each of the files, None for those that need none.

        Raises:
          ValueError: If there are not as many as files, or two beside a file.
        """
        if isinstance(self.group_sizes, list):
            if len(self.group_sizes) != len(paths):
                expected = f"`group_sizes` must be one file for each of the {len(paths)} files"
                raise ValueError(f"{expected}, got {len(self.group_sizes)}.")
            return list(self.group_sizes)
        if self.query_ids == "comment":
            return [None] * len(paths)
        return [_sizes_beside(path) for path in paths]

    def settings(self) -> dict[str, Any]:
        """Returns what tells one format from another, as JSON has it, but for the names of files."""
        return {
            "query_ids": self.query_ids,
            "first_index": self.first_index,
            "missing": self.missing,
            "labeled": self.labeled,
        }


def _checked_missing(missing: Any) -> dict[str, float | str] | None:
    if missing is None:
        return None
    expected = "`missing` must be a dict of tokens and what they become, a finite number or 'query_min'"
    if not isinstance(missing, Mapping):
        raise ValueError(f"{expected}, got {missing!r}.")
    checked: dict[str, float | str] = {}
    for token, value in missing.items():
        if not isinstance(token, str) or _is_finite(token) or set(token) & set(" \t\n\r\v\f#"):
            raise ValueError(f"`missing` must have tokens without whitespace that are no numbers, got {token!r}.")
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


def _sizes_beside(path: str) -> str | None:
    """The file with sizes beside a file without query ids."""
    root, ending = os.path.splitext(path)
    roots = [path, root] if ending in COMPRESSED else [path]
    found = [name for name in (root + ending for root in roots for ending in _SIZES_ENDINGS) if is_file(name)]
    if not found or _has_query_ids(path):
        return None
    if len(found) > 1:
        raise ValueError(f"`group_sizes` must say which of {found} has the sizes of the queries of {path}.")
    return found[0]


def _has_query_ids(path: str) -> bool:
    """Whether the first document has one; True for a file without documents, whose reader will say so."""
    for _, line in numbered_lines(path):
        words = line.split(None, 2)
        if words and not words[0].startswith(b"#"):
            return any(word.startswith(b"qid:") for word in words[:2])
    return True


def read_sizes(path: str) -> Iterator[int]:
    """Yields the sizes of the queries, one for each line; blank lines do not count.

    Raises:
      ValueError: A line that holds something else, as `path:line: what is wrong`.
    """
    for number, line in numbered_lines(path):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or len(text) > 9 or int(text) == 0:
            shown = text.decode(errors="replace")[:60]
            raise ValueError(f"{path}:{number}: size of a query {shown!r} is no whole number from 1 on")
        yield int(text)
