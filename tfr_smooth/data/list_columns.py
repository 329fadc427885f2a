"""The columns of lists: which role each has, their checks at the call, and their values by row."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import Required

from tfr_smooth import _arguments

DENSE = "features"  # the name of a column of type fixed_size_list<float32> with all features
_FEATURE_KINDS = "numbers, booleans, text, dates, durations, vectors or sets of numbers or text"
_MICROSECONDS_PER_DAY = 86400e6
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # how Arrow and Parquet store the row labels of pandas
_LONGEST = 60  # characters of a value in a message
_ALIGNMENT = 64  # TensorFlow copies arrays whose start is not a multiple of this.
_HASHED = 1 << 20  # rows that are hashed at once
# More chunks than this would make batches slow.
_MOST_CHUNKS = 64


class Where(NamedTuple):
    """A column and its place, for messages.

    Args:
      what: Names the column.
      first_row: The number of its first row in the source.
    """

    what: str
    first_row: int = 0

    def __str__(self) -> str:
        """Returns the name."""
        return self.what


class RoleNames(TypedDict, total=False):
    """The columns by role, other than the query, as `Lists.from_table` takes them."""

    label: Required[str | Sequence[str] | Mapping[str, float] | None]
    features: Sequence[str] | None
    weight: str | None
    propensity: str | None
    position: str | None
    document_id: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Roles:
    """The names of the columns of `Lists` by their role.

    Args:
      query: The query ids.
      labels: The labels: one, several for several objectives, or none for unlabeled documents.
      label_weights: The weights of several labels, if given.
      weight: Weights of the documents.
      propensity: Propensities of the clicks that the labels are.
      position: Positions at which the documents were shown.
      document_id: Document ids. None uses the numbers of the rows.
      features: The features.

    Example:
      >>> from tfr_smooth import data
      >>> lists = data.Lists.from_table({"q": [7, 8], "click": [1, 0], "x": [0.1, 0.2]}, query="q", label="click")
      >>> lists.roles.query, lists.roles.labels, lists.roles.features
      ('q', ('click',), ('x',))
    """

    query: str
    labels: tuple[str, ...] = ()
    label_weights: tuple[float, ...] | None = None
    weight: str | None = None
    propensity: str | None = None
    position: str | None = None
    document_id: str | None = None
    features: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        query: str,
        label: str | Sequence[str] | Mapping[str, float] | None,
        features: Sequence[str] | None = None,
        **others: str | None,
    ) -> Roles:
        """Returns the roles of columns that exist.

        Args:
          names: All columns.
          query: The column of query ids.
          label: The columns of labels, possibly with weights.
          features: The feature columns. None takes all columns without another role.
          **others: The columns of other roles.

        Returns:
          The roles.

        Raises:
          ValueError: If a column does not exist or a weight is invalid.
        """
        labels = () if label is None else (label,) if isinstance(label, str) else tuple(label)
        weights = None
        if isinstance(label, Mapping):
            weights = tuple(_arguments.real(f"label[{name!r}]", value, least=0.0) for name, value in label.items())
            _arguments.weights("label", list(weights))
        taken = {"query": [query], "label": labels, **{role: [name] for role, name in others.items() if name}}
        for role, columns in taken.items():
            for name in columns:
                _arguments.name(role, name, names)
        used = {name for columns in taken.values() for name in columns}
        if features is not None:
            if isinstance(features, str) or len(set(features)) < len(features):
                raise ValueError(f"`features` must be unique names of columns, got {features!r}.")
            chosen = tuple(_arguments.name("features", name, names) for name in features)
        else:
            chosen = tuple(name for name in names if name not in used and not _PANDAS_INDEX.fullmatch(name))
        if not chosen:
            raise ValueError("`features` must name at least one column, got none.")
        return cls(query=query, labels=labels, label_weights=weights, features=chosen, **others)

    def stacked(self) -> Roles:
        """Returns the roles with the features in one column."""
        if DENSE in dataclasses.replace(self, features=()).columns:
            raise ValueError(f"The column {DENSE!r} must be a feature, got one with another role.")
        return dataclasses.replace(self, features=(DENSE,))

    @property
    def columns(self) -> list[str]:
        """All columns, each once."""
        single = (self.query, *self.labels, self.weight, self.propensity, self.position, self.document_id)
        return list(dict.fromkeys([name for name in single if name is not None] + list(self.features)))


def is_table(value: Any) -> bool:
    """Returns whether a value is a table that `as_arrow` takes, or a lazy one."""
    methods = ("__arrow_c_stream__", "iloc", "collect")
    return isinstance(value, (pa.Table, Mapping)) or any(hasattr(value, name) for name in methods)


def as_arrow(table: Any) -> pa.Table:
    """Returns a table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface."""
    if not is_table(table):
        raise ValueError(
            "`table` must be a table of pandas, Polars, PyArrow or DuckDB, or have the method `__arrow_c_stream__`, "
            f"got {type(table).__name__}."
        )
    if hasattr(table, "collect") and not hasattr(table, "__arrow_c_stream__"):
        raise ValueError("`table` must be a table, got a lazy one; pass `table.collect()`.")
    is_pandas = hasattr(table, "iloc")
    _check_names(list(map(str, table.columns)) if is_pandas else [])
    try:
        found = pa.Table.from_pandas(table, preserve_index=False) if is_pandas else pa.table(table)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
        problem = " ".join(map(str, error.args))
        raise ValueError(f"`table` must have values of one type in each column: {problem}") from None
    _check_names(found.column_names)
    if any(column.num_chunks > _MOST_CHUNKS for column in found.columns):
        found = found.combine_chunks()
    return found.replace_schema_metadata(None)


def _check_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"`table` must have each column once, got {name!r} {names.count(name)} times.")


def checked(
    table: pa.Table,
    roles: Roles,
    *,
    stack: bool = False,
    where: Callable[[str], Where] = lambda name: Where(f"column {name!r}"),
    part: bool = False,
) -> pa.Table:
    """Returns the columns with a role, in the types of `Lists`; the first bad value is a `ValueError`.

    Args:
      table: The table.
      roles: The columns.
      stack: Whether to store the features, which must be known numbers, in one column `DENSE`.
      where: Describes a column by its name, for messages.
      part: Whether the table is one of several parts, which get the same types.
    """
    found: dict[str, Any] = {roles.query: query_ids(where(roles.query), table[roles.query])}
    for name in (*roles.labels, roles.weight, roles.propensity):
        if name is not None:
            found[name] = _numbers(where(name), table[name], ">" if name == roles.propensity else ">=")
    if roles.position is not None:
        found[roles.position] = _numbers(where(roles.position), table[roles.position], ">=").cast(
            pa.int32(), safe=False
        )
    if roles.document_id is not None:
        found[roles.document_id] = _text(where(roles.document_id), table[roles.document_id])
    if stack:
        matrix = np.empty((len(table), len(roles.features)), np.float32)
        for place, name in enumerate(roles.features):
            matrix[:, place] = _numbers(where(name), table[name]).to_numpy()
        found[DENSE] = dense_column(matrix)
    else:
        for name in roles.features:
            column = feature(where(name), table[name], part)
            # A feature may have another role, too, such as the query.
            found.setdefault(name, column)
    return pa.table(found)


def shown(value: Any) -> str:
    """Returns a representation of at most one line."""
    # NumPy's scalars have longer representations than Python's.
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def refuse(where: Where, expected: str, value: Any, row: int) -> NoReturn:
    """Raises an error about a value."""
    got = shown(value.as_py() if isinstance(value, pa.Scalar) else value)
    raise ValueError(f"{where} must be {expected}, got {got} in row {where.first_row + row}.")


def refuse_where(wrong: Any, where: Where, expected: str, column: Any) -> None:
    """Raises an error about the first value that is wrong, if any."""
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        refuse(where, expected, column[row], row)


def is_number(kind: pa.DataType) -> bool:
    """Returns whether values are numbers or booleans."""
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)


def is_text(kind: pa.DataType) -> bool:
    """Returns whether values are text or bytes."""
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or is_bytes(kind)


def is_bytes(kind: pa.DataType) -> bool:
    """Returns whether values are bytes."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def is_date(kind: pa.DataType) -> bool:
    """Returns whether values are dates or times."""
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def is_set(kind: pa.DataType) -> bool:
    """Returns whether values are lists of any lengths."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _plain(column: Any) -> Any:
    """Returns a column without dictionaries, views and half floats, which not all functions of Arrow take."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        # Categories are text, also if they are numbers.
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        texts = [chunk.dictionary.cast(pa.large_string()).take(chunk.indices) for chunk in chunks]
        return pa.chunked_array(texts, pa.large_string())
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_float16(kind) or pa.types.is_null(kind):
        return column.cast(pa.float32())
    return column


