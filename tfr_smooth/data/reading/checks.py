"""The checks of the columns of a table, once, where it becomes `Lists`."""

from __future__ import annotations

import collections
import decimal
import functools
import operator
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth.data.column_values import NESTED, NUMBERS, TEXTS, dense_column, value_type, without
from tfr_smooth.data.roles import DENSE, Roles

_FEATURE_KINDS = "numbers, booleans, text, dates, durations, vectors or sets of numbers or text"
_MICROSECONDS_PER_DAY = 86400e6
_INTERVAL = "pandas.interval"
_WHOLE = r"^(0|-?[1-9]\d*)$"
_LONGEST = 60  # characters of a value in a message
_MOST_SHOWN = 5  # values in a message
# More chunks than this would make batches slow.
_MOST_CHUNKS = 64  # not tuned
_SAMPLED = 2**12  # rows in which different values are counted; not tuned
_ENOUGH = 16  # different values; rankers learn from these almost as much as from more


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


def are_rows(value: Any) -> bool:
    """Returns whether a value is a list of rows that are dicts."""
    return isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], Mapping)


def is_dense(table: pa.Table) -> bool:
    """Returns whether a table is a matrix of numbers: one column of vectors with the name `DENSE`."""
    return table.column_names == [DENSE] and value_type(table[DENSE].type) == "vector"


def as_arrow(table: Any, argument: str = "table") -> pa.Table:
    """Returns a table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface."""
    if not is_table(table):
        expected = "be a table of pandas, Polars, PyArrow or DuckDB, or have the method `__arrow_c_stream__`"
        raise ValueError(f"`{argument}` must {expected}, got {type(table).__name__}.")
    if hasattr(table, "collect") and not hasattr(table, "__arrow_c_stream__"):
        raise ValueError(f"`{argument}` must be a table, got a lazy one; pass `{argument}.collect()`.")
    if hasattr(table, "iloc"):
        names = [str(label) for label in table.columns]
        _check_names(names)
        convert = functools.partial(pa.Table.from_pandas, table, preserve_index=False)
        arrow = _converted(convert, names, lambda place: table.iloc[:, place])
    elif isinstance(table, Mapping):
        names, columns = [str(label) for label in table], list(table.values())
        _check_names(names)
        arrow = _converted(lambda: pa.table(dict(zip(names, columns, strict=True))), names, columns.__getitem__)
    else:
        arrow = pa.table(table)
        _check_names(arrow.column_names)
    if any(column.num_chunks > _MOST_CHUNKS for column in arrow.columns):
        arrow = arrow.combine_chunks()
    return arrow.replace_schema_metadata(None)


def _converted(convert: Callable[[], pa.Table], names: list[str], column: Callable[[int], Any]) -> pa.Table:
    """Returns the table; where Arrow refuses a column, it is converted alone, so that an error names it."""
    try:
        return convert()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.table({name: as_array(f"column {name!r}", column(place)) for place, name in enumerate(names)})


def as_array(what: str, values: Any) -> Any:
    """Returns values as an Arrow array.

    Args:
      what: Names the values, for messages.
      values: The values.
    """
    if hasattr(getattr(values, "dtype", None), "fill_value"):  # a sparse array of pandas
        values = np.asarray(values)
    try:
        try:
            return pa.array(values, from_pandas=True)
        except OverflowError:  # integers of more than 64 bits
            large = pa.decimal256(76, 0)
            is_nested = any(np.ndim(value) for value in values)
            return pa.array(values, pa.list_(large) if is_nested else large, from_pandas=True)
    except pa.ArrowNotImplementedError:
        got = getattr(values, "dtype", type(values).__name__)
        raise ValueError(f"{what} must be {_FEATURE_KINDS}, got the type {got}.") from None
    except UnicodeDecodeError:  # fixed-width text of NumPy
        return as_array(what, values.astype(object))
    except UnicodeEncodeError as error:
        row = next(row for row, value in enumerate(values) if repr(error.object) in repr(value))  # also within a set
        raise ValueError(f"{what} must be text that UTF-8 has, got {shown(error.object)} in row {row}.") from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{what} must have values of one type: {' '.join(map(str, error.args))}") from None


def _check_names(names: list[str]) -> None:
    name, number = max(collections.Counter(names).items(), key=operator.itemgetter(1), default=("", 0))
    if number > 1:
        raise ValueError(f"`table` must have each column once, got {name!r} {number} times.")
    for name in names:
        if any("\ud800" <= char <= "\udfff" for char in name):
            raise ValueError(f"`table` must have names of columns that UTF-8 has, got {name!r}.")


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
    columns: dict[str, Any] = {roles.query: query_ids(where(roles.query), table[roles.query])}
    for name in (*roles.labels, roles.weight, roles.propensity):
        if name is not None:
            columns[name] = _numbers(where(name), table[name], ">" if name == roles.propensity else ">=")
    if roles.position is not None:
        columns[roles.position] = _numbers(where(roles.position), table[roles.position], whole=True)
    if roles.document_id is not None:
        ids = _ids(where(roles.document_id), table[roles.document_id])
        columns[roles.document_id] = ids if value_type(ids.type) in TEXTS else id_text(where(roles.document_id), ids)
    if stack:
        matrix = np.empty((len(table), len(roles.features)), np.float32)
        for place, name in enumerate(roles.features):
            matrix[:, place] = _numbers(where(name), table[name]).to_numpy()
        columns[DENSE] = dense_column(matrix)
    else:
        for name in roles.features:
            # A feature may have another role, too, such as the query.
            columns.setdefault(name, feature(where(name), table[name], part))
    return pa.table(columns)


