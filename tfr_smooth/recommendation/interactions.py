"""Which users interacted with which items of a catalog."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from tfr_smooth import _extras

with _extras.needed("scipy", extra="recommendation", by="tfr_smooth.recommendation"):
    from scipy import sparse as sparse


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Users x items, sparse: a user either interacted with an item or did not.

    Models, evaluation and batches number users and items from 0; `user_ids` and `item_ids` contain their ids.

    Args:
      matrix: [users, items], a SciPy sparse array or matrix, or a dense array. Values other than 0 are interactions.
      user_ids: The id of each user, [users], unique integers or strings. None: 0, 1, ...
      item_ids: The id of each item, [items], unique integers or strings. None: 0, 1, ...
      times: The time of each interaction, for splits by time: [interactions], finite numbers in the order of
        `matrix.indices`. `matrix` must then be in CSR format, with ascending indices in each row. None: no times.
      duplicates: Number of further interactions of the same user and item that a reader merged into one.
      below_rating: Number of interactions that a reader dropped because of a low rating.

    Attributes:
      matrix: float32 `scipy.sparse.csr_array` [users, items] of ones, with sorted indices.
      user_ids: int64 [users], or strings as objects.
      item_ids: int64 [items], or strings as objects.
      times: float64 [interactions], or None.

    Raises:
      ValueError: If the matrix, the ids or the times are invalid.

    Memory: 8 bytes per interaction, 16 with times.

    Example:
      >>> from tfr_smooth import recommendation
      >>> interactions = recommendation.Interactions([[1, 0, 1], [0, 0, 1]], user_ids=["ann", "bob"])
      >>> print(interactions)
      2 users, 3 items, 3 interactions (density 50%); 1 item without users
      >>> interactions.dense([1]).tolist(), interactions.padded([0, 1]).tolist()
      ([[False, False, True]], [[0, 2], [2, -1]])
    """

    matrix: Any
    user_ids: Any = None
    item_ids: Any = None
    times: Any = None
    duplicates: int = 0
    below_rating: int = 0

    def __post_init__(self) -> None:
        """Brings the fields into one form and checks them."""
        matrix = sparse.csr_array(self.matrix, dtype=np.float32, copy=True)
        if matrix.ndim != 2:
            raise ValueError(f"`matrix` must have the shape [users, items], got {matrix.shape}.")
        stored = matrix.nnz
        is_canonical = matrix.has_canonical_format
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if self.times is not None:
            times = np.asarray(self.times, np.float64)
            if times.shape != (stored,) or not np.isfinite(times).all():
                raise ValueError(f"`times` must be {stored} finite numbers, one per interaction, got {self.times!r}.")
            if not is_canonical or matrix.nnz != stored:
                raise ValueError("`matrix` must be in CSR format with ascending indices and no zeros for `times`.")
            object.__setattr__(self, "times", times)
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
        return _indices("user", self.user_ids, ids)

    def item_indices(self, ids: Iterable[Any]) -> np.ndarray:
        """Returns the numbers of items.

        Args:
          ids: Ids of items, in any order.

        Returns:
          int64 [ids], indices into `item_ids`.

        Raises:
          ValueError: If an id is unknown.
        """
        return _indices("item", self.item_ids, ids)

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

    def padded(self, users: Any) -> np.ndarray:
        """Returns the items of users, as models take them.

        Args:
          users: Indices of users, [batch].

        Returns:
          int32 [batch, longest], ascending indices of items, then -1.

        Raises:
          ValueError: If an index is not one of a user.
        """
        rows = self.rows(users)
        counts = np.diff(rows.indptr)
        listed = np.arange(counts.max(initial=0)) < counts[:, np.newaxis]
        items = np.full(listed.shape, -1, np.int32)
        items[listed] = rows.indices
        return items

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
        ends = np.concatenate([[0], np.cumsum(chosen)])[self.matrix.indptr]
        shape, indices = self.matrix.shape, self.matrix.indices[chosen]
        matrix = sparse.csr_array((self.matrix.data[chosen], indices, ends), shape=shape)
        return Interactions(
            matrix, self.user_ids, self.item_ids, times=None if self.times is None else self.times[chosen]
        )

    def check_same_ids(self, name: str, other: Interactions, other_name: str) -> None:
        """Checks that other interactions number the same users and items."""
        for ids in ("user_ids", "item_ids"):
            if not np.array_equal(getattr(self, ids), getattr(other, ids)):
                raise ValueError(f"`{name}` must have the same `{ids}` as `{other_name}`: read both with one call.")


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


def _indices(what: str, known: np.ndarray, ids: Iterable[Any]) -> np.ndarray:
    places = {each: place for place, each in enumerate(known.tolist())}
    found = []
    for each in ids:
        if each not in places:
            raise ValueError(f"`ids` must be ids of {what}s, got {each!r}, which is unknown.")
        found.append(places[each])
    return np.array(found, np.int64)
