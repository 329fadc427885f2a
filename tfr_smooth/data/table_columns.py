"""Columns learned from a training table, and the raw values of tables in them."""

from __future__ import annotations

import collections
import datetime
import decimal
import difflib
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.column import DTYPES, KINDS, MISSING, Column, listed, shown

# The kinds of values that a column of this kind accepts.
_ACCEPTED = {"number": ("number", "boolean"), "boolean": ("boolean", "number")}
_KIND_BY_DTYPE = {"i": "number", "u": "number", "f": "number", "b": "boolean", "M": "date"}
_SECONDS_PER_DAY = 86400.0
_ROWS_AT_ONCE = 2**16


def infer_columns(frame: Any, *, max_categories: int = 100) -> list[Column]:
    """Returns the columns of a training table, with their kinds, means and categories.

    Integers and floats are numbers; text and categorical columns are categories; timestamps and dates are dates, in UTC
    if they have no time zone. NaN, None, NaT, NA and empty text are missing values.

    Args:
      frame: A pandas DataFrame, or a table with a `to_pandas` method, with unique string column names.
      max_categories: The number of categories per column, >= 1: the most frequent ones, ties in the order of the text.
        Other categories count as unseen.

    Returns:
      One column per column of the table, in order.

    Raises:
      ValueError: If a column has values of another type or different types, no known values, an infinite number, or a
        name that is not a string or not unique. The message names the column.

    Time O(rows * columns).

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import data
      >>> frame = pd.DataFrame({"price": [1.0, None, 3.0], "brand": ["b", "a", "a"]})
      >>> price, brand = data.infer_columns(frame)
      >>> price.kind, price.fill, price.has_missing, brand.categories
      ('number', 2.0, True, ('a', 'b'))
    """
    frame = to_pandas(frame)
    most = _arguments.integer("max_categories", max_categories, least=1)
    names = list(frame.columns)
    if not names:
        raise ValueError("`frame` must have at least one column, got none.")
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"`frame` must have column names that are strings and not empty, got {name!r}.")
        _check_once(name, names)
    return [_infer(name, frame[name], most) for name in names]


def column_arrays(frame: Any, columns: Iterable[Column]) -> dict[str, np.ndarray]:
    """Returns the raw values of the columns of a table, as a model with `models.TableFeatures` takes them.

    Args:
      frame: A pandas DataFrame, or a table with a `to_pandas` method. Further columns are ignored.
      columns: The columns, as from `infer_columns`.

    Returns:
      Name -> values [rows]: numbers and booleans as float32, NaN if missing; categories as objects of type str, "" if
      missing; dates as int64 seconds since 1970-01-01 UTC, the smallest int64 if missing.

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
      {'price': [2.5], 'brand': ['']}
    """
    frame = to_pandas(frame)
    names, arrays = list(frame.columns), {}
    columns = list(columns)
    for column in columns:
        name = column.name
        if name not in names:
            others = [str(other) for other in extra_columns(frame, columns)]
            near = difflib.get_close_matches(name, others, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"`frame` must have the column {name!r}, got the columns {listed(names)}.{hint}")
        _check_once(name, names)
        series = frame[name]
        known = series.notna().to_numpy(bool)
        kinds = _kinds(series, known)
        wrong = [row for kind, row in kinds.items() if kind not in _ACCEPTED.get(column.kind, (column.kind,))]
        if wrong:
            _refuse(series, KINDS[column.kind], wrong[0])
        arrays[name] = _raw(column.kind, series, known)
    return arrays


def extra_columns(frame: Any, columns: Iterable[Column], allowed: Sequence[str] = ()) -> list[str]:
    """Returns the names of the columns of a table that a model does not use.

    Args:
      frame: A pandas DataFrame, or a table with a `to_pandas` method.
      columns: The columns of the model.
      allowed: Names of further columns that do not count, such as that of the query ids.

    Returns:
      The names of the other columns, in order.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import data
      >>> frame = pd.DataFrame({"query": [7], "price": [1.0], "Brand": ["a"]})
      >>> data.extra_columns(frame, [data.Column(name="price", kind="number")], allowed=["query"])
      ['Brand']
    """
    used = {column.name for column in columns} | set(allowed)
    return [name for name in to_pandas(frame).columns if name not in used]


