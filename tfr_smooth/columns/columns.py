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
from tfr_smooth.columns.words import words
from tfr_smooth.data import column_values
from tfr_smooth.data.column_values import ColumnValues
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.checks import Where, shown

# Kind -> what the table contains, for messages.
_KINDS = {
    "number": "numbers",
    "boolean": "booleans",
    "category": "text",
    "date": "dates",
    "id": "text or integers",
    "set": "lists or text",
    "text": "text",
    "encoded": "text",
    "vector": "vectors",
}
CODED = ("id", "set", "text")  # kinds whose values become codes, for embeddings
# The kinds of values that a column of this kind accepts.
_ACCEPTED = {
    "number": ("number", "boolean"),
    "boolean": ("boolean", "number"),
    "id": ("category", "number"),
    "set": ("set", "vector", "category"),
    "text": ("category",),
    "encoded": ("category",),
}
# The type of a column whose values are all missing, if it is not text.
_TYPES = {"number": pa.float32(), "boolean": pa.float32(), "date": pa.timestamp("s")}
_SECONDS_PER_DAY = 86400.0
_ROWS_AT_ONCE = 2**16
_MOST_SAMPLED = 2**12  # rows in which different values are counted
_ENOUGH = 16  # different values; rankers learn from these almost as much as from more
# Longer lists of names would hide the rest of an error message.
_MOST_LISTED = 20
_MOST_VALUES = 100_000  # with a vector of their own; columns with more are hashed
_MOST_BUCKETS = 2**23  # float32 has all integers up to twice this
_MOST_CODES = 64  # values of a set, or words and word pairs of a text
_MOST_TEXTS = 2**18  # rows whose words are counted
_TEXTS_AT_ONCE = 2**10  # splitting takes much more memory than the texts
_RARE = 20  # rows; a value in fewer rows would learn their noise
_RARE_WORD = 5  # rows; the vector of a text is the mean of several
_WORDS = 2.5  # words per value of a column of text, at least


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: its kind and what is known about it from the training table.

    `dataclasses.asdict` returns JSON types, and `Column(**config)` restores the column.

    Args:
      name: The name in the table, not empty.
      kind: "number", "boolean", "date", "vector" (numbers [length]), "category" (text with few values), "id" (text or
        integers with many values), "set" (several values), "text" (words) or "encoded" (text that an encoder maps to a
        vector [length]).
      fill: The mean of the known values in training, which replaces missing ones; for dates in days since 1970-01-01
        UTC. 0 for categories.
      has_missing: Whether values were missing in training. If so, the column has a feature that indicates this.
      categories: The known categories, not empty, of the kind "category"; the values of an id or a set, or the words
        and pairs of words, that have a vector of their own. () for other kinds, and if values are hashed.
      length: The numbers of a vector; the most codes per document of a set or text.
      buckets: The number of values of hashed ids, sets and words; 0 if values are not hashed.
      separator: What separates the values of a set in text.
      scale: What the numbers of a vector are divided by, > 0.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Column
      >>> column = Column(name="brand", kind="category", has_missing=True, categories=("acme", "umbrella"))
      >>> column.dtype, column.width
      (tf.string, 3)
    """

    name: str
    kind: str
    fill: float = 0.0
    has_missing: bool = False
    categories: tuple[str, ...] = ()
    length: int = 1
    buckets: int = 0
    separator: str = "|"
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"`name` must be a string that is not empty, got {self.name!r}.")
        _arguments.choice("kind", self.kind, tuple(_KINDS))
        object.__setattr__(self, "fill", _arguments.real("fill", self.fill))
        _arguments.boolean("has_missing", self.has_missing)
        texts = () if isinstance(self.categories, str) else tuple(self.categories)
        fits = all(isinstance(text, str) and text for text in texts) and len(set(texts)) == len(texts)
        is_coded = self.kind in CODED and not self.buckets
        if not fits or (not is_coded and bool(texts) != (self.kind == "category")):
            expected = (
                "unique strings that are not empty" if self.kind == "category" or is_coded else f"() for a {self.kind}"
            )
            raise ValueError(f"`categories` must be {expected}, got {shown(self.categories)}.")
        object.__setattr__(self, "categories", texts)  # JSON has lists.
        _arguments.integer("length", self.length, least=1)
        _arguments.integer("buckets", self.buckets, least=0)
        _arguments.real("scale", self.scale, above=0.0)

    @property
    def dtype(self) -> tf.DType:
        """Type of the raw values: int64 for dates; float32 for numbers, booleans and vectors; string for others."""
        return tf.string if self.is_text else tf.int64 if self.kind == "date" else tf.float32

    @property
    def is_text(self) -> bool:
        """Whether the raw values are text; those of sets are joined by the separator."""
        return self.kind in ("category", "encoded", *CODED)

    @property
    def missing_value(self) -> float | str | int:
        """The raw value that means missing: NaN, "" for text, and the smallest int64 for dates."""
        if self.kind == "date":
            return int(np.iinfo(np.int64).min)
        return "" if self.is_text else np.nan

    @property
    def width(self) -> int:
        """Number of features: one per category, code or number, and one if values were missing in training."""
        if self.kind in CODED:
            return self.length
        return (len(self.categories) if self.kind == "category" else self.length) + self.has_missing

    @property
    def rows(self) -> int:
        """Number of codes of ids, sets and texts: also 0 for padding and 1 for unknown values."""
        return 2 + (self.buckets or len(self.categories))


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


def infer_columns(
    table: Any,
    *,
    max_categories: int = 100,
    rows: np.ndarray | None = None,
    kinds: Mapping[str, str] | None = None,
) -> list[Column]:
    """Returns the columns of a training table, with their kinds, means and categories.

    Integers and floats are numbers, and durations their days; timestamps and dates are dates, in UTC if they have no
    time zone; lists of one length of numbers are vectors, and other lists sets. Text and categorical columns are
    categories if they have few values, else text if they have several words, else ids. NaN, None, NaT, NA and empty
    text are missing values.

    Args:
      table: A table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface, with
        unique column names.
      max_categories: The most values, >= 1, of a category of unknown kind. Of a column whose kind is given as
        "category", these are the most frequent ones, ties in the order of the text; others count as unseen.
      rows: The rows to learn from, integers [n]. None uses all.
      kinds: The kinds of columns by name, in place of the inferred ones: "id", "set", "text" and "category" for text,
        "id" also for integers; "set:SEPARATOR" for text with several values, such as "set:|".

    Returns:
      One column per column of the table, in order.

    Raises:
      ValueError: If a column has values of another type or different types, no known values, an infinite number,
        numbers that are mostly equal as float32, or a name that is empty or not unique. The message names the column.

    Time O(rows * columns). Memory: one column at a time.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth.columns import infer_columns
      >>> frame = pd.DataFrame({"price": [1.0, None, 3.0], "brand": ["b", "a", "a"]})
      >>> price, brand = infer_columns(frame)
      >>> price.kind, price.fill, price.has_missing, brand.categories
      ('number', 2.0, True, ('a', 'b'))
    """
    found = checks.as_arrow(table)
    most = _arguments.integer("max_categories", max_categories, least=1)
    if not found.num_columns:
        raise ValueError("`table` must have at least one column, got none.")
    chosen = None if rows is None else pa.array(rows)
    known = dict(kinds or {})
    for name in known:
        _arguments.name("kinds", name, found.column_names)
    return [_infer(name, found[name], chosen, most, known.get(name)) for name in found.column_names]


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
        values = checks.feature(where, table[name])
        known = pc.invert(pc.is_null(values, nan_is_null=True))
        kind, row = _kind(values.type), pc.index(known, True).as_py()
        if row < 0:
            empty = pa.list_(pa.float32(), column.length) if column.kind == "vector" else pa.large_string()
            values = pa.chunked_array([pa.nulls(len(values), _TYPES.get(column.kind, empty))])
        elif kind not in _ACCEPTED.get(column.kind, (column.kind,)):
            checks.refuse(where, _KINDS[column.kind], values[row], row)
        elif column.kind == "boolean":
            _check_booleans(where, values)
        elif column.kind in CODED:
            values = _text_of(where, column.kind, values, column.separator)
        elif column.kind == "vector" and values.type.list_size != column.length:
            raise ValueError(f"{where} must be vectors of {column.length} numbers, got {values.type.list_size}.")
        found[name] = values
    return pa.table(found)


def column_arrays(table: Any, columns: Iterable[Column]) -> dict[str, np.ndarray]:
    """Returns the raw values of the columns of a table, as a model with `columns.TableFeatures` takes them.

    Args:
      table: A table, as for `infer_columns`. Further columns are ignored.
      columns: The columns, as from `infer_columns`.

    Returns:
      Name -> values [rows]: numbers, booleans and the days of durations as float32, NaN if missing; categories as
      bytes, b"" if missing; dates as int64 seconds since 1970-01-01 UTC, the smallest int64 if missing.

    Raises:
      ValueError: If a column is missing from the table, has values of another kind, or a number that is infinite as
        float32. The message names the column and the row.

    Time and memory O(rows * columns).

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth.columns import column_arrays, infer_columns
      >>> columns = infer_columns(pd.DataFrame({"price": [1, 3], "brand": ["b", "a"]}))
      >>> arrays = column_arrays(pd.DataFrame({"id": [7], "price": [2.5], "brand": [None]}), columns)
      >>> {name: values.tolist() for name, values in arrays.items()}
      {'price': [2.5], 'brand': [b'']}
    """
    found = conformed(checks.as_arrow(table), columns)
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


def _infer(name: str, column: pa.ChunkedArray, rows: pa.Array | None, max_categories: int, given: str | None) -> Column:
    where = Where(f"column {name!r}")
    column = checks.feature(where, column)
    column = column if rows is None else column.take(rows)
    kind, separator = _kind(column.type), "|"
    if not kind:
        raise ValueError(f"column {name!r} must be numbers, booleans, text or dates, got the type {column.type}.")
    if given is not None:
        given, _, after = str(given).partition(":")
        separator = after or separator
        _arguments.choice(f"kinds[{name!r}]", given, tuple(_KINDS))
        if kind not in _ACCEPTED.get(given, (given,)):
            raise ValueError(
                f"column {name!r} must have {_KINDS[given]} for the kind {given!r}, got the type {column.type}."
            )
        kind = given
        if kind == "boolean":
            _check_booleans(where, column)
    column = _text_of(where, kind, column, separator)
    absent = pc.is_null(column, nan_is_null=True)
    if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
        absent = pc.or_kleene(absent, pc.equal(column, ""))
    missing = absent.to_numpy()
    if missing.all():
        raise ValueError(f"column {name!r} must have known values, got only missing ones.")
    has_missing = bool(missing.any())
    if kind in ("category", *CODED):
        known, options = column.filter(pc.invert(absent)), {"has_missing": has_missing, "separator": separator}
        return _infer_text(name, kind, known, max_categories, is_given=given is not None, **options)
    if kind == "encoded":
        return Column(name=name, kind=kind, has_missing=has_missing, length=int(separator))
    if kind == "vector":
        vectors = ColumnValues(column)(np.flatnonzero(~missing)[:: len(column) // _MOST_SAMPLED + 1])
        scale = float(np.sqrt(np.mean(np.square(vectors, dtype=np.float64)))) or 1.0
        return Column(name=name, kind=kind, has_missing=has_missing, length=vectors.shape[1], scale=scale)
    if kind == "number":
        check_differences(f"column {name!r}", column.to_numpy())
    values = ColumnValues(column)(np.flatnonzero(~missing))
    fill = float(values.mean(dtype=np.float64)) / (_SECONDS_PER_DAY if kind == "date" else 1.0)
    return Column(name=name, kind=kind, fill=fill, has_missing=has_missing)


def _infer_text(
    name: str, kind: str, known: pa.ChunkedArray, max_categories: int, *, is_given: bool, **options: Any
) -> Column:
    """Returns a column of text from its known values."""
    length = 1
    if kind == "set":
        of_sets = pc.split_pattern(known, options["separator"])
        length = min(pc.max(pc.list_value_length(of_sets)).as_py(), _MOST_CODES)
        known = pc.utf8_trim_whitespace(pc.list_flatten(of_sets))
    values, numbers = _counts(known)
    spaces = pc.count_substring_regex(known[:_MOST_SAMPLED], r"\S\s+\S")
    if kind == "category" and not is_given and len(values) > max_categories:
        kind = "text" if 1 + pc.mean(spaces).as_py() >= _WORDS else "id"
    if kind == "text":
        parts, most = _words(known.take(np.arange(0, len(known), len(known) // _MOST_TEXTS + 1)))
        length = min(most, _MOST_CODES)
        values, numbers = _counts(parts)
    if kind != "category":
        often = pc.greater_equal(numbers, _RARE_WORD if kind == "text" else _RARE)
        max_categories = _MOST_VALUES
        values, numbers = values.filter(often), numbers.filter(often)
        if len(values) > max_categories:
            buckets = min(2 ** len(values).bit_length(), _MOST_BUCKETS)
            return Column(name=name, kind=kind, length=length, buckets=buckets, **options)
    counts = {value: number for value, number in zip(values.to_pylist(), numbers.to_pylist(), strict=True) if value}
    categories = tuple(sorted(counts, key=lambda value: (-counts[value], value))[:max_categories])
    return Column(name=name, kind=kind, length=length, categories=categories, **options)


def _counts(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Returns the different values and their numbers."""
    counts = pc.value_counts(values)
    return counts.field(0), counts.field(1)


