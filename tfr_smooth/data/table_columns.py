"""The columns of tables as inputs of models: learned from a training table, and their raw values in other tables."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data import list_columns
from tfr_smooth.data.list_columns import ColumnValues, Where, shown

# Kind -> what the table contains, for messages.
_KINDS = {"number": "numbers", "boolean": "booleans", "category": "text", "date": "dates"}
# The kinds of values that a column of this kind accepts.
_ACCEPTED = {"number": ("number", "boolean"), "boolean": ("boolean", "number")}
# The type of a column whose values are all missing.
_TYPES = {"number": pa.float32(), "boolean": pa.float32(), "category": pa.large_string(), "date": pa.timestamp("s")}
_SECONDS_PER_DAY = 86400.0
_ROWS_AT_ONCE = 2**16
_MOST_SAMPLED = 2**12  # rows in which different values are counted
_ENOUGH = 16  # different values; rankers learn from these almost as much as from more
# Longer lists of names would hide the rest of an error message.
_MOST_LISTED = 20


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
        _arguments.choice("kind", self.kind, tuple(_KINDS))
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


def infer_columns(table: Any, *, max_categories: int = 100, rows: np.ndarray | None = None) -> list[Column]:
    """Returns the columns of a training table, with their kinds, means and categories.

    Integers and floats are numbers; text and categorical columns are categories; timestamps and dates are dates, in UTC
    if they have no time zone. NaN, None, NaT, NA and empty text are missing values.

    Args:
      table: A table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface, with
        unique column names.
      max_categories: The number of categories per column, >= 1: the most frequent ones, ties in the order of the text.
        Other categories count as unseen.
      rows: The rows to learn from, integers [n]. None uses all.

    Returns:
      One column per column of the table, in order.

    Raises:
      ValueError: If a column has values of another type or different types, no known values, an infinite number,
        numbers that are mostly equal as float32, or a name that is empty or not unique. The message names the column.

    Time O(rows * columns). Memory: one column at a time.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import data
      >>> frame = pd.DataFrame({"price": [1.0, None, 3.0], "brand": ["b", "a", "a"]})
      >>> price, brand = data.infer_columns(frame)
      >>> price.kind, price.fill, price.has_missing, brand.categories
      ('number', 2.0, True, ('a', 'b'))
    """
    found = list_columns.as_arrow(table)
    most = _arguments.integer("max_categories", max_categories, least=1)
    if not found.num_columns:
        raise ValueError("`table` must have at least one column, got none.")
    chosen = None if rows is None else pa.array(rows)
    return [_infer(name, found[name], chosen, most) for name in found.column_names]


def conformed(table: pa.Table, columns: Iterable[Column]) -> pa.Table:
    """Returns the columns of a table, checked to have values of the kinds of a model's columns.

    Args:
      table: The table, possibly with further columns.
      columns: The columns of the model.

    Returns:
      The columns of the model, in its order; one with only missing values gets the type of its kind.

    Raises:
      ValueError: As in `column_arrays`.
    """
    names, found = table.column_names, {}
    columns = list(columns)
    for column in columns:
        name, where = column.name, Where(f"column {column.name!r}")
        if name not in names:
            others = [other for other in names if other not in {each.name for each in columns}]
            near = difflib.get_close_matches(name, others, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"The table must have the column {name!r}, got the columns {listed(names)}.{hint}")
        values = list_columns.feature(where, table[name])
        known = pc.invert(pc.is_null(values, nan_is_null=True))
        kind, row = _kind(values.type), pc.index(known, True).as_py()
        if row < 0:
            values = pa.chunked_array([pa.nulls(len(values), _TYPES[column.kind])])
        elif kind not in _ACCEPTED.get(column.kind, (column.kind,)):
            list_columns.refuse(where, _KINDS[column.kind], values[row], row)
        elif column.kind == "boolean" and kind == "number":
            other = pc.invert(pc.is_in(values, pa.array([0, 1]).cast(values.type)))
            list_columns.refuse_where(pc.and_(known, other), where, _KINDS["boolean"], values)
        found[name] = values
    return pa.table(found)


def column_arrays(table: Any, columns: Iterable[Column]) -> dict[str, np.ndarray]:
    """Returns the raw values of the columns of a table, as a model with `models.TableFeatures` takes them.

    Args:
      table: A table, as for `infer_columns`. Further columns are ignored.
      columns: The columns, as from `infer_columns`.

    Returns:
      Name -> values [rows]: numbers and booleans as float32, NaN if missing; categories as bytes, b"" if missing; dates
      as int64 seconds since 1970-01-01 UTC, the smallest int64 if missing.

    Raises:
      ValueError: If a column is missing from the table, has values of another kind, or a number that is infinite as
        float32. The message names the column and the row.

    Time and memory O(rows * columns).

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import data
      >>> columns = data.infer_columns(pd.DataFrame({"price": [1, 3], "brand": ["b", "a"]}))
      >>> arrays = data.column_arrays(pd.DataFrame({"id": [7], "price": [2.5], "brand": [None]}), columns)
      >>> {name: values.tolist() for name, values in arrays.items()}
      {'price': [2.5], 'brand': [b'']}
    """
    found = conformed(list_columns.as_arrow(table), columns)
    rows = np.arange(len(found))
    return {name: ColumnValues(found[name])(rows) for name in found.column_names}


def parts_of(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the rows of an array in parts, to need little memory."""
    return (values[start : start + _ROWS_AT_ONCE] for start in range(0, len(values), _ROWS_AT_ONCE))


