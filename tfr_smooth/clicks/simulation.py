"""Click logs simulated from labels and rankings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.clicks.user_models import UserModel


class ClickLog(NamedTuple):
    """A click log, with one row per document shown in a session, in the order of sessions and positions.

    Attributes:
      rows: int64 [shown], the row of the document in the arrays of documents.
      sessions: int64 [shown], the number of the session, from 0.
      positions: int64 [shown], from 1.
      clicks: bool [shown].

    Example:
      >>> from tfr_smooth import clicks
      >>> user = clicks.PositionBased(noise=0.0, max_label=1)
      >>> log = clicks.simulate([1, 0, 1, 0], ["a", "a", "b", "b"], [2.0, 1.0, 2.0, 1.0], user, num_sessions=3)
      >>> log.sessions.tolist(), log.positions.tolist(), log.clicks.tolist()
      ([0, 0, 1, 1, 2, 2], [1, 2, 1, 2, 1, 2], [True, False, True, False, True, False])
    """

    rows: np.ndarray
    sessions: np.ndarray
    positions: np.ndarray
    clicks: np.ndarray


def simulate(
    labels: Any,
    query_ids: Any,
    scores: Any,
    user: UserModel,
    *,
    num_sessions: int,
    topn: int = 10,
    seed: int = 0,
) -> ClickLog:
    """Simulates sessions: each shows the top of the ranking for a random query, and the user clicks.

    Args:
      labels: Labels >= 0, [rows].
      query_ids: The query of each row, [rows], as numbers or strings.
      scores: The scores of the ranker that is shown, [rows]; ties keep the order of the rows. None ranks the documents
        of each session at random, as for `propensities_from_random_rankings`.
      user: The model of the users, such as `PositionBased()`.
      num_sessions: Number of sessions, >= 1.
      topn: Documents shown per session, >= 1; fewer for queries with fewer documents.
      seed: Seed, >= 0, of the queries, the random rankings and the clicks.

    Returns:
      The click log.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(num_sessions topn), and for random rankings O(num_sessions N log N) and O(num_sessions N) for up
    to N documents per query.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import clicks
      >>> labels, query_ids = np.array([0, 2, 1, 0]), np.array([7, 7, 7, 8])
      >>> log = clicks.simulate(labels, query_ids, -labels, clicks.Cascade(), num_sessions=100, topn=2)
      >>> sorted(set(zip(log.rows.tolist(), log.positions.tolist())))
      [(0, 1), (2, 2), (3, 1)]
    """
    labels, names = np.asarray(labels), np.asarray(query_ids)
    columns = {"labels": labels, "query_ids": names, "scores": np.zeros(len(names)) if scores is None else scores}
    for name, values in columns.items():
        if np.shape(values) != (len(names),) or not len(names):
            raise ValueError(f"`{name}` must have one value per row, the same number >= 1, got {np.shape(values)}.")
    if labels.min() < 0:
        raise ValueError(f"`labels` must be >= 0, got {labels.min()}.")
    _arguments.instance("user", user, UserModel)
    _arguments.integer("num_sessions", num_sessions, least=1)
    _arguments.integer("topn", topn, least=1)
    random = np.random.default_rng(_arguments.integer("seed", seed, least=0))

    _, queries, lengths = np.unique(names, return_inverse=True, return_counts=True)
    by_score = np.lexsort((-np.asarray(columns["scores"], np.float64), queries))
    ranked = np.full((len(lengths), lengths.max()), -1)  # the rows of each query, -1 for padding
    ranked[np.arange(ranked.shape[1]) < lengths[:, np.newaxis]] = by_score
    shown = ranked[random.integers(len(lengths), size=num_sessions)]
    if scores is None:
        keys = np.where(shown >= 0, random.random(shown.shape), 1.0)
        shown = np.take_along_axis(shown, np.argsort(keys, axis=1), axis=1)
    shown = shown[:, :topn]
    real = shown >= 0
    clicked = user.draw(np.where(real, labels[shown], -1), random)
    sessions, positions = np.nonzero(real)
    return ClickLog(shown[real], sessions, positions + 1, clicked[real])
