"""One column of a table, as an input of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments

# Kind -> what the table contains, for messages.
KINDS = {"number": "numbers", "boolean": "booleans", "category": "text", "date": "dates"}
# Longer lists of names would hide the rest of an error message.
_MOST_LISTED = 20
_LONGEST = 60  # characters of a value in a message


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: its kind and what is known about it from the training table.

    `dataclasses.asdict` returns JSON types, and `Column(**config)` restores the column.

    Args:
      name: The name in the table, not empty.
      kind: "number", "boolean", "category" (text) or "date".
      fill: The mean of the known values in training, which replaces missing ones; for dates in days since 1970-01-01
        UTC. 0 for categories.
      has_missing: Whether values were missing in training. If so, the column has a feature that indicates this.
      categories: The known categories, not empty, of the kind "category". () for other kinds.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth import data
      >>> column = data.Column(name="brand", kind="category", has_missing=True, categories=("acme", "umbrella"))
      >>> column.dtype, column.width
      (tf.string, 3)
    """

    name: str
    kind: str
    fill: float = 0.0
    has_missing: bool = False
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"`name` must be a string that is not empty, got {self.name!r}.")
        _arguments.choice("kind", self.kind, tuple(KINDS))
        object.__setattr__(self, "fill", _arguments.real("fill", self.fill))
        _arguments.boolean("has_missing", self.has_missing)
        texts = () if isinstance(self.categories, str) else tuple(self.categories)
        fits = all(isinstance(text, str) and text for text in texts) and len(set(texts)) == len(texts)
        if not fits or bool(texts) != (self.kind == "category"):
            expected = "unique strings that are not empty" if self.kind == "category" else f"() for a {self.kind}"
            raise ValueError(f"`categories` must be {expected}, got {shown(self.categories)}.")
        object.__setattr__(self, "categories", texts)  # JSON has lists.

    @property
    def dtype(self) -> tf.DType:
        """Type of the raw values: float32 for numbers and booleans, string for categories, int64 for dates."""
        return {"category": tf.string, "date": tf.int64}.get(self.kind, tf.float32)

    @property
    def missing_value(self) -> float | str | int:
        """The raw value that means missing: NaN, "" for categories, and the smallest int64 for dates."""
        if self.kind == "date":
            return int(np.iinfo(np.int64).min)
        return "" if self.kind == "category" else np.nan

    @property
    def width(self) -> int:
        """Number of features: one per category or one, and one if values were missing in training."""
        return (len(self.categories) if self.kind == "category" else 1) + self.has_missing


def as_columns(columns: Iterable[Column | Mapping[str, Any]]) -> tuple[Column, ...]:
    """Returns columns given as such or as their dicts, with unique names.

    Args:
      columns: At least one column.

    Returns:
      The columns.

    Raises:
      ValueError: If a column is not one, there is none, or two have the same name.
    """
    found = tuple(Column(**each) if isinstance(each, Mapping) else each for each in columns)
    names = [_arguments.instance("columns", each, Column).name for each in found]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"`columns` must be at least one column, with unique names, got {listed(names)}.")
    return found


def shown(value: Any) -> str:
    """Returns a representation of at most one line."""
    # NumPy's scalars have longer representations than Python's.
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def listed(names: Sequence[Any]) -> str:
    """Returns names for a message; of many, the first ones."""
    first = ", ".join(map(repr, names[:_MOST_LISTED]))
    return f"[{first}{', ...' if len(names) > _MOST_LISTED else ''}]"