def from_matrix(features: Any, *, names: Sequence[str] | None = None) -> list[Column]:
    """Returns the columns of a training matrix of numbers.

    Args:
      features: Numbers [rows, num_features], finite as float32 or NaN for missing values.
      names: Unique names of the features. None uses "1" to the number of features.

    Returns:
      One column of the kind "number" per feature.

    Raises:
      ValueError: If the matrix has another shape or type, an infinite number, or a column without known values, or the
        names do not match.

    Time O(rows * num_features).

    Example:
      >>> from tfr_smooth import data
      >>> [column.fill for column in data.from_matrix([[1.0, float("nan")], [2.0, 5.0]])]
      [1.5, 5.0]
    """
    matrix = np.asarray(features)
    if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind not in "biufO":
        raise ValueError(
            f"`features` must be numbers [rows, num_features], got {matrix.dtype} of shape {matrix.shape}."
        )
    width = matrix.shape[1]
    given = [str(number) for number in range(1, width + 1)] if names is None else list(names)
    if isinstance(names, str) or len(given) != width or len(set(given)) < width:
        raise ValueError(f"`names` must be {width} unique names, got {shown(names)}.")
    totals, counts = np.zeros(width), np.zeros(width, int)
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        try:
            with np.errstate(over="ignore"):  # Infinities are reported below.
                rows = matrix[start : start + _ROWS_AT_ONCE].astype(np.float32)
        except (TypeError, ValueError) as error:
            raise ValueError(f"`features` must be numbers: {error}.") from None
        wrong = np.argwhere(np.isinf(rows))
        if len(wrong):
            row, place = wrong[0]
            raise ValueError(
                f"`features` must be finite float32 numbers or NaN, got {rows[row, place]} in the column "
                f"{given[place]!r}, row {start + row}."
            )
        missing = np.isnan(rows)
        totals += np.where(missing, 0.0, rows).sum(axis=0, dtype=np.float64)
        counts += (~missing).sum(axis=0)
    for name, count in zip(given, counts, strict=True):
        if not count:
            raise ValueError(f"`features` must have a known value in each column, got none in the column {name!r}.")
    fills = (totals / counts).tolist()
    return [
        Column(name=name, kind="number", fill=fill, has_missing=bool(count < len(matrix)))
        for name, fill, count in zip(given, fills, counts, strict=True)
    ]


def to_pandas(frame: Any) -> Any:
    """Returns a table of pandas, Polars or PyArrow as a DataFrame.

    Args:
      frame: A pandas DataFrame, or a table with a `to_pandas` method.

    Returns:
      The DataFrame.

    Raises:
      ValueError: If `frame` is neither.
    """
    if hasattr(frame, "iloc"):
        return frame
    if not hasattr(frame, "to_pandas"):
        raise ValueError(
            f"`frame` must be a pandas DataFrame or have a `to_pandas` method, got {type(frame).__name__}."
        )
    return frame.to_pandas()


def column_names(role: str | Iterable[str] | None) -> list[str]:
    """Returns the names of the columns of a role, which may be one name, several, or None."""
    return [] if role is None else [role] if isinstance(role, str) else list(role)


