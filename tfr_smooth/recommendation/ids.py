"""Ids of users and items: unique integers or strings."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def checked_ids(name: str, ids: Any, count: int | None) -> np.ndarray:
    """Returns unique ids as int64, or strings as objects; None is 0, 1, ..."""
    if ids is None:
        return np.arange(count or 0)
    ids = list(ids.tolist() if isinstance(ids, np.ndarray) else ids)
    if count is not None and len(ids) != count:
        raise ValueError(f"`{name}` must have one id for each of {count}, got {len(ids)}.")
    if all(isinstance(value, str) for value in ids):
        values = np.empty(len(ids), object)
        values[:] = ids
    elif all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in ids):
        try:
            values = np.asarray(ids, np.int64)
        except OverflowError:
            raise ValueError(f"`{name}` must be integers of 64 bits or strings, got longer ones.") from None
    else:
        kinds = sorted({type(value).__name__ for value in ids})
        raise ValueError(f"`{name}` must be integers or strings, got {', '.join(kinds)}.")
    unique = set(ids)
    if len(unique) != len(ids):
        again = collections.Counter(ids).most_common(1)[0][0]
        raise ValueError(f"`{name}` must be unique, got {again!r} twice.")
    filler = "" if values.dtype == object else -1
    if name in ("items", "item_ids") and filler in unique:
        raise ValueError(f"`{name}` must not contain {filler!r}, which pads lists of items: give this item another id.")
    return values


def ids_after(ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns ids, and then those others that are not among them."""
    return checked_ids("ids", dict.fromkeys([*ids.tolist(), *others.tolist()]), None)


def indices_of(what: str, known: np.ndarray, ids: Iterable[Any]) -> np.ndarray:
    """Returns the places of ids, int64 [ids], and raises a `ValueError` for an unknown one."""
    ids = listed(f"{what}s", ids)
    places = places_of(f"{what}s", ids, known)
    if (places < 0).any():
        raise ValueError(f"`{what}s` must be known ids, got {ids[(places < 0).argmax()]!r}.")
    return places


def places_of(name: str, ids: Any, known: np.ndarray) -> np.ndarray:
    """Returns the places of ids among the known ones, int64 [ids]; -1 for unknown ids."""
    ids, is_text = listed(name, ids), known.dtype == object
    for value in ids:
        if isinstance(value, str) != is_text or not isinstance(value, (str, int, np.integer)):
            expected = "strings" if is_text else "integers"
            raise ValueError(f"`{name}` must be {expected}, as the ids of the training are, got {value!r}.")
    places = {value: place for place, value in enumerate(known.tolist())}
    return np.array([places.get(value, -1) for value in ids], np.int64)


def listed(name: str, ids: Any) -> list[Any]:
    """Returns ids as a list."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ValueError(f"`{name}` must be a list of ids, got {ids!r}.")
    return list(ids)


def named_pair(user_ids: np.ndarray, item_ids: np.ndarray, user: int, item: int) -> str:
    """Returns the ids of a pair for messages."""
    return f"user {user_ids[[user]].tolist()[0]!r} and item {item_ids[[item]].tolist()[0]!r}"


def ids_to_arrays(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Returns ids as integers, or strings as their bytes in UTF-8 and the end of each."""
    if ids.dtype != object:
        return {name: ids}
    texts = [text.encode("utf-8", "surrogatepass") for text in ids]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {name: np.frombuffer(b"".join(texts), np.uint8), f"{name}_ends": ends}


def ids_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> list[Any]:
    """Returns the ids of `ids_to_arrays`."""
    if f"{name}_ends" not in arrays:
        return arrays[name].tolist()
    content, ends = arrays[name].tobytes(), [0, *arrays[f"{name}_ends"].tolist()]
    if ends[-1] != len(content) or sorted(ends) != ends:
        raise ValueError(f"`{name}_ends` must ascend to the {len(content)} bytes of `{name}`.")
    return [content[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise(ends)]
