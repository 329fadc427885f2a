"""Numbers the users and items of several sources together, and merges their pairs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tfr_smooth.data.reading.checks import shown
from tfr_smooth.data.reading.ids import are_integers, plain_id
from tfr_smooth.recommendation.ids import checked_ids, named_pair
from tfr_smooth.recommendation.interactions import counted, from_pairs


class IdTable:
    """Numbers ids in the order of their first use, or by their place in a fixed list.

    Args:
      name: What the ids name: "users" or "items".
      fixed: All possible ids, in their order; None for any.
      from_text: Whether ids are text of a file, which are integers if all are those of integers.
    """

    def __init__(self, name: str, fixed: Iterable[Any] | None, *, from_text: bool) -> None:
        self._name, self._are_integers, self._from_text = name, True, from_text
        self._fixed = None if fixed is None else checked_ids(name, fixed, None)
        known = [] if self._fixed is None else self._fixed.tolist()
        # By their text, which is the same for all types of an id.
        self.numbers = {str(each): number for number, each in enumerate(known)}

    def number(self, value: Any) -> int:
        """Returns the number of an id; raises a `ValueError` if it cannot be an id."""
        number = self.numbers.get(value)  # of text, at once
        if number is not None:
            return number
        plain = plain_id(value)
        if plain is None:
            raise ValueError(f"the {self._name[:-1]} must be a whole number or text, got {shown(value)}")
        number = self.numbers.get(str(plain))
        if number is not None:
            return number
        if plain == "":
            raise ValueError(f"the {self._name[:-1]} is empty")
        if self._fixed is not None:
            raise ValueError(f"{self._name[:-1]} {plain!r} is not in `{self._name}`")
        self._are_integers = self._are_integers and (self._from_text or not isinstance(plain, str))
        return self.numbers.setdefault(str(plain), len(self.numbers))

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids, ascending if they are not fixed, and the final number of each number."""
        if self._fixed is not None:
            return self._fixed, np.arange(len(self._fixed))
        ids: list[Any] = list(self.numbers)
        if self._are_integers and are_integers(ids):
            ids = [int(each) for each in ids]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        final = np.empty(len(ids), np.int64)
        final[order] = np.arange(len(ids))
        return checked_ids(self._name, [ids[place] for place in order], None), final


@dataclasses.dataclass
class Source:
    """The events of a source in their order, with the numbers of an `IdTable`.

    Args:
      name: The source, for messages.
      users: int [events].
      items: int [events].
      times: float64 [events], or None.
      weights: float64 [events], or None.
      ordered: Whether the events of each user are in order of time.
      below_rating: Number of events that were dropped because of a low rating.
      place: Returns where an event is in the source, such as `path:line`.
    """

    name: str
    users: Any
    items: Any
    times: Any
    weights: Any
    ordered: bool
    below_rating: int
    place: Callable[[int], str]


def joined(sources: Sequence[Source], users: IdTable, items: IdTable) -> Any:
    """Returns the interactions of a source, or of each of several sources, which must be disjoint."""
    for source in sources:
        if len(source.items) == 0:
            dropped = f" with a high enough rating among {source.below_rating:,}" if source.below_rating else ""
            raise ValueError(f"{source.name}: no pairs of a user and an item{dropped}")
    user_ids, final_users = users.finish()
    item_ids, final_items = items.finish()
    keys = [final_users[source.users] * len(item_ids) + final_items[source.items] for source in sources]
    unique = [np.unique(each) for each in keys]
    for a, b in itertools.combinations(range(len(sources)), 2):
        both = np.intersect1d(unique[a], unique[b], assume_unique=True)
        if len(both):
            place = sources[b].place(int(np.argmax(keys[b] == both[0])))
            pair = named_pair(user_ids, item_ids, *divmod(int(both[0]), len(item_ids)))
            raise ValueError(f"{place}: {pair} are also in {sources[a].name} ({counted(len(both), 'pair')} in both)")
    parts = []
    for source, pairs, chosen in zip(sources, keys, unique, strict=True):
        counts = {"duplicates": len(pairs) - len(chosen), "below_rating": source.below_rating}
        users_of, items_of = final_users[source.users], final_items[source.items]
        values = source.times, source.weights
        parts.append(from_pairs(users_of, items_of, user_ids, item_ids, *values, ordered=source.ordered, **counts))
    return tuple(parts) if len(parts) > 1 else parts[0]
