"""Splits of each user's items, for validation and tests."""

from __future__ import annotations

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.recommendation.interactions import Interactions


def hold_out(
    interactions: Interactions, *, items: float | int = 0.2, by: str = "random", seed: int = 0
) -> tuple[Interactions, Interactions]:
    """Splits the items of each user in two: those to train on, and those held out for validation or a test.

    Args:
      interactions: The interactions.
      items: How many items of each user to hold out: a fraction in (0, 1), rounded to whole items (halves up), or a
        number >= 1. At least one item of a user is not held out.
      by: Which items to hold out: "random" ones, or the latest ones by "time", which needs times or an order. An item
        is as late as its last event, and is held out with all events. Equal times are in the order of the rows.
      seed: Seed of the random order, >= 0.

    Returns:
      The other interactions and those held out, with the same users and items.

    Raises:
      ValueError: If an argument is invalid, or `by="time"` and the interactions have no order.

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
    by = _arguments.choice("by", by, ("random", "time"))
    random = np.random.default_rng(_arguments.integer("seed", seed, least=0))
    counts = interactions.items_per_user
    if isinstance(items, int):
        held = np.full(len(counts), _arguments.integer("items", items, least=1))
    else:
        held = np.floor(_arguments.real("items", items, above=0.0, below=1.0) * counts + 0.5).astype(np.int64)
    held = np.minimum(held, np.maximum(counts - 1, 0))
    if by == "time":
        interactions.check_order("interactions", 'by="time"')
        keys = interactions.last_events()
    else:
        keys = random.random(interactions.num_interactions)
    order = np.lexsort([keys, np.repeat(np.arange(len(counts)), counts)])
    # The places before the end of each row that are held out.
    ends = np.repeat(interactions.matrix.indptr[1:], counts)
    chosen = np.empty(len(order), bool)
    chosen[order] = np.arange(len(order)) >= ends - np.repeat(held, counts)
    return interactions.keeping(~chosen), interactions.keeping(chosen)
