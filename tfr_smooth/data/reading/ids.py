"""Ids of users and items, from whatever holds them: integers of 64 bits, or text."""

from __future__ import annotations

import collections
import datetime
import decimal
import functools
import json
import math
import numbers
import re
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tfr_smooth.data.column_values import value_type
from tfr_smooth.data.reading import checks

# An integer whose text is the only one of its value, so that the text can be restored.
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_EXACT = 2**53  # Larger floats may be rounded integers.
T = TypeVar("T")


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


def once_per_array(function: Callable[[np.ndarray], T]) -> Callable[[np.ndarray], T]:
    """Decorates a function of ids, whose result for an array is kept as long as the array."""
    kept: dict[int, T] = {}

    @functools.wraps(function)
    def call(ids: np.ndarray) -> T:
        if id(ids) not in kept:
            kept[id(ids)] = function(ids)
            weakref.finalize(ids, kept.pop, id(ids), None)
        return kept[id(ids)]

    return call


def checked_ids(name: str, ids: Any, count: int | None, *, like: np.ndarray | None = None) -> np.ndarray:
    """Returns unique ids as int64, or text as objects; None is 0, 1, ...

    Args:
      name: The argument or attribute.
      ids: The ids.
      count: Their number, None for any.
      like: Ids whose type these have; None for the type that `read_ids` finds.
    """
    if ids is None:
        return np.arange(count or 0)
    values = read_ids(f"`{name}`", ids, is_text=None if like is None else like.dtype == object)
    if count is not None and len(values) != count:
        raise ValueError(f"`{name}` must have one id for each of {count}, got {len(values)}.")
    unique = set(values.tolist())
    if len(unique) != len(values):
        again = collections.Counter(values.tolist()).most_common(1)[0][0]
        raise ValueError(f"`{name}` must be unique, got {again!r} twice.")
    filler = "" if values.dtype == object else -1
    if name in ("items", "item_ids") and filler in unique:
        raise ValueError(f"`{name}` must not contain {filler!r}, which pads lists of items: give this item another id.")
    return values


def ids_after(name: str, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns ids, and then those others that are not among them, in their type."""
    others = checked_ids(name, others, None, like=ids)
    return np.concatenate([ids, others[places_of(name, others, ids) < 0]])


def indices_of(what: str, known: np.ndarray, ids: Iterable[Any]) -> np.ndarray:
    """Returns the places of ids, int64 [ids], and raises a `ValueError` for an unknown one."""
    ids = listed(f"`{what}s`", ids)
    places = places_of(f"{what}s", ids, known)
    if (places < 0).any():
        raise ValueError(f"`{what}s` must be known ids, got {ids[(places < 0).argmax()]!r}.")
    return places


def places_of(name: str, ids: Any, known: np.ndarray, *, rows: bool = True) -> np.ndarray:
    """Returns the places of ids among the known ones, int64 [ids]; -1 for unknown ids."""
    values = read_ids(f"`{name}`", ids, is_text=known.dtype == object, rows=rows)
    places = _places(known)
    return np.array([places.get(value, -1) for value in values.tolist()], np.int64)


@once_per_array
def _places(ids: np.ndarray) -> dict[Any, int]:
    return {value: place for place, value in enumerate(ids.tolist())}


def named_pair(user_ids: np.ndarray, item_ids: np.ndarray, user: int, item: int) -> str:
    """Returns the ids of a pair for messages."""
    return f"user {user_ids[[user]].tolist()[0]!r} and item {item_ids[[item]].tolist()[0]!r}"


def ids_to_array(ids: np.ndarray) -> np.ndarray:
    """Returns ids as integers, or text as bytes, which have no width of the longest one."""
    return ids if ids.dtype != object else np.frombuffer(json.dumps(ids.tolist()).encode(), np.uint8)


def ids_from_array(array: np.ndarray) -> list[Any]:
    """Returns the ids of `ids_to_array`."""
    return json.loads(array.tobytes()) if array.dtype == np.uint8 else array.tolist()
