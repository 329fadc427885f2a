"""Which users interacted with which items of a catalog, and in which order."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse as sparse

from tfr_smooth import _arguments
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.ids import checked_ids, ids_from_array, ids_to_array, indices_of

# What repeated pairs have of the values of their events.
_MERGES = {"times": np.maximum, "weights": np.add}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Users x items, sparse: a user either interacted with an item or did not.

    Models, evaluation and batches number users and items from 0; `user_ids` and `item_ids` contain their ids. The
    matrix has one entry per pair of a user and an item. With times or an order, a pair has one or more events, such as
    repeated purchases, all of which are in the sequence of the user, as `from_dataframe` and `read_interactions` return
    them.

    Args:
      matrix: [users, items], a SciPy sparse array or matrix, or a dense array, of finite numbers. Values other than 0
        are interactions.
      user_ids: The id of each user, [users], unique integers or strings. None: 0, 1, ...
      item_ids: The id of each item, [items], unique integers or strings, but not -1 or "", which pad lists of items.
        None: 0, 1, ...
      times: The time of each interaction, for sequences and splits by time: [interactions], finite
        numbers in the order of `matrix.indices`. `matrix` must then be in CSR format, with ascending indices in
        each row. None: no times.
      weights: The weight of each interaction, > 0, in the same order: the label of the item in losses. None: 1.

    Attributes:
      matrix: float32 `scipy.sparse.csr_array` [users, items] of ones, with sorted indices.
      user_ids: int64 [users], or strings as objects.
      item_ids: int64 [items], or strings as objects.
      times: float64 [interactions], those of the latest events, or None.
      weights: float64 [interactions], the sums over the events, or None.
      duplicates: Number of further events of the same user and item, which are one pair.
      events: int64 [events], the place of the pair of each event in `matrix.indices`, user by user, the latest event of
        a user last; None if there is no order.
      event_values: The times and weights of the events, float64 [events] by name, if pairs repeat in an order.

    Raises:
      ValueError: If the matrix, the ids, the times or the weights are invalid.

    Memory: 8 bytes per interaction, and 8 more each for times, weights and the order. If pairs repeat, 8 bytes each per
    event for times, weights and the order.

    Example:
      >>> from tfr_smooth import recommendation
      >>> interactions = recommendation.Interactions([[1, 0, 1], [0, 0, 1]], user_ids=["ann", "bob"])
      >>> print(interactions)
      2 users, 3 items, 3 interactions (density 50%); 1 item without users
      >>> interactions.dense([1]).tolist(), interactions.padded([0, 1])[0].tolist()
      ([[False, False, True]], [[0, 2], [2, -1]])
    """

    matrix: Any
    user_ids: Any = None
    item_ids: Any = None
    times: Any = None
    weights: Any = None
    duplicates: int = dataclasses.field(default=0, init=False)
    events: Any = dataclasses.field(default=None, init=False)
    event_values: dict[str, np.ndarray] = dataclasses.field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Brings the fields into one form and checks them."""
        if isinstance(self.matrix, np.ma.MaskedArray):
            raise ValueError("`matrix` must have no mask: pass `matrix.filled(0)`.")
        if len(shape := np.shape(self.matrix)) != 2:  # SciPy before 1.13 makes a row of a vector
            raise ValueError(f"`matrix` must have the shape [users, items], got {shape}.")
        matrix = sparse.csr_array(self.matrix, dtype=np.float32, copy=True)
        if not np.isfinite(matrix.data).all():
            raise ValueError(f"`matrix` must have finite numbers, got {matrix.data[~np.isfinite(matrix.data)][0]}.")
        stored = matrix.nnz
        is_canonical = matrix.has_canonical_format
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        for name in _MERGES:
            if getattr(self, name) is None:
                continue
            object.__setattr__(self, name, _checked_numbers(name, getattr(self, name), stored))
            if not is_canonical or matrix.nnz != stored:
                raise ValueError(f"`matrix` must be in CSR format with ascending indices and no zeros for `{name}`.")
        matrix.data = np.ones_like(matrix.data)
        object.__setattr__(self, "matrix", matrix)
        for name, count in (("user_ids", self.num_users), ("item_ids", self.num_items)):
            object.__setattr__(self, name, checked_ids(name, getattr(self, name), count))
        if self.times is not None:
            object.__setattr__(self, "events", np.lexsort([self.times, self.pairs()["users"]]))

    @property
    def num_users(self) -> int:
        """Number of users."""
        return int(self.matrix.shape[0])

    @property
    def num_items(self) -> int:
        """Number of items of the catalog."""
        return int(self.matrix.shape[1])

    @property
    def num_interactions(self) -> int:
        """Number of pairs of a user and an item."""
        return int(self.matrix.nnz)

    @property
    def items_per_user(self) -> np.ndarray:
        """Number of items of each user, [users]."""
        return np.diff(self.matrix.indptr).astype(np.int64)

    @property
    def users_per_item(self) -> np.ndarray:
        """Number of users of each item, [items]."""
        return np.bincount(self.matrix.indices, minlength=self.num_items)

    def __str__(self) -> str:
        """Returns the counts."""
        counts = [counted(self.num_users, "user"), counted(self.num_items, "item")]
        density = 100 * self.num_interactions / max(self.num_users * self.num_items, 1)
        counts.append(f"{counted(self.num_interactions, 'interaction')} (density {density:.3g}%)")
        notes = [", ".join(counts)]
        for number, singular, what in (
            (int((self.items_per_user == 0).sum()), "user", "without items"),
            (int((self.users_per_item == 0).sum()), "item", "without users"),
            (self.duplicates, "duplicate", "merged"),
        ):
            notes += [f"{counted(number, singular)} {what}"] if number else []
        return "; ".join(notes)

    __repr__ = __str__

    def user_indices(self, ids: Iterable[Any]) -> np.ndarray:
        """Returns the numbers of users.

        Args:
          ids: Ids of users, in any order.

        Returns:
          int64 [ids], indices into `user_ids`.

        Raises:
          ValueError: If an id is unknown.
        """
        return indices_of("user", self.user_ids, ids)

    def item_indices(self, ids: Iterable[Any]) -> np.ndarray:
        """Returns the numbers of items.

        Args:
          ids: Ids of items, in any order.

        Returns:
          int64 [ids], indices into `item_ids`.

        Raises:
          ValueError: If an id is unknown.
        """
        return indices_of("item", self.item_ids, ids)

    def padded(self, users: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the items of users and their weights, as models take them.

        Args:
          users: Indices of users, [batch].

        Returns:
          int32 [batch, longest], ascending indices of items, then -1; and float32 [batch, longest], their weights, then
          0.

        Raises:
          ValueError: If an index is not one of a user.
        """
        rows = self.weighted[self.checked_users(users)]
        return _at(rows, rows.indptr[:-1, np.newaxis] + np.arange(np.diff(rows.indptr).max(initial=0)))

    def latest(self, users: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the latest items of users, as `Recommender(history_items="sequence")` takes them.

        Args:
          users: Indices of users, [batch].
          count: Number of items, >= 1.

        Returns:
          int32 [batch, count], indices of items in order of time, the latest one last, after -1 for padding; and
          float32 [batch, count], their weights, after 0. An item of several events is in several places.

        Raises:
          ValueError: If an argument is invalid, or the events have no order.
        """
        count = _arguments.integer("count", count, least=1)
        self.check_order("interactions", "latest")
        rows = self._in_order[self.checked_users(users)]
        return _at(rows, rows.indptr[1:, np.newaxis] + np.arange(-count, 0))

    def sequences(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns all items of all users in order of time.

        Returns:
          int32 [events], indices of items, user by user, the latest one of each user last; float32 [events], their
          weights; and int64 [users + 1], where the items of each user start and the last ones end.

        Raises:
          ValueError: If the events have no order.

        Example:
          >>> import pandas as pd
          >>> from tfr_smooth import recommendation
          >>> frame = pd.DataFrame({"user": [1, 1, 1, 2], "item": [5, 6, 5, 6], "time": [10, 20, 30, 10]})
          >>> interactions = recommendation.from_dataframe(frame, user="user", item="item", time="time")
          >>> items, weights, starts = interactions.sequences()
          >>> interactions.item_ids[items].tolist(), weights.tolist(), starts.tolist()
          ([5, 6, 5, 6], [1.0, 1.0, 1.0, 1.0], [0, 3, 4])
        """
        self.check_order("interactions", "sequences")
        rows = self._in_order
        return rows.indices.astype(np.int32), rows.data, rows.indptr.astype(np.int64)

    @functools.cached_property
    def _in_order(self) -> Any:
        """The weights of the events as a CSR array whose rows are in order of time, with repeated items."""
        table = self.event_table()
        weights = table.get("weights", np.ones(len(table["items"]))).astype(np.float32)
        ends = np.cumsum(np.bincount(table["users"], minlength=self.num_users))
        return sparse.csr_array((weights, table["items"], np.append(0, ends)), shape=self.matrix.shape)

    def last_events(self) -> np.ndarray:
        """Returns the place of the last event of each pair among the events of its user, < 0, where -1 is the last."""
        places = merged(np.maximum, self.events, np.arange(len(self.events)))
        return places.astype(np.int64) - self._in_order.indptr[1:][self.pairs()["users"]]

    def check_order(self, name: str, needed_by: str) -> None:
        """Checks that the events have an order; `name` is that of the interactions in the message."""
        if self.events is None:
            way_out = "read it with `from_dataframe(..., time=...)` or `read_interactions`"
            raise ValueError(f"`{name}` must have an order for `{needed_by}`, got none: {way_out}.")

    @functools.cached_property
    def weighted(self) -> Any:
        """The weights as a CSR array [users, items]."""
        matrix = self.matrix
        weights = matrix.data if self.weights is None else self.weights.astype(np.float32)
        return sparse.csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)

    def dense(self, users: Any) -> np.ndarray:
        """Returns which items users interacted with: labels, or the mask of the seen items.

        Args:
          users: Indices of users, [batch].

        Returns:
          bool [batch, items].

        Raises:
          ValueError: If an index is not one of a user.
        """
        return self.matrix[self.checked_users(users)].astype(bool).toarray()

    def checked_users(self, users: Any) -> np.ndarray:
        """Returns indices of users as an array of integers, and raises a `ValueError` for others."""
        users = np.asarray(users)
        if users.ndim != 1 or (users.dtype.kind not in "iu" and users.size):
            raise ValueError(f"`users` must be indices of users, [batch], got {users.dtype} of shape {users.shape}.")
        users = users.astype(np.int64)
        wrong = (users < 0) | (users >= self.num_users)
        if wrong.any():
            raise ValueError(f"`users` must be indices below {self.num_users}, got {users[wrong][0]}.")
        return users

    def keeping(self, chosen: np.ndarray) -> Interactions:
        """Returns the interactions that a mask [interactions] chooses, with the same users and items."""
        return self.keeping_events(chosen if self.events is None else chosen[self.events])

    def keeping_events(self, chosen: np.ndarray) -> Interactions:
        """Returns the same of a mask of the events in order, [events]."""
        table = {name: values[chosen] for name, values in self.event_table().items()}
        return from_events(table, self.user_ids, self.item_ids, ordered=self.events is not None)

    def union(self, other: Interactions) -> Interactions:
        """Returns the interactions of both, with the same users and items.

        A pair of both has the latest time and the sum of the weights. Times of only one of them are dropped; the events
        of `other` are then after the own ones.
        """
        first, second = self.event_table(), other.event_table()
        if "weights" in {**first, **second}:
            first, second = ({"weights": np.ones(len(table["users"])), **table} for table in (first, second))
        table = {name: np.concatenate([first[name], second[name]]) for name in first if name in second}
        ordered = self.events is not None and other.events is not None
        return from_events(table, self.user_ids, self.item_ids, ordered=ordered)

    def renumbered(self, user_ids: Any, item_ids: Any) -> Interactions:
        """Returns the interactions with further users and items, or in another order.

        Args:
          user_ids: The ids of all users, which include the own ones.
          item_ids: The same for items.

        Returns:
          The interactions, with the numbers of these ids.

        Raises:
          ValueError: If an own id is missing, or an id is twice.

        Example:
          >>> from tfr_smooth import recommendation
          >>> interactions = recommendation.Interactions([[1, 0]], item_ids=["up", "heat"])
          >>> interactions.renumbered([0], ["alien", "heat", "up"]).matrix.toarray().tolist()
          [[0.0, 0.0, 1.0]]
        """
        ids = checked_ids("user_ids", user_ids, None), checked_ids("item_ids", item_ids, None)
        table = self.event_table()
        table["users"] = indices_of("user", ids[0], self.user_ids.tolist())[table["users"]]
        table["items"] = indices_of("item", ids[1], self.item_ids.tolist())[table["items"]]
        return from_events(table, *ids, ordered=self.events is not None)

    ARRAYS = ("items", "indptr", "ordered", "user_ids", "item_ids", *_MERGES)

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the content as arrays of integers and numbers, as `from_arrays` takes them."""
        arrays = self.event_table()
        del arrays["users"]
        arrays |= {"indptr": self._in_order.indptr.astype(np.int64), "ordered": np.array(self.events is not None)}
        return arrays | {name: ids_to_array(getattr(self, name)) for name in ("user_ids", "item_ids")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Interactions:
        """Returns the interactions of `arrays`; raises a `ValueError` if these do not fit together."""
        user_ids, item_ids = (ids_from_array(arrays[name]) for name in ("user_ids", "item_ids"))
        items, indptr, shape = arrays["items"], arrays["indptr"], (len(user_ids), len(item_ids))
        sparse.csr_array((np.ones(len(items), np.float32), items, indptr), shape=shape).check_format()
        table = {"users": np.repeat(np.arange(shape[0]), np.diff(indptr)), "items": items}
        table |= {name: arrays[name] for name in _MERGES if name in arrays}
        return from_events(table, user_ids, item_ids, ordered=bool(arrays["ordered"]))

    def pairs(self) -> dict[str, np.ndarray]:
        """Returns the "users" and "items" of the pairs, and their "times" and "weights", if they have some."""
        users = np.repeat(np.arange(self.num_users), self.items_per_user)
        table = {"users": users, "items": self.matrix.indices.astype(np.int64)}
        return table | {name: vars(self)[name] for name in _MERGES if vars(self)[name] is not None}

    def event_table(self) -> dict[str, np.ndarray]:
        """Returns the same of the events in order, or of the pairs without order."""
        pairs = self.pairs()
        return pairs if self.events is None else {name: pairs[name][self.events] for name in pairs} | self.event_values

    def check_same_ids(self, name: str, other: Interactions, other_name: str) -> None:
        """Checks that other interactions number the same users and items."""
        for ids in ("user_ids", "item_ids"):
            if not np.array_equal(getattr(self, ids), getattr(other, ids)):
                way = f"read both with one call, or take `renumbered`, with the ids of `{other_name}`"
                raise ValueError(f"`{name}` must have the same `{ids}` as `{other_name}`: {way}.")


def _at(rows: Any, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the items and weights at places [rows, any] of a CSR array; -1 and 0 for places of other rows."""
    own = (places >= rows.indptr[:-1, np.newaxis]) & (places < rows.indptr[1:, np.newaxis])
    items, weights = np.full(own.shape, -1, np.int32), np.zeros(own.shape, np.float32)
    items[own], weights[own] = rows.indices[places[own]], rows.data[places[own]]
    return items, weights


