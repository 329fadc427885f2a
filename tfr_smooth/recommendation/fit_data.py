"""The data of a `Recommender.fit`: the ids, the tables, and the interactions to train on and to validate with.

`hold_out` splits the items of each user, also for tests.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth._estimator import digest
from tfr_smooth.data.reading.ids import ids_after, indices_of
from tfr_smooth.recommendation.baselines import of_rows
from tfr_smooth.recommendation.factors import CatalogModel
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.tables import Table, read_table, similarities

# The part of the users, at least, that an update also learns from besides those with new interactions. Without them,
# the vectors of items move away from those of the users.
_OTHERS = 10


def hold_out(
    interactions: Interactions, *, items: float | int = 0.2, by: str = "random", seed: int = 0
) -> tuple[Interactions, Interactions]:
    """Splits the items of each user in two: those to train on, and those held out for validation or a test.

    Args:
      interactions: The interactions.
      items: How many items of each user to hold out: a fraction in (0, 1), rounded to whole items (halves up), or a
        number >= 1. At least one item of a user is not held out.
      by: Which items to hold out: "random" ones, or the latest ones by "time", which needs times or an order. An item
        is as late as its last event, and is held out with all events. Equal times are in the order of the rows. With
        "event", the latest events of each user, also of items that are in earlier ones: evaluate these without `seen`.
      seed: Seed of the random order, >= 0.

    Returns:
      The other interactions and those held out, with the same users and items.

    Raises:
      ValueError: If an argument is invalid, or the interactions have no order, unless `by="random"`.

    Time is that of sorting the interactions.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import recommendation
      >>> frame = pd.DataFrame({"user": [1, 1, 1, 2], "item": [1, 2, 3, 2], "time": [30, 10, 20, 0]})
      >>> interactions = recommendation.from_dataframe(frame, user="user", item="item", time="time")
      >>> train, test = recommendation.hold_out(interactions, items=1, by="time")
      >>> train.dense([0, 1]).tolist(), test.dense([0, 1]).tolist()
      ([[False, True, True], [False, True, False]], [[True, False, False], [False, False, False]])
    """
    by = _arguments.choice("by", by, ("random", "time", "event"))
    if by != "random":
        interactions.check_order("interactions", f'by="{by}"')
    random = np.random.default_rng(_arguments.integer("seed", seed, least=0))
    counts = interactions.items_per_user
    if by == "event":
        counts = np.bincount(interactions.event_table()["users"], minlength=interactions.num_users)
    if isinstance(items, int):
        held = np.full(len(counts), _arguments.integer("items", items, least=1))
    else:
        held = np.floor(_arguments.real("items", items, above=0.0, below=1.0) * counts + 0.5).astype(np.int64)
    held = np.minimum(held, np.maximum(counts - 1, 0))
    keys = interactions.last_events() if by == "time" else np.arange(counts.sum())
    keys = random.random(len(keys)) if by == "random" else keys
    order = np.lexsort([keys, np.repeat(np.arange(len(counts)), counts)])
    # The places before the end of each row that are held out.
    ends = np.repeat(np.cumsum(counts), counts)
    chosen = np.empty(len(order), bool)
    chosen[order] = np.arange(len(order)) >= ends - np.repeat(held, counts)
    keeping = interactions.keeping_events if by == "event" else interactions.keeping
    return keeping(~chosen), keeping(chosen)


class FitData:
    """What a `fit` knows of its data; each step adds to it.

    Args:
      params: The arguments of the recommender.
      by: How interactions are held out, as of `hold_out`.
      interactions: The interactions to learn from.
      validation: Further interactions of the same users and items, or None.
      old: The fitted recommender to continue from, or None.

    Attributes:
      ids: The ids of all users and of all items, those of `old` first.
      tables: The features of those of "users" and "items" that have a table.
      whole: All interactions, with those of `old`.
      train: Those to train on, while others select the epochs.
      learned: Those of the last training.
      validation: Those that select the epochs, or None.
      start: The model to continue from, and the places of its users and items; None for a new one.
      users: The users to learn from, bool [users]: with a model to continue from, those with new interactions and as
        many others. None: all.

    Raises:
      ValueError: If an argument is invalid, also from the steps.
    """

    def __init__(self, params: Mapping[str, Any], by: str, interactions: Any, validation: Any, old: Any) -> None:
        self._params, self._old, self._by = params, old, by
        for name, part in (("interactions", interactions), ("validation", validation)):
            _arguments.instance(name, part, Interactions, optional=name == "validation")
            if self._by == "time" and part is not None:
                part.check_order(name, 'history_items="sequence"')
        if validation is not None:
            interactions.check_same_ids("validation", validation, "interactions")
        if old is not None:
            old._fitted()
        self.whole, self.validation = interactions, validation
        self.start: tuple[CatalogModel, np.ndarray, np.ndarray] | None = None
        self.users: np.ndarray | None = None

    def read_tables(self, users: tuple[Any, str], items: tuple[Any, str]) -> None:
        """Reads the ids and the features of tables, which may be None, each with the name of its column of ids."""
        ids, columns = {"users": self.whole.user_ids, "items": self.whole.item_ids}, {}
        if self._old is not None:
            known, columns = self._old.interactions_, self._old._columns
            old_ids = {"users": known.user_ids, "items": known.item_ids}
            ids = {what: ids_after(what, old_ids[what], ids[what]) for what in ids}
        kinds = self._params["kinds"] or {}
        self.tables: dict[str, Table] = {}
        for what, (table, name) in {"users": users, "items": items}.items():
            if table is not None:
                ids[what], self.tables[what] = read_table(what, table, name, ids[what], kinds, columns.get(what))
            elif what in columns:
                raise ValueError(f"`{what}` must be a table as in the first `fit`, got None.")
        names = [column.name for table in self.tables.values() for column in table.columns]
        for name in kinds:
            _arguments.choice("kinds", name, names)
        self.ids = ids["users"], ids["items"]

    def number(self) -> None:
        """Numbers users and items by all ids, and adds the interactions of the recommender to continue from."""
        self.whole = self.whole.renumbered(*self.ids)
        if self.validation is not None:
            self.validation = self.validation.renumbered(*self.ids)
        if self._old is not None:
            known = self._old.interactions_
            places = indices_of("user", self.ids[0], known.user_ids), indices_of("item", self.ids[1], known.item_ids)
            self.start = self._old.model_, *places
            self.users = self.whole.items_per_user > 0
            others = np.random.default_rng(self._params["seed"]).permutation(np.flatnonzero(~self.users))
            self.users[others[: max(self.users.sum(), len(self.users) // _OTHERS)]] = True
            self.whole = known.renumbered(*self.ids).union(self.whole)

    def hold_out(self) -> None:
        """Divides the interactions into those to train on and those that select the epochs, if there are any."""
        self.train, fraction = self.whole, self._params["validation_fraction"]
        options: dict[str, Any] = {"items": fraction, "by": self._by, "seed": self._params["seed"]}
        if self.validation is not None:
            self.whole = self.train.union(self.validation)
        elif fraction and self._old is None:
            self.train, self.validation = hold_out(self.whole, **options)
        self.learned = self.train
        if self.validation is not None and not self.validation.num_interactions:
            raise ValueError(f"`validation` must have interactions, got none; `validation_fraction` is {fraction}.")

    @functools.cached_property
    def _terms(self) -> Any:
        """The terms of items for sequences, or None."""
        return self.tables["items"].terms() if self._by == "time" and "items" in self.tables else None

    @functools.cached_property
    def similar(self) -> Any:
        """The similarities of items by their terms, or None."""
        return similarities(self._terms) if self._terms is not None and self._terms.nnz else None

    @functools.cached_property
    def digest(self) -> str:
        """What identifies the data, for checkpoints."""
        content = [
            each for part in (self.train, self.validation) if part is not None for each in part.arrays().values()
        ]
        content += [table.values for table in self.tables.values()]
        content += [] if self._terms is None else of_rows(self._terms)
        return digest(content + ([] if self.start is None else self.start[0].get_weights()))