def query_ids(where: Where, column: Any) -> Any:
    """Returns a column of query ids, without missing values."""
    column = _plain(column)
    expected = "query ids without missing values"
    refuse_where(pc.is_null(column, nan_is_null=True), where, expected, column)
    if not (is_number(column.type) or is_text(column.type) or is_date(column.type)):
        raise ValueError(f"{where} must be query ids as numbers or text, got the type {column.type}.")
    return column


def _numbers(where: Where, column: Any, sign: str = "") -> Any:
    """Returns a column of finite numbers as float32; `sign` is ">" or ">=" if they must be above or at least 0."""
    column = _plain(column)
    if not is_number(column.type):
        raise ValueError(f"{where} must be numbers, got the type {column.type}.")
    known = pc.fill_null(column.cast(pa.float32(), safe=False), np.nan)
    good = pc.is_finite(known)
    if sign:
        good = pc.and_(good, (pc.greater if sign == ">" else pc.greater_equal)(known, 0.0))
    refuse_where(pc.invert(good), where, "finite float32 numbers" + (f" {sign} 0" if sign else ""), column)
    return known


def _text(where: Where, column: Any) -> Any:
    column = _plain(column)
    if not (is_text(column.type) or is_number(column.type)):
        raise ValueError(f"{where} must be text or numbers, got the type {column.type}.")
    return column if is_text(column.type) else column.cast(pa.large_string())


