"""Ids of users and items, from whatever holds them: integers of 64 bits, or text."""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth.data.column_values import value_type
from tfr_smooth.data.reading import checks

# An integer whose text is the only one of its value, so that the text can be restored.
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_EXACT = 2**53  # Larger floats may be rounded integers.


def plain_id(value: Any) -> Any:
    """Returns an id as an integer or text; None for what is no id, such as a fraction, a boolean or a missing value."""
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    if isinstance(value, (str, bytes)):
        return value.decode() if isinstance(value, bytes) else str(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (float, np.floating)) and abs(float(value)) < _EXACT or isinstance(value, decimal.Decimal):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, (datetime.date, np.datetime64)) and value == value:  # not NaT
        return checks.id_text(checks.Where("`ids`"), checks.as_array("`ids`", [value])).to_pylist()[0]
    return None


def plain_array(column: Any) -> Any:
    """Returns a column as an Arrow array without a dictionary and views, which not all functions of Arrow take."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        return plain_array(column.dictionary).take(column.indices)
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def read_ids(what: str, ids: Any, *, is_text: bool | None = None, rows: bool = True) -> np.ndarray:
    """Returns ids in one type: 7, 7.0 and "7" are one id, "007" is another.

    Args:
      what: Names the ids, for messages.
      ids: Integers, whole numbers, text or dates, in a list, an array or a column of any library.
      is_text: Whether ids are text, as those of the training are; others are converted exactly, or refused. None:
        integers if all are whole numbers of 64 bits, else text.
      rows: Whether the message names the place of a wrong id.

    Returns:
      int64 [ids], or text as objects.

    Raises:
      ValueError: If an id is missing, a boolean, a fraction or of another type, or cannot be an integer.
    """
    given = listed(what, ids)
    values = given if set(map(type, given)) <= {int, str} else [plain_id(value) for value in given]
    expected = "integers or text" if is_text is None else "text" if is_text else "integers of 64 bits"
    expected += ", as the ids of the training are" * (is_text is not None)
    if is_text is None:
        is_text = any(isinstance(value, str) or as_integer(value) is None for value in values)
    if not is_text:
        values = [as_integer(value) for value in values]
    if None in values:
        row = values.index(None)
        raise ValueError(f"{what} must be {expected}, got {checks.shown(given[row])}{f' in row {row}' * rows}.")
    if not is_text:
        return np.array(values, np.int64)
    return np.array(list(map(str, values)), object)


def as_integer(value: Any) -> int | None:
    """Returns an integer of 64 bits, also of its text; None for other values."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def listed(what: str, values: Any) -> list[Any]:
    """Returns ids, or lists of ids, as a list."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = plain_array(values)
        # Python has no nanoseconds.
        return (checks.id_text(checks.Where(what), values) if value_type(values.type) == "date" else values).to_pylist()
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufUSO":
        return values.tolist()
    if not _is_list(values):
        raise ValueError(f"{what} must be a list of ids, got {checks.shown(values)}.")
    return list(values)


def id_lists(what: str, lists: Any, count: int) -> list[list[Any]]:
    """Returns one list of ids for all users, or one per user.

    Args:
      what: Names the ids, for messages.
      lists: A list of ids, or a list of lists; each may also be an array, a column, a set or a generator.
      count: The number of users.

    Returns:
      One list, or as many as there are users.

    Raises:
      ValueError: If there are lists for another number of users, or ids beside lists.
    """
    values = listed(what, lists)
    if not any(map(_is_list, values)):
        return [values]
    if len(values) != count:
        expected = f"one list of ids for all users, or one list for each of the {count} users"
        raise ValueError(f"{what} must be {expected}, got {len(values)} list{'s' * (len(values) != 1)}.")
    return [listed(what, ids) for ids in values]


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