def _words(texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Returns all words and pairs of words, as `TableFeatures` splits texts, and the largest number in a text."""
    chunks, most = [], 1
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        batch = tf.constant(texts[first : first + _TEXTS_AT_ONCE].to_pylist())
        parts = tf.strings.ngrams(words(batch), (1, 2))
        most = max(most, int(parts.bounding_shape(axis=1)))
        chunks.append(pa.array(parts.flat_values.numpy(), pa.large_binary()).cast(pa.large_string()))
    return pa.chunked_array(chunks), most


def _check_booleans(where: Where, column: Any) -> None:
    """Checks that the known numbers of a column are 0 or 1."""
    good = pc.is_in(pc.cast(column, pa.float64(), safe=False), pa.array([0.0, 1.0, np.nan, None]))
    checks.refuse_where(pc.invert(good), where, _KINDS["boolean"], column)


def _text_of(where: Where, kind: str, column: Any, separator: str) -> Any:
    """Returns a column of ids or sets as text; sets are joined by the separator."""
    if kind == "set" and not column_values.is_text(column.type):
        if pa.types.is_floating(column.type.value_type):
            lengths = pc.list_value_length(column)
            other = pc.not_equal(lengths, lengths[pc.index(pc.is_valid(lengths), True).as_py()])
            checks.refuse_where(other, where, "vectors of one length, or lists of text or integers", column)
        values = pc.cast(pc.list_flatten(column), pa.large_string())
        place = pc.index(pc.fill_null(pc.match_substring(values, separator), True), True).as_py()
        if place >= 0:
            row = pc.list_parent_indices(column)[place].as_py()
            checks.refuse(where, f"lists of known values without {separator!r}", values[place], row)
        texts = pa.large_list(pa.large_string())
        return pc.binary_join(column.cast(texts), pa.scalar(separator, pa.large_string()))
    if kind == "id" and column_values.is_number(column.type):
        if pa.types.is_floating(column.type):  # integers with missing values in pandas
            numbers = pc.if_else(pc.is_nan(column), None, column)
            checks.refuse_where(pc.not_equal(numbers, pc.round(numbers)), where, "integers as ids", column)
            column = numbers.cast(pa.int64())
        return column.cast(pa.large_string())
    return column


def _kind(values: pa.DataType) -> str:
    """Returns the kind of a column with values of a type; "" for other types."""
    if column_values.is_number(values):
        return "boolean" if pa.types.is_boolean(values) else "number"
    if column_values.is_date(values):
        return "date"
    if column_values.is_set(values):
        return "set"
    if pa.types.is_fixed_size_list(values):
        return "vector"
    return "category" if column_values.is_text(values) and not column_values.is_bytes(values) else ""


def listed(names: Sequence[Any]) -> str:
    """Returns names for a message; of many, the first ones."""
    first = ", ".join(map(repr, names[:_MOST_LISTED]))
    return f"[{first}{', ...' if len(names) > _MOST_LISTED else ''}]"