def feature(where: Where, column: Any, part: bool = False) -> Any:
    """Returns a feature column, which must have finite or missing values, in a type of `Lists`.

    Args:
      where: Describes the column, for messages.
      column: The column.
      part: Whether it is one of several parts, which get the same type.
    """
    kind = column.type
    is_list = is_set(kind) or pa.types.is_fixed_size_list(kind)
    if pa.types.is_duration(kind):
        column = pc.divide(column.cast(pa.duration("us"), safe=False).cast(pa.int64()), _MICROSECONDS_PER_DAY)
    elif not is_list:
        column = _plain(column)
    elif pa.types.is_null(kind.value_type) and not part:  # such as the empty set of a table of one row
        return pa.chunked_array([pa.nulls(len(column), pa.float32())])
    elif pa.types.is_string_view(kind.value_type):
        column = column.cast(pa.list_(pa.large_string()))
    elif not part and is_set(kind) and is_number(kind.value_type):
        lengths = pc.min_max(pc.list_value_length(column)).as_py()
        if lengths["min"] == lengths["max"] and lengths["min"]:
            column = column.cast(pa.list_(kind.value_type, lengths["min"]))  # sets of one size are vectors
    kind = column.type
    values = kind.value_type if is_list else kind
    good = is_number(values) or (is_text(values) and not pa.types.is_fixed_size_list(kind))
    if not (good or (is_date(values) and not is_list)):
        raise ValueError(f"{where} must be {_FEATURE_KINDS}, got the type {kind}.")
    if pa.types.is_floating(values):
        numbers = pc.list_flatten(column) if is_list else column
        singles = numbers.cast(pa.float32(), safe=False)
        place = pc.index(pc.is_inf(singles), True).as_py()
        if place >= 0:
            row = pc.list_parent_indices(column)[place].as_py() if is_list else place
            refuse(where, "finite float32 numbers or missing", numbers[place], row)
        if part and not is_list:
            return singles  # half the size on disk
    return column