def columns_of_parts(parts: Iterable[np.ndarray]) -> list[Column]:
    """Returns the columns "1", "2", ... of a matrix of float32 numbers, NaN if missing, that is given in parts."""
    totals, counts, total = np.zeros(()), np.zeros((), int), 0
    for part in parts:
        missing = np.isnan(part)
        totals = totals + np.where(missing, 0.0, part).sum(axis=0, dtype=np.float64)
        counts = counts + (~missing).sum(axis=0)
        total += len(part)
    if not counts.all():
        place = np.flatnonzero(counts == 0)[0]
        raise ValueError(f"column {str(place + 1)!r} must have known values, got only missing ones.")
    return [
        Column(name=str(number), kind="number", fill=fill, has_missing=bool(count < total))
        for number, (fill, count) in enumerate(zip((totals / counts).tolist(), counts, strict=True), 1)
    ]


def check_differences(what: str, numbers: np.ndarray) -> None:
    """Checks that the numbers of a training set still differ as float32, such as times in seconds since 1970.

    Args:
      what: Names the column, for the message.
      numbers: The numbers, NaN if missing.

    Raises:
      ValueError: If float32 leaves less than half of the different values in a sample, and less than 16.
    """
    sample = numbers[:: len(numbers) // _MOST_SAMPLED + 1].astype(np.float64)
    known = sample[np.isfinite(sample)]
    # Smaller differences are rounding errors of float64.
    given = len(np.unique(np.round(known / np.abs(known).max(initial=np.finfo(np.float64).tiny), 12)))
    left = len(np.unique(known.astype(np.float32)))
    if left < min(given / 2, _ENOUGH):
        raise ValueError(
            f"{what} must be numbers that differ as float32, got {given} different ones, of which float32 keeps "
            f"{left}. Pass times as dates and ids as text, or subtract the lowest number."
        )


def _infer(name: str, column: pa.ChunkedArray, rows: pa.Array | None, max_categories: int) -> Column:
    column = list_columns.feature(Where(f"column {name!r}"), column)
    column = column if rows is None else column.take(rows)
    kind = _kind(column.type)
    if not kind:
        raise ValueError(f"column {name!r} must be numbers, booleans, text or dates, got the type {column.type}.")
    absent = pc.is_null(column, nan_is_null=True)
    if kind == "category":
        absent = pc.or_kleene(absent, pc.equal(column, ""))
    missing = absent.to_numpy()
    if missing.all():
        raise ValueError(f"column {name!r} must have known values, got only missing ones.")
    has_missing = bool(missing.any())
    if kind == "category":
        texts, numbers = (pc.value_counts(column).field(place).to_pylist() for place in (0, 1))
        counts = {text: number for text, number in zip(texts, numbers, strict=True) if text}
        categories = sorted(counts, key=lambda text: (-counts[text], text))[:max_categories]
        return Column(name=name, kind=kind, has_missing=has_missing, categories=tuple(categories))
    if kind == "number":
        check_differences(f"column {name!r}", column.to_numpy())
    values = ColumnValues(column)(np.flatnonzero(~missing))
    fill = float(values.mean(dtype=np.float64)) / (_SECONDS_PER_DAY if kind == "date" else 1.0)
    return Column(name=name, kind=kind, fill=fill, has_missing=has_missing)


def _kind(values: pa.DataType) -> str:
    """Returns the kind of a column with values of a type; "" for other types."""
    if list_columns.is_number(values):
        return "boolean" if pa.types.is_boolean(values) else "number"
    if list_columns.is_date(values):
        return "date"
    return "category" if list_columns.is_text(values) and not list_columns.is_bytes(values) else ""


def listed(names: Sequence[Any]) -> str:
    """Returns names for a message; of many, the first ones."""
    first = ", ".join(map(repr, names[:_MOST_LISTED]))
    return f"[{first}{', ...' if len(names) > _MOST_LISTED else ''}]"