def from_events(
    table: Mapping[str, np.ndarray], user_ids: Any, item_ids: Any, *, ordered: bool = False
) -> Interactions:
    """Returns the interactions of a table as that of `Interactions.event_table`, in which pairs may be repeated.

    A repeated pair has its latest time, the sum of its weights, and several events if there are times or an order: that
    of the times, and the given one for equal times, or without times if `ordered`.
    """
    users, items = table["users"], table["items"]
    # One number per pair, which fits int64 for any number of users and items that fit into memory.
    keys, places = np.unique(users * len(item_ids) + items, return_inverse=True)
    rows, columns = np.divmod(keys, max(len(item_ids), 1))
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(user_ids)))])
    fields: dict[str, Any] = {"duplicates": len(places) - len(keys)}
    fields |= {name: merged(merge, places, table[name]) for name, merge in _MERGES.items() if name in table}
    if ordered or "times" in table:
        order = np.lexsort([table["times"], users] if "times" in table else [users])
        fields["events"] = places[order]
        if len(keys) < len(places):
            fields["event_values"] = {name: table[name][order] for name in _MERGES if name in table}
    shape = len(user_ids), len(item_ids)
    matrix = sparse.csr_array((np.ones(len(keys), np.float32), columns, ends), shape=shape)
    interactions = Interactions(matrix, user_ids, item_ids)
    vars(interactions).update(fields)  # which are in the order of the matrix
    return interactions