def dense_column(matrix: np.ndarray) -> pa.Array:
    """Returns float32 [rows, num_features] as a column, without a copy."""
    values = pa.array(np.ascontiguousarray(matrix, np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(values, matrix.shape[1])


def update_hash(found: Any, column: Any) -> None:
    """Adds a column to a hash of `hashlib`, without what Arrow stores for missing values."""
    found.update(str(column.type).encode())
    for start in range(0, len(column), _HASHED):
        part = column.slice(start, _HASHED)
        found.update(part.is_valid().to_numpy(zero_copy_only=False))
        found.update(pa.record_batch([part.drop_null()], names=["values"]).serialize())


class ColumnValues:
    """The values of a column by row, as NumPy arrays for TensorFlow.

    Numbers and booleans are float32, NaN if missing; text is bytes, b"" if missing; dates are int64 seconds since
    1970-01-01 UTC, the smallest int64 if missing; positions are int32; vectors are float32 [rows, d]; sets are padded
    to the largest of the rows, with NaN or b"".

    Args:
      column: The column, in memory or memory-mapped.
      is_position: Whether the values are int32, without missing ones.
    """

    def __init__(self, column: pa.ChunkedArray, is_position: bool = False) -> None:
        kind = column.type
        self._chunks = [chunk for chunk in column.chunks if len(chunk)] or [pa.array([], kind)]
        self._ends = np.cumsum([len(chunk) for chunk in self._chunks])
        self.width: int | None = kind.list_size if pa.types.is_fixed_size_list(kind) else None
        values = kind.value_type if self.width is not None or is_set(kind) else kind
        self.dtype = np.dtype(object if is_text(values) else np.int64 if is_date(values) else np.float32)
        if is_position:
            self.dtype = np.dtype(np.int32)
        self.is_set = is_set(kind)
        self._matrices = None
        if self.width is not None and values == pa.float32() and not column.null_count:
            self._matrices = [self._matrix(chunk) for chunk in self._chunks]

    def _matrix(self, chunk: pa.Array) -> np.ndarray:
        assert self.width is not None
        flat = chunk.values.slice(chunk.offset * self.width, len(chunk) * self.width)
        return _as_numpy(flat).reshape(-1, self.width)

    @property
    def shape(self) -> list[int | None]:
        """The shape of the value of a row; None for sets."""
        return [] if self.width is None and not self.is_set else [self.width]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Returns the values of rows, int64 [n]."""
        parts = self._by_chunk(rows)
        if self._matrices is not None and self.width is not None:
            found = _aligned(len(rows), self.width)
            if len(parts) == 1:  # one copy
                ((chunk, _, inside),) = parts
                return np.take(self._matrices[chunk], inside, axis=0, out=found, mode="clip")
            for chunk, places, inside in parts:
                found[places] = self._matrices[chunk][inside]
            return found
        taken = [self._chunks[chunk].take(pa.array(inside)) for chunk, _, inside in parts]
        if len(parts) == 1:
            return self._final(taken[0])
        back = np.argsort(np.concatenate([places for _, places, _ in parts]), kind="stable")
        return self._final(pa.concat_arrays(taken).take(pa.array(back)))

    def _by_chunk(self, rows: np.ndarray) -> list[tuple[int, Any, np.ndarray]]:
        """Returns (chunk, places in `rows`, rows of the chunk) for each chunk that is used."""
        if len(self._chunks) == 1:
            return [(0, slice(None), rows)]
        chunks = np.searchsorted(self._ends, rows, side="right")
        order = np.argsort(chunks, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(chunks[order])) + 1)
        found = []
        for places in groups:
            chunk = int(chunks[places[0]]) if len(places) else 0
            first = self._ends[chunk] - len(self._chunks[chunk])
            found.append((chunk, places, rows[places] - first))
        return found

    def _final(self, array: pa.Array) -> np.ndarray:
        if self.width is not None:
            values = self._matrix(array)
            return np.where(array.is_null().to_numpy(False)[:, None], np.nan, values) if array.null_count else values
        if not self.is_set:
            return array.to_numpy() if self.dtype == np.int32 else _as_numpy(array)
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(False)
        found = np.full(
            (len(array), max(1, lengths.max(initial=0))), b"" if self.dtype == object else np.nan, self.dtype
        )
        found[np.arange(found.shape[1]) < lengths[:, None]] = _as_numpy(array.flatten())
        return found


def _aligned(rows: int, width: int) -> np.ndarray:
    """Returns a matrix of float32 that TensorFlow uses without a copy."""
    size = rows * width * 4
    content = np.empty(size + _ALIGNMENT, np.uint8)
    start = -content.ctypes.data % _ALIGNMENT
    return content[start : start + size].view(np.float32).reshape(rows, width)


def _as_numpy(array: pa.Array) -> np.ndarray:
    kind = array.type
    if is_text(kind):
        as_bytes = array if is_bytes(kind) else array.cast(pa.large_binary())
        return pc.fill_null(as_bytes, b"").to_numpy(zero_copy_only=False)
    if is_date(kind):
        # Arrow rounds the times before 1970 up.
        seconds = array.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).fill_null(0).to_numpy() // 1_000_000
        return np.where(array.is_valid().to_numpy(False), seconds, np.iinfo(np.int64).min)
    if not pa.types.is_float32(kind):
        array = array.cast(pa.float32(), safe=False)
    return (pc.fill_null(array, np.nan) if array.null_count else array).to_numpy()