def _infer(name: str, series: Any, max_categories: int) -> Column:
    known = series.notna().to_numpy(bool)
    kinds = _kinds(series, known)
    if set(kinds) == {"number", "boolean"}:
        kinds.pop("boolean")
    if len(kinds) > 1 or not set(kinds) <= set(KINDS):
        row = max(kinds.values()) if set(kinds) <= set(KINDS) else kinds[""]
        _refuse(series, "only numbers, only text, only booleans or only dates", row)
    kind = next(iter(kinds), "number")
    raw = _raw(kind, series, known)
    missing = raw == MISSING[kind] if kind in ("category", "date") else np.isnan(raw)
    if missing.all():
        raise ValueError(f"`frame` must have known values in each column, got only missing ones in {name!r}.")
    values, has_missing = raw[~missing], bool(missing.any())
    if kind == "category":
        counts = collections.Counter(values.tolist())
        texts = sorted(counts, key=lambda text: (-counts[text], text))[:max_categories]
        return Column(name=name, kind=kind, has_missing=has_missing, categories=tuple(texts))
    fill = float(values.mean(dtype=np.float64)) / (_SECONDS_PER_DAY if kind == "date" else 1.0)
    return Column(name=name, kind=kind, fill=fill, has_missing=has_missing)


def _kinds(series: Any, known: np.ndarray) -> dict[str, int]:
    """Returns the first row of the known values of each kind, with the kind "" for values of other types."""
    rows = np.flatnonzero(known)
    if not len(rows):
        return {}
    if _is_categorical(series):
        return {"category": int(rows[0])}
    if series.dtype.kind != "O":
        return {_KIND_BY_DTYPE.get(series.dtype.kind, ""): int(rows[0])}
    first: dict[type, int] = {}
    for row, kind_of_value in zip(rows.tolist(), map(type, series.to_numpy(object)[known]), strict=True):
        first.setdefault(kind_of_value, row)
    kinds: dict[str, int] = {}
    for each, row in first.items():
        kinds.setdefault(_kind_of_type(each), row)
    return kinds


def _kind_of_type(kind: type) -> str:
    if issubclass(kind, bool | np.bool_):
        return "boolean"
    if issubclass(kind, numbers.Real | decimal.Decimal) and not issubclass(kind, np.timedelta64):
        return "number"
    if issubclass(kind, str):
        return "category"
    return "date" if issubclass(kind, datetime.date | np.datetime64) else ""


def _raw(kind: str, series: Any, known: np.ndarray) -> np.ndarray:
    """Returns the raw values of a column whose known values are of an accepted kind."""
    raw = np.full(len(series), MISSING[kind], object if kind == "category" else DTYPES[kind].as_numpy_dtype)
    if not known.any():
        return raw
    if kind == "category":
        if _is_categorical(series):
            texts = np.array([*map(_text, series.cat.categories), ""], object)
            return texts[series.cat.codes.to_numpy()]  # -1 if missing
        raw[known] = series.to_numpy(object)[known]
    elif kind == "date":
        if getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_convert(None)
        dates = series.to_numpy()[known]
        if dates.dtype.kind != "M":
            dates = np.array([_utc(value) for value in dates], "datetime64[us]")
        raw[known] = dates.astype("datetime64[s]").astype(np.int64)
    else:
        with np.errstate(over="ignore"):  # Infinities are reported below.
            raw[known] = series.to_numpy(object if series.dtype.kind == "O" else np.float64, na_value=np.nan)[known]
        infinite = np.flatnonzero(np.isinf(raw))
        if len(infinite):
            _refuse(series, "finite float32 numbers", infinite[0])
        other = np.flatnonzero(known & (raw != 0.0) & (raw != 1.0))
        if kind == "boolean" and len(other):
            _refuse(series, "booleans", other[0])
    return raw


def _is_categorical(series: Any) -> bool:
    return hasattr(series, "cat")


def _text(category: Any) -> str:
    """Returns the text of a category; a whole number has the same as an integer and as a float."""
    is_whole = isinstance(category, float) and category.is_integer()
    return str(int(category) if is_whole else category)


def _utc(value: Any) -> np.datetime64:
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _check_once(name: str, names: Sequence[Any]) -> None:
    if names.count(name) > 1:
        raise ValueError(f"`frame` must have each column once, got {name!r} {names.count(name)} times.")


def _refuse(series: Any, expected: str, row: int) -> NoReturn:
    label, value = series.index[row], series.iloc[row]
    raise ValueError(
        f"`frame` must have {expected} in the column {series.name!r}, got {shown(value)} in row {shown(label)} "
        f"(type {series.dtype})."
    )