def shown(value: Any) -> str:
    """Returns a representation of at most one line."""
    # NumPy's scalars have longer representations than Python's.
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def warn(message: str) -> None:
    """Warns at the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tfr_smooth":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def refuse(where: Where, expected: str, value: Any, row: int) -> NoReturn:
    """Raises an error about a value."""
    got = shown(value.as_py() if isinstance(value, pa.Scalar) else value)
    raise ValueError(f"{where} must be {expected}, got {got} in row {where.first_row + row}.")


def refuse_where(wrong: Any, where: Where, expected: str, column: Any) -> None:
    """Raises an error about the first value that is wrong, if any."""
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        refuse(where, expected, column[row], row)


def id_text(where: Where, column: Any) -> Any:
    """Returns ids or categories as text, the same for all types and units that a value may have.

    Whole numbers have no decimal point, dates no fraction or time of only zeros.

    Args:
      where: Describes the column, for messages.
      column: Text, numbers, booleans, dates or intervals of these.

    Raises:
      ValueError: If the values are of another type.
    """
    kind, text = column.type, pa.large_string()
    given = value_type(kind)
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([id_text(where, chunk) for chunk in column.chunks], text)
    if pa.types.is_decimal(kind):
        return by_value(column, _decimal_text, text)
    if pa.types.is_floating(kind):
        numbers = without(column, pc.is_nan(column))  # Singles are written with their digits, .1 as "0.1".
        whole = pc.and_(pc.equal(numbers, pc.round(numbers)), pc.less(pc.abs(numbers), 2.0**63))
        integers = pc.if_else(whole, numbers, pa.scalar(0.0, kind)).cast(pa.int64())
        return pc.if_else(whole, integers.cast(text), number_text(numbers.cast(text)))
    if given == "date":
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp(kind.unit))  # without a time zone: in UTC
        return pc.replace_substring_regex(column.cast(text), r"(\.\d*[1-9])0+$|(?: 00:00:00)?(?:\.0+)?$", r"\1")
    if getattr(kind, "extension_name", "") == _INTERVAL:
        ends = [id_text(where, end) for end in column.storage.flatten()]
        first, last = "[("[kind.closed in ("right", "neither")], ")]"[kind.closed in ("right", "both")]
        joined = pc.binary_join_element_wise(*ends, pa.scalar(", ", text))
        return pc.binary_join_element_wise(pa.scalar(first, text), joined, pa.scalar(last, text), pa.scalar("", text))
    if given in (*NUMBERS, *TEXTS):
        return column.cast(text)
    raise ValueError(f"{where} must have ids or categories as text, numbers or dates, got the type {kind}.")


def number_text(texts: Any) -> Any:
    """Returns numbers in text in the form of `id_text`: 7 for +7.0 and 7e0."""
    if not pc.any(pc.invert(pc.match_substring_regex(texts, _WHOLE))).as_py():
        return texts
    return by_value(texts, lambda text: _decimal_text(decimal.Decimal(text)), pa.large_string())


def by_value(values: Any, function: Callable[[Any], Any], kind: pa.DataType) -> Any:
    """Returns what a function returns for each different known value, in the form of the values."""
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([by_value(values.combine_chunks(), function, kind)], kind)
    codes = values.dictionary_encode()
    return pa.array(map(function, codes.dictionary.to_pylist()), kind).take(codes.indices)


def _decimal_text(value: decimal.Decimal) -> str:
    text = format(value, "f")  # Arrow would write some with an exponent.
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def plain(where: Where, column: Any) -> Any:
    """Returns a column without dictionaries, views and half floats, which not all functions of Arrow take."""
    kind = column.type
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if pa.types.is_dictionary(kind):  # Categories are text, also if they are numbers.
        texts = [id_text(where, chunk.dictionary).take(chunk.indices) for chunk in chunks]
        return pa.chunked_array(texts, pa.large_string())
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == _INTERVAL:
            return id_text(where, column)
        return pa.chunked_array([chunk.storage for chunk in chunks], kind.storage_type)
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(38, kind.scale))
    if pa.types.is_float16(kind) or pa.types.is_null(kind):
        return column.cast(pa.float32())
    return column


def _ids(where: Where, column: Any) -> Any:
    """Returns a column of ids; decimals are text, which holds all their digits."""
    column = plain(where, column)
    return id_text(where, column) if pa.types.is_decimal(column.type) else column


def query_ids(where: Where, column: Any) -> Any:
    """Returns a column of query ids, without missing values."""
    column = _ids(where, column)
    given = value_type(column.type)
    column = pc.utf8_trim_whitespace(column) if given == "text" else column
    refuse_where(pc.is_null(column, nan_is_null=True), where, "query ids without missing values", column)
    if given not in (*NUMBERS, *TEXTS, "date"):
        raise ValueError(f"{where} must be query ids as numbers or text, got the type {column.type}.")
    return column


def _numbers(where: Where, column: Any, sign: str = "", *, whole: bool = False) -> Any:
    """Returns a column of finite numbers as float32, or of whole ones >= 0 as int32.

    Args:
      where: Describes the column, for messages.
      column: The column.
      sign: ">" or ">=" if the numbers must be above or at least 0.
      whole: Whether they must be whole numbers >= 0.
    """
    column = plain(where, column)
    given = value_type(column.type)
    if given in TEXTS:
        values = ", ".join(shown(value) for value in pc.unique(column).to_pylist()[:_MOST_SHOWN])
        hint = "convert them to numbers, such as by `map({'no': 0, 'yes': 1})` of pandas"
        raise ValueError(f"{where} must be numbers or booleans, got text such as {values}: {hint}.")
    if given not in NUMBERS:
        raise ValueError(f"{where} must be numbers, got the type {column.type}.")
    expected = "finite float32 numbers" + (f" {sign} 0" if sign else "")
    known = pc.fill_null(column.cast(pa.float64() if whole else pa.float32(), safe=False), np.nan)
    good = pc.is_finite(known)
    if whole:
        most = np.iinfo(np.int32).max
        expected, sign = f"whole numbers from 0 to {most}", ">="
        good = pc.and_(pc.equal(known, pc.round(known)), pc.less_equal(known, most))
    if sign:
        good = pc.and_(good, (pc.greater if sign == ">" else pc.greater_equal)(known, 0.0))
    refuse_where(pc.invert(good), where, expected, column)
    return known.cast(pa.int32()) if whole else known


def vectors_of_one_length(column: Any) -> Any:
    """Returns sets of numbers as vectors if they have one size, and other columns as they are."""
    if value_type(column.type) != "set" or value_type(column.type.value_type) not in NUMBERS:
        return column
    lengths = pc.min_max(pc.list_value_length(column)).as_py()
    if lengths["min"] != lengths["max"] or not lengths["min"]:
        return column
    return column.cast(pa.list_(column.type.value_type, lengths["min"]))


def feature(where: Where, column: Any, part: bool = False) -> Any:
    """Returns a feature column, which must have finite or missing values, in a type of `Lists`.

    Args:
      where: Describes the column, for messages.
      column: The column.
      part: Whether it is one of several parts, which get the same type.
    """
    kind = column.type
    nested = value_type(kind) in NESTED
    if pa.types.is_duration(kind):
        column = pc.divide(column.cast(pa.duration("us"), safe=False).cast(pa.int64()), _MICROSECONDS_PER_DAY)
    elif not nested:
        column = plain(where, column)
    elif pa.types.is_null(kind.value_type) and not part:  # such as the empty set of a table of one row
        return pa.chunked_array([pa.nulls(len(column), pa.float32())])
    elif pa.types.is_string_view(kind.value_type):
        column = column.cast(pa.list_(pa.large_string()))
    elif not part:
        column = vectors_of_one_length(column)
    kind = column.type
    values = kind.value_type if nested else kind
    allowed = {"vector": NUMBERS, "set": (*NUMBERS, *TEXTS)}.get(value_type(kind), (*NUMBERS, *TEXTS, "date"))
    if value_type(values) not in allowed:
        raise ValueError(f"{where} must be {_FEATURE_KINDS}, got the type {kind}.")
    if pa.types.is_floating(values):
        numbers = pc.list_flatten(column) if nested else column
        singles = numbers.cast(pa.float32(), safe=False)
        place = pc.index(pc.is_inf(singles), True).as_py()
        if place >= 0:
            row = pc.list_parent_indices(column)[place].as_py() if nested else place
            refuse(where, "finite float32 numbers or missing", numbers[place], row)
    return column


def check_differences(what: str, numbers: np.ndarray) -> None:
    """Checks that the numbers of a training set still differ as float32, such as times in seconds since 1970.

    Args:
      what: Names the column, for the message.
      numbers: The numbers, NaN if missing.

    Raises:
      ValueError: If float32 leaves less than half of the different values in a sample, and less than 16.
    """
    sample = numbers[:: len(numbers) // _SAMPLED + 1].astype(np.float64)
    known = sample[np.isfinite(sample)]
    # Smaller differences are rounding errors of float64.
    given = len(np.unique(np.round(known / np.abs(known).max(initial=np.finfo(np.float64).tiny), 12)))
    left = len(np.unique(known.astype(np.float32)))
    if left < min(given / 2, _ENOUGH):
        raise ValueError(
            f"{what} must be numbers that differ as float32, got {given} different ones, of which float32 keeps "
            f"{left}. Pass times as dates and ids as text, or subtract the lowest number."
        )
