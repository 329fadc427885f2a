"""Ranks the items of a catalog by scores, in blocks of users and in the order of trec_eval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.reading.ids import once_per_array, places_of
from tfr_smooth.recommendation.interactions import Interactions

# Scores of a block of users, which bounds memory: about 30 bytes each. Not tuned.
_BLOCK = 2**22
# Keys of a part of them: arrays above 128 KiB are given back to the system each time, and getting their pages again
# took as long as the ranking.
_PART = 2**14


# An object with a method `predict`, as the baselines are, or such a function.
CatalogScorer: TypeAlias = "Any | Callable[[np.ndarray], Any]"
# Which items are not ranked for a block of users, bool [block, items].
Hidden: TypeAlias = "Callable[[slice], np.ndarray]"


class TopItems(NamedTuple):
    """The best items of users.

    Attributes:
      items: int32 [users, topn], indices of items, best first; -1 after the last item.
      scores: float32 [users, topn]; -inf after the last item.

    Example:
      >>> from tfr_smooth import recommendation
      >>> interactions = recommendation.Interactions([[1, 0, 0]])
      >>> top = recommendation.top_items(lambda users: [[0.5, 0.25, 0.75]], interactions, [0], topn=3)
      >>> top.items.tolist(), top.scores.tolist()
      ([[2, 1, -1]], [[0.75, 0.25, -inf]])
    """

    items: np.ndarray
    scores: np.ndarray


def top_items(
    scorer: CatalogScorer,
    interactions: Interactions,
    users: Any,
    *,
    topn: int,
    exclude_seen: bool = True,
) -> TopItems:
    """Returns the items with the highest scores for each user.

    Args:
      scorer: An object with a method `predict`, or such a function: indices of users [batch] to scores [batch, items].
      interactions: The interactions, usually those of the training.
      users: Indices of users, [users].
      topn: Items per user, >= 1.
      exclude_seen: Whether to exclude the items that a user interacted with.

    Returns:
      The items and their scores. Ties are in the order of `evaluate`.

    Raises:
      ValueError: If an argument is invalid, the scorer was trained with other ids, or scores are not finite or have
        another shape.

    Time is that of scoring, and linear in users times items. Memory, except for the result, does not grow with the
    number of users.

    Example:
      >>> from tfr_smooth import recommendation
      >>> interactions = recommendation.Interactions([[0, 1, 0]], item_ids=["up", "heat", "alien"])
      >>> top = recommendation.top_items(lambda users: [[0.1, 0.3, 0.2]], interactions, [0], topn=2)
      >>> interactions.item_ids[top.items].tolist()
      [['alien', 'up']]
    """
    users = interactions.checked_users(users)
    check_ids_of(scorer, "interactions", interactions)
    exclude_seen = _arguments.boolean("exclude_seen", exclude_seen)
    hidden = (lambda block: interactions.dense(users[block])) if exclude_seen else None
    return best_items(scorer, users, interactions.item_ids, hidden, topn)


def best_items(
    scorer: CatalogScorer, asked: np.ndarray, item_ids: np.ndarray, hidden: Hidden | None, topn: int
) -> TopItems:
    """Returns the items with the highest scores that are not hidden, for each row of what the scorer is asked for."""
    topn, order = _arguments.integer("topn", topn, least=1), CatalogOrder(item_ids)
    count = min(topn, len(item_ids))
    items = np.full([len(asked), topn], -1, np.int32)
    values = np.full([len(asked), topn], -np.inf, np.float32)
    for block, scores, keys in order.blocks(scorer, asked, hidden):
        best = highest(keys, count)[:, ::-1]
        chosen, is_unseen = order.items(best), best > 0
        items[block, :count] = np.where(is_unseen, chosen, -1)
        values[block, :count] = np.where(is_unseen, np.take_along_axis(scores, chosen, axis=1), -np.inf)
    return TopItems(items, values)


def padded_items(name: str, lists: list[list[Any]], item_ids: np.ndarray) -> np.ndarray:
    """Returns the items of lists of ids, int32 [lists, longest]; -1 for unknown items and after the last one."""
    lengths = np.array([len(ids) for ids in lists], np.int64)
    padded = np.full([len(lists), max(1, lengths.max(initial=0))], -1, np.int32)
    items = places_of(name, [value for ids in lists for value in ids], item_ids, rows=False)
    padded[np.arange(padded.shape[1]) < lengths[:, np.newaxis]] = items
    return padded


def among(items: np.ndarray, num_items: int) -> np.ndarray:
    """Returns which items of the catalog are in lists [lists, longest], -1 for padding: bool [lists, num_items]."""
    mask = np.zeros([len(items), num_items + 1], bool)  # with a last column for padding
    mask[np.arange(len(items))[:, np.newaxis], items] = True
    return mask[:, :-1]


def blocks(count: int, num_items: int, most: int | None = None) -> Iterator[slice]:
    """Yields slices of so many users that their scores of all items, at most `most`, bound memory; None: `_BLOCK`."""
    size = max(1, (most or _BLOCK) // max(num_items, 1))
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def check_ids_of(scorer: Any, name: str, interactions: Interactions) -> None:
    """Checks that interactions number the users and items as those that a scorer was trained on, if it knows these."""
    known = getattr(scorer, "interactions_", None)
    if isinstance(known, Interactions):
        interactions.check_same_ids(name, known, "scorer.interactions_")


def highest(keys: np.ndarray, count: int) -> np.ndarray:
    """Returns the highest keys of each row, [rows, count], ascending."""
    rest = keys.shape[1] - count
    return np.sort(np.partition(keys, rest, axis=1)[:, rest:] if rest else keys, axis=1)


class CatalogOrder:
    """The order of trec_eval: by decreasing float32 score, ties by decreasing id, as text.

    The pair of an item's score and the rank of its id is one integer, its key. Keys of a user are all different, so
    that sorting them ranks the items, without special cases for ties.

    Args:
      item_ids: The ids of the items, [items].
    """

    def __init__(self, item_ids: np.ndarray) -> None:
        self._by_name, self._rank = _order_of(item_ids)

    def blocks(
        self, scorer: CatalogScorer, users: np.ndarray, hidden: Hidden | None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yields blocks of users: their places, scores float32 and keys uint64 [block, items]; 0 for hidden items."""
        score: Any = getattr(scorer, "predict", scorer)
        for block in blocks(len(users), len(self._rank)):
            scores = self._checked(score(users[block]), users[block])
            mask = None if hidden is None else hidden(block)
            for part in blocks(len(scores), len(self._rank), _PART):
                keys = self._keys(scores[part])
                if mask is not None:
                    keys[mask[part]] = 0
                yield slice(block.start + part.start, block.start + part.stop), scores[part], keys

    def items(self, keys: np.ndarray) -> np.ndarray:
        """Returns the indices of the items of keys; any index for a hidden item."""
        return self._by_name[(keys & 0xFFFFFFFF).astype(np.int64)]

    def _checked(self, scores: Any, users: np.ndarray) -> np.ndarray:
        expected = len(users), len(self._rank)
        scores = np.asarray(scores)
        if scores.shape != expected or scores.dtype.kind not in "biuf":
            got = f"{scores.dtype} of shape {scores.shape}"
            raise ValueError(f"`scorer` must return numbers [users, items] of shape {expected}, got {got}.")
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32, copy=False)
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            user = users[finite.argmin()].tolist()
            raise ValueError(f"`scorer` must return scores that are finite in float32, got others for user {user}.")
        return scores

    def _keys(self, scores: np.ndarray) -> np.ndarray:
        # The bits of positive floats increase with the float, those of negative ones decrease. Adding 0 makes -0 a 0.
        bits = (scores + np.float32(0.0)).view(np.int32)
        ascending = np.where(bits < 0, ~bits, bits | np.int32(-(2**31))).view(np.uint32)
        return (ascending.astype(np.uint64) << np.uint64(32)) | self._rank


@once_per_array
def _order_of(item_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the items in ascending order of their ids as text, and the rank of each item."""
    names = [str(each) for each in item_ids.tolist()]
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    rank = np.empty(len(names), np.uint64)
    rank[by_name] = np.arange(len(names), dtype=np.uint64)
    return by_name, rank
