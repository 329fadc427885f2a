"""The checks of the columns of a table, once, where it becomes `Lists`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth.data.column_values import dense_column, is_date, is_number, is_set, is_text
from tfr_smooth.data.roles import DENSE, Roles

_FEATURE_KINDS = "numbers, booleans, text, dates, durations, vectors or sets of numbers or text"
_MICROSECONDS_PER_DAY = 86400e6
_LONGEST = 60  # characters of a value in a message
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


def is_table(value: Any) -> bool:
    """Returns whether a value is a table that `as_arrow` takes, or a lazy one."""
    methods = ("__arrow_c_stream__", "iloc", "collect")
    return isinstance(value, (pa.Table, Mapping)) or any(hasattr(value, name) for name in methods)


def is_dense(table: pa.Table) -> bool:
    """Returns whether a table is a matrix of numbers: one column of vectors with the name `DENSE`."""
    return table.column_names == [DENSE] and pa.types.is_fixed_size_list(table[DENSE].type)


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
