"""The export of a recommender in Python: ids in, items with their scores out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfr_smooth import _arguments
from tfr_smooth.columns.list_context import similar_lists
from tfr_smooth.data.reading import checks
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.serving.loaded import Loaded, as_list

_ITEMS = 2**12  # items of users that are passed at once, with padding, unless a user has more
_CATALOG = 2**10  # items of the catalog, all of which have a score for each user, that take the memory of one of a user


class RecommendedItem(NamedTuple):
    """An item of a recommendation.

    Args:
      item: The id of the item.
      score: Its score.
    """

    item: Any
    score: float


class LoadedRecommender(Loaded):
    """The export of a `Recommender`; see `serving.load`."""

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        super().__init__(path, card)
        of_input = {"users": "users", "items": "histories"}
        self._num_items = card["model"]["num_items"]
        self._types = {what: card["signatures"][name]["inputs"][name] for what, name in of_input.items()}
        warm_up: list[dict[str, Any]] = [{}, {"exclude": ()}, {"only": ()}]
        for filters in warm_up:
            self.recommend([None], **filters)
            self.recommend(histories=[[]], **filters)

    def recommend(
        self, users: Any = None, *, histories: Any = None, topn: int = 10, exclude: Any = None, only: Any = None
    ) -> list[list[RecommendedItem]]:
        """Returns the best items of users.

        Args:
          users: Ids of users. Unknown users get what an empty history gets.
          histories: Instead of `users`, the ids of the items of each user, a list of lists, the latest item last.
            Unknown items are ignored.
          topn: Items per user, >= 1; at most those of the export.
          exclude: Ids of items to exclude: one list for all users, or one per user. None: no further ones.
          only: Ids of the items to choose from, in the same form; an empty list is no item. None: all items.

        Returns:
          For each user, the items, best first; fewer than `topn` if there are fewer to choose from.

        Raises:
          ValueError: If not one of `users` and `histories` is given, or an argument is not of ids.
        """
        _arguments.integer("topn", topn, least=1)
        if (users is None) == (histories is None):
            got = "none" if users is None else "both"
            raise ValueError(f"One of `users` and `histories` must be given, got {got}.")
        signature = "users" if histories is None else "histories"
        of_users = as_list(signature, users if histories is None else histories)
        ids = self._ids("users", of_users) if histories is None else None
        given: dict[str, Any] = {} if histories is None else {"histories": of_users}
        if exclude is not None or only is not None:
            signature = f"{'excluding' if only is None else 'filtered'}_{signature}"
            given |= {"exclude": () if exclude is None else exclude} | ({} if only is None else {"only": only})
        of_all, of_each, sizes = {}, {}, np.full(len(of_users), self._num_items // _CATALOG + 1)
        for argument, items in given.items():
            lists = as_list(argument, items)
            if argument != "histories" and all(isinstance(item, str) or not np.iterable(item) for item in lists):
                of_all[argument] = _padded(self._lists(argument, [lists]))
                continue
            if len(lists) != len(of_users):
                expected = f"one list for all users, or one for each of the {len(of_users)} users"
                raise ValueError(f"`{argument}` must be {expected}, got {len(lists)} lists.")
            of_each[argument] = self._lists(argument, lists)
            sizes = np.maximum(sizes, [*map(len, of_each[argument])])
        ranked: list[list[RecommendedItem]] = [[]] * len(of_users)
        for chosen in similar_lists(sizes, _ITEMS):
            inputs = {argument: _padded([lists[place] for place in chosen]) for argument, lists in of_each.items()}
            answer = self._call(signature, inputs | of_all | ({} if ids is None else {"users": ids[chosen]}))
            items, scores = (answer[output].numpy()[:, :topn].tolist() for output in ("items", "scores"))
            for place, *of_user in zip(chosen, items, scores, strict=True):
                ranked[place] = [
                    RecommendedItem(item.decode() if isinstance(item, bytes) else item, score)
                    for item, score in zip(*of_user, strict=True)
                    if score > PADDING_SCORE
                ]
        return ranked

    def _ids(self, argument: str, ids: Any) -> np.ndarray:
        """Returns ids in the type of the export; those of users are b"" or -1 if missing."""
        array = checks.as_array(f"`{argument}`", ids)
        is_text = self._types["users" if argument == "users" else "items"].startswith("string")
        if argument != "users" and array.null_count:
            raise ValueError(f"`{argument}` must be ids, got None.")
        try:
            if is_text and not pa.types.is_null(array.type):
                array = checks.id_text(checks.Where(f"`{argument}`"), array)
            array = array.cast(pa.large_binary() if is_text else pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"`{argument}` must be ids that are integers: {error}.") from None
        return array.fill_null(b"" if is_text else -1).to_numpy(zero_copy_only=False)

    def _lists(self, argument: str, lists: Sequence[Any]) -> list[np.ndarray]:
        """Returns lists of ids in the type of the export."""
        lists = [as_list(argument, items) for items in lists]
        ids = self._ids(argument, [*itertools.chain(*lists)])
        return np.split(ids, np.cumsum([*map(len, lists)], dtype=int)[:-1])


def _padded(lists: Sequence[np.ndarray]) -> np.ndarray:
    """Returns lists of ids as an array, padded by b"" or -1; at least one in each."""
    lengths = np.array([*map(len, lists)])
    mask = np.arange(lengths.max(initial=1)) < lengths[:, np.newaxis]
    padded = np.full(mask.shape, b"" if lists[0].dtype == object else -1, lists[0].dtype)
    padded[mask] = np.concatenate(lists)
    return padded
