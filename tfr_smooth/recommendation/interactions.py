"""Which users interacted with which items of a catalog."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tfr_smooth import _arguments, _extras

with _extras.needed("scipy", extra="recommendation", by="tfr_smooth.recommendation"):
    from scipy import sparse as sparse


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Users x items, sparse: a user either interacted with an item or did not.

    Models, evaluation and batches number users and items from 0; `user_ids` and `item_ids` contain their ids.

    Args:
      matrix: [users, items], a SciPy sparse array or matrix, or a dense array, of finite numbers. Values other than 0
        are interactions.
      user_ids: The id of each user, [users], unique integers or strings. None: 0, 1, ...
      item_ids: The id of each item, [items], unique integers or strings. None: 0, 1, ...
      times: The time of each interaction, for splits by time and decay: [interactions], finite numbers in the order of
        `matrix.indices`. `matrix` must then be in CSR format, with ascending indices in each row. None: no times.
      weights: The weight of each interaction, > 0, in the same order: the label of the item in losses. None: 1.
      duplicates: Number of further interactions of the same user and item that a reader merged into one.
      below_rating: Number of interactions that a reader dropped because of a low rating.

    Attributes:
      matrix: float32 `scipy.sparse.csr_array` [users, items] of ones, with sorted indices.
      user_ids: int64 [users], or strings as objects.
      item_ids: int64 [items], or strings as objects.
      times: float64 [interactions], or None.
      weights: float64 [interactions], or None.

    Raises:
      ValueError: If the matrix, the ids, the times or the weights are invalid.

    Memory: 8 bytes per interaction, 16 with times or weights.

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
    duplicates: int = 0
    below_rating: int = 0

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
        for name, least in (("times", -np.inf), ("weights", np.finfo(np.float32).tiny)):
            if getattr(self, name) is None:
                continue
            values = np.asarray(getattr(self, name), np.float64)
            if values.shape != (stored,) or not (np.isfinite(values) & (values >= least)).all():
                expected = f"{stored} finite numbers{' > 0' * (name == 'weights')}, one per interaction"
                raise ValueError(f"`{name}` must be {expected}, got {getattr(self, name)!r}.")
            if not is_canonical or matrix.nnz != stored:
                raise ValueError(f"`matrix` must be in CSR format with ascending indices and no zeros for `{name}`.")
            object.__setattr__(self, name, values)
        matrix.data = np.ones_like(matrix.data)
        object.__setattr__(self, "matrix", matrix)
        for name, count in (("user_ids", self.num_users), ("item_ids", self.num_items)):
            object.__setattr__(self, name, checked_ids(name, getattr(self, name), count))

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
        """Returns the counts, and what a reader merged or dropped."""
        counts = [counted(self.num_users, "user"), counted(self.num_items, "item")]
        density = 100 * self.num_interactions / max(self.num_users * self.num_items, 1)
        counts.append(f"{counted(self.num_interactions, 'interaction')} (density {density:.3g}%)")
        notes = [", ".join(counts)]
        for number, singular, what in (
            (int((self.items_per_user == 0).sum()), "user", "without items"),
            (int((self.users_per_item == 0).sum()), "item", "without users"),
            (self.duplicates, "duplicate", "merged"),
            (self.below_rating, "interaction", "dropped because of a low rating"),
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

    def rows(self, users: Any) -> Any:
        """Returns the rows of users.

        Args:
          users: Indices of users, [batch].

        Returns:
          `scipy.sparse.csr_array` [batch, items].

        Raises:
          ValueError: If an index is not one of a user.
        """
        return self.matrix[self.checked_users(users)]

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
          float32 [batch, count], their weights, after 0. Equal times are in ascending order of the indices.

        Raises:
          ValueError: If an argument is invalid, or there are no times.
        """
        count = _arguments.integer("count", count, least=1)
        rows = self._in_time[self.checked_users(users)]
        return _at(rows, rows.indptr[1:, np.newaxis] + np.arange(-count, 0))

    def sequences(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns all items of all users in order of time.

        Returns:
          int32 [events], indices of items, user by user, the latest one of each user last; float32 [events], their
          weights; and int64 [users + 1], where the items of each user start and the last ones end.

        Raises:
          ValueError: If there are no times.

        Example:
          >>> from tfr_smooth import recommendation
          >>> interactions = recommendation.Interactions([[1, 0, 1], [0, 1, 0]], times=[20, 10, 30])
          >>> items, weights, starts = interactions.sequences()
          >>> items.tolist(), weights.tolist(), starts.tolist()
          ([2, 0, 1], [1.0, 1.0, 1.0], [0, 2, 3])
        """
        rows = self._in_time
        return rows.indices.astype(np.int32), rows.data, rows.indptr.astype(np.int64)

    @functools.cached_property
    def _in_time(self) -> Any:
        """The weights as a CSR array whose rows are in order of time."""
        if self.times is None:
            raise ValueError("`times` must be given for `latest`, got None.")
        order, rows = np.lexsort([self.times, self.pairs()[0]]), self.weighted
        return sparse.csr_array((rows.data[order], rows.indices[order], rows.indptr), shape=rows.shape)

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
        rows = self.rows(users)
        found = np.zeros(rows.shape, bool)
        found[np.repeat(np.arange(len(found)), np.diff(rows.indptr)), rows.indices] = True
        return found

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
        users, items, times, weights = self.pairs()
        times, weights = (None if each is None else each[chosen] for each in (times, weights))
        return from_pairs(users[chosen], items[chosen], self.user_ids, self.item_ids, times, weights)

    def union(self, other: Interactions) -> Interactions:
        """Returns the interactions of both, with the same users and items.

        A pair of both has the latest time and the sum of the weights. Times of only one of them are dropped.
        """
        pairs = [self.pairs(), other.pairs()]
        if (self.weights is None) != (other.weights is None):
            ones = [np.ones(len(each[0])) if each[3] is None else each[3] for each in pairs]
            pairs = [(*each[:3], weights) for each, weights in zip(pairs, ones, strict=True)]
        users, items, times, weights = (
            None if any(each is None for each in two) else np.concatenate(two) for two in zip(*pairs, strict=True)
        )
        return from_pairs(users, items, self.user_ids, self.item_ids, times, weights)

    def renumbered(self, user_ids: np.ndarray, item_ids: np.ndarray) -> Interactions:
        """Returns the interactions with other users and items in another order, which must include the own ones."""
        users, items, *values = self.pairs()
        users = indices_of("user", user_ids, self.user_ids.tolist())[users]
        items = indices_of("item", item_ids, self.item_ids.tolist())[items]
        return from_pairs(users, items, user_ids, item_ids, *values)

    def decayed(self, half_life: float) -> Interactions:
        """Returns the interactions with weights that decay with their age.

        Args:
          half_life: The age at which a weight is halved, > 0, in the unit of the times, which is seconds for
            timestamps. The latest interaction has age 0.

        Returns:
          The interactions; their weights are multiplied by 0.5 ** (age / half_life).

        Raises:
          ValueError: If there are no times, or `half_life` is out of range.
        """
        half_life = _arguments.real("half_life", half_life, above=0.0)
        if self.times is None:
            raise ValueError("`times` must be given for `decayed`, got None.")
        weights = 1.0 if self.weights is None else self.weights
        age = (self.times.max(initial=-np.inf) - self.times) / half_life
        decayed = np.maximum(weights * 0.5**age, np.finfo(np.float32).tiny)
        return dataclasses.replace(self, weights=decayed)

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the content as arrays of integers, numbers and text, as `from_arrays` takes them."""
        found = {name: getattr(self, name) for name in ("user_ids", "item_ids", "times", "weights")}
        found |= {name: getattr(self.matrix, name).astype(np.int64) for name in ("indices", "indptr")}
        return {
            name: each.astype("U") if each.dtype == object else each for name, each in found.items() if each is not None
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Interactions:
        """Returns the interactions of `arrays`; raises a `ValueError` if these do not fit together."""
        indices, indptr = arrays["indices"], arrays["indptr"]
        shape = len(arrays["user_ids"]), len(arrays["item_ids"])
        matrix = sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)
        matrix.check_format()
        if indptr[-1] != len(indices):
            raise ValueError(f"`indptr` must end with the {len(indices)} interactions, got {indptr[-1]}.")
        ids = [arrays[name].tolist() for name in ("user_ids", "item_ids")]
        return cls(matrix, ids[0], ids[1], arrays.get("times"), arrays.get("weights"))

    def pairs(self) -> tuple[Any, ...]:
        """Returns the users and items of the pairs, their times and their weights."""
        users = np.repeat(np.arange(self.num_users), self.items_per_user)
        return users, self.matrix.indices.astype(np.int64), self.times, self.weights

    def check_same_ids(self, name: str, other: Interactions, other_name: str) -> None:
        """Checks that other interactions number the same users and items."""
        for ids in ("user_ids", "item_ids"):
            if not np.array_equal(getattr(self, ids), getattr(other, ids)):
                raise ValueError(f"`{name}` must have the same `{ids}` as `{other_name}`: read both with one call.")


def _at(rows: Any, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the items and weights at places [rows, any] of a CSR array; -1 and 0 for places of other rows."""
    own = (places >= rows.indptr[:-1, np.newaxis]) & (places < rows.indptr[1:, np.newaxis])
    items, weights = np.full(own.shape, -1, np.int32), np.zeros(own.shape, np.float32)
    items[own], weights[own] = rows.indices[places[own]], rows.data[places[own]]
    return items, weights


def from_pairs(
    users: Any, items: Any, user_ids: Any, item_ids: Any, times: Any = None, weights: Any = None, **counts: int
) -> Interactions:
    """Returns the interactions of pairs of numbers; a repeated pair has its latest time and the sum of its weights."""
    # One number per pair, which fits int64 for any number of users and items that fit into memory.
    keys, places = np.unique(users * len(item_ids) + items, return_inverse=True)
    rows, columns = np.divmod(keys, max(len(item_ids), 1))
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(user_ids)))])
    if times is not None:
        latest = np.full(len(keys), -np.inf)
        np.maximum.at(latest, places, times)
        times = latest
    if weights is not None:
        weights = np.bincount(places, weights, minlength=len(keys))
    shape = len(user_ids), len(item_ids)
    matrix = sparse.csr_array((np.ones(len(keys), np.float32), columns, ends), shape=shape)
    return Interactions(matrix, user_ids, item_ids, times, weights, **counts)


def ids_after(ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns ids, and then those others that are not among them."""
    return checked_ids("ids", dict.fromkeys([*ids.tolist(), *others.tolist()]), None)


def counted(number: int, noun: str) -> str:
    """Returns a count with its noun: "1 user", "2,000 users"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def named_pair(user_ids: np.ndarray, item_ids: np.ndarray, user: int, item: int) -> str:
    """Returns the ids of a pair for messages."""
    return f"user {user_ids[[user]].tolist()[0]!r} and item {item_ids[[item]].tolist()[0]!r}"


def checked_ids(name: str, ids: Any, count: int | None) -> np.ndarray:
    """Returns unique ids as int64, or strings as objects; None is 0, 1, ..."""
    if ids is None:
        return np.arange(count or 0)
    ids = list(ids.tolist() if isinstance(ids, np.ndarray) else ids)
    if count is not None and len(ids) != count:
        raise ValueError(f"`{name}` must have one id for each of {count}, got {len(ids)}.")
    if all(isinstance(each, str) for each in ids):
        found = np.empty(len(ids), object)
        found[:] = ids
    elif all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in ids):
        try:
            found = np.asarray(ids, np.int64)
        except OverflowError:
            raise ValueError(f"`{name}` must be integers of 64 bits or strings, got longer ones.") from None
    else:
        kinds = sorted({type(each).__name__ for each in ids})
        raise ValueError(f"`{name}` must be integers or strings, got {', '.join(kinds)}.")
    if len(set(ids)) != len(ids):
        again = collections.Counter(ids).most_common(1)[0][0]
        raise ValueError(f"`{name}` must be unique, got {again!r} twice.")
    return found


def indices_of(what: str, known: np.ndarray, ids: Iterable[Any]) -> np.ndarray:
    """Returns the places of ids, int64 [ids], and raises a `ValueError` for an unknown one."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ValueError(f"`{what}s` must be a list of ids, got {ids!r}.")
    places = {each: place for place, each in enumerate(known.tolist())}
    found = []
    for each in ids:
        if each not in places:
            raise ValueError(f"`ids` must be ids of {what}s, got {each!r}, which is unknown.")
        found.append(places[each])
    return np.array(found, np.int64)
