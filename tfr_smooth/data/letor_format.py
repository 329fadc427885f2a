"""The format of ranking files."""

from __future__ import annotations

import dataclasses
import functools
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.text_files import FilePattern, expand_paths

QUERY_MIN = "query_min"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LetorFormat:
    """The format of ranking files, for `Lists.from_letor`, `read_letor` and `read_split`.

    Args:
      query_ids: Where a line contains its query id. "qid": `qid:text` after the label. "comment": the first word of the
        comment, as in `2 1:0.5 # 934`; there are no document ids then.
      group_sizes: Files with the number of documents of each query, one number per line, as in LightGBM and XGBoost,
        for data without `qid:text`. A path, a pattern or a list, one file for each data file. None uses `FILE.query` or
        `FILE.group` next to a FILE whose first line has no `qid:text`. The query ids are "0", "1" and so on.
      first_index: The index of the first feature: 1 or 0.
      missing: Tokens for missing values and their replacements: a finite number, or "query_min", the smallest value of
        the feature in the query (0 if the query has none). `{"NULL": "query_min"}` reads `1:NULL`; a token may be a
        number as it is in the files, such as "-999". None allows no missing values.
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

    def settings(self) -> dict[str, Any]:
        """Returns the settings that identify the format, without file names.

        Returns:
          Field name to its value, as JSON-serializable values.
        """
        return {name: getattr(self, name) for name in ("query_ids", "first_index", "missing", "labeled")}


def _checked_missing(missing: Any) -> dict[str, float | str] | None:
    if missing is None:
        return None
    expected = "`missing` must map tokens to finite numbers or 'query_min'"
    if not isinstance(missing, Mapping):
        raise ValueError(f"{expected}, got {missing!r}.")
    checked: dict[str, float | str] = {}
    for token, value in missing.items():
        if not isinstance(token, str) or set(token) & set(" \t\n\r\v\f#"):
            raise ValueError(f"`missing` must have tokens without whitespace or '#', got {token!r}.")
        if value == QUERY_MIN:
            checked[token] = QUERY_MIN
        elif isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(np.float32(value)):
            checked[token] = float(value)
        else:
            raise ValueError(f"{expected}, got {value!r} for {token!r}.")
    return checked
