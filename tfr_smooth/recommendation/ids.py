"""Ids of users and items: unique, in the type that training learned."""

from __future__ import annotations

import collections
import functools
import json
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from tfr_smooth.data.reading.ids import listed, read_ids

T = TypeVar("T")


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