def counted(number: int, noun: str) -> str:
    """Returns a count with its noun: "1 user", "2,000 users"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def merged(merge: np.ufunc, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns the sum or maximum of the values of each place, float64 [pairs]."""
    results = np.full(places.max(initial=-1) + 1, 0.0 if merge is np.add else -np.inf)
    merge.at(results, places, values)
    return results


def _checked_numbers(name: str, values: Any, count: int) -> np.ndarray:
    """Returns times, or weights > 0, as float64."""
    is_weight = name == "weights"
    expected = f"{count} finite numbers{' > 0' * is_weight}, one per interaction"
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be {expected}, got {checks.shown(values)}.") from None
    if numbers.shape != (count,):
        raise ValueError(f"`{name}` must be {expected}, got the shape {numbers.shape}.")
    if len(wrong := wrong_numbers(numbers, is_weight)):
        raise ValueError(f"`{name}` must be {expected}, got {numbers[wrong[0]]:g} at place {wrong[0]}.")
    return numbers


def wrong_numbers(numbers: np.ndarray, is_weight: bool) -> np.ndarray:
    """Returns the places of numbers that are no times, or no weights > 0 in float32."""
    limits = np.finfo(np.float32)
    good = np.isfinite(numbers)
    return np.flatnonzero(~(good & (numbers >= limits.tiny) & (numbers <= limits.max) if is_weight else good))
