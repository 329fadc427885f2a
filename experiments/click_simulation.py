"""Click logs simulated from labels and rankings."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class User:
    r"""A position-based model of users: a click is the examination of the position and the attraction of the document.

    $$P(C_k = 1) = \alpha_k \, \gamma(y_k) + \beta_k, \qquad
      \gamma(y) = \epsilon + (1 - \epsilon) \frac{2^y - 1}{2^{y_{\max}} - 1}$$

    with $\alpha_k = \theta_k - \beta_k$, $\beta_k = \theta_k t / k$ and the examination $\theta_k = k^{-\eta}$.
    (Joachims et al., WSDM 2017; the attraction of Ai et al., SIGIR 2018; trust in high positions as in Agarwal et al.,
    WWW 2019, and Vardasbi et al., CIKM 2020.)

    Args:
      eta: Strength of the position bias, >= 0.
      noise: Epsilon, the probability of a click on an examined document with the label 0.
      max_label: The highest label.
      trust: Probability t of a click on an examined, unattractive document at the first position.
    """

    eta: float = 1.0
    noise: float = 0.1
    max_label: int = 4
    trust: float = 0.0

    def attraction(self, labels: Any) -> np.ndarray:
        """Returns the probability of a click on examined documents with these labels."""
        gains = (2.0 ** np.asarray(labels, np.float64) - 1.0) / (2.0**self.max_label - 1.0)
        return self.noise + (1.0 - self.noise) * gains

    def propensities(self, num_positions: int) -> np.ndarray:
        """Returns alpha, [num_positions]."""
        return np.arange(1.0, num_positions + 1.0) ** -self.eta - self.offsets(num_positions)

    def offsets(self, num_positions: int) -> np.ndarray:
        """Returns beta, [num_positions]."""
        return self.trust * np.arange(1.0, num_positions + 1.0) ** (-self.eta - 1.0)


class ClickLog(NamedTuple):
    """A click log with one row per document shown, in the order of sessions and positions.

    Attributes:
      rows: The row of the document in the arrays of documents.
      sessions: The number of the session, from 0.
      positions: From 1.
      clicks: bool.
    """

    rows: np.ndarray
    sessions: np.ndarray
    positions: np.ndarray
    clicks: np.ndarray


def simulate(
    labels: Any, query_ids: Any, scores: Any, user: User, *, num_sessions: int, topn: int = 10, seed: int = 0
) -> ClickLog:
    """Simulates sessions: each shows the top of the ranking for a random query, and the user clicks.

    Args:
      labels: [rows].
      query_ids: [rows].
      scores: Scores of the ranker that is shown, [rows]. None ranks the documents of each session at random.
      user: The model of the users.
      num_sessions: Number of sessions.
      topn: Documents shown per session.
      seed: Seed of the queries, the random rankings and the clicks.

    Returns:
      The click log.
    """
    random = np.random.default_rng(seed)
    _, queries, lengths = np.unique(query_ids, return_inverse=True, return_counts=True)
    order = np.lexsort((np.zeros(len(queries)) if scores is None else -np.asarray(scores), queries))
    ranked = np.full((len(lengths), lengths.max()), -1)  # the rows of each query, -1 for padding
    ranked[np.arange(ranked.shape[1]) < lengths[:, np.newaxis]] = order
    shown = ranked[random.integers(len(lengths), size=num_sessions)]
    if scores is None:
        keys = np.where(shown >= 0, random.random(shown.shape), 1.0)
        shown = np.take_along_axis(shown, np.argsort(keys, axis=1), axis=1)
    sessions, places = np.nonzero(shown[:, :topn] >= 0)
    rows = shown[sessions, places]
    width = int(places.max()) + 1
    rates = user.propensities(width)[places] * user.attraction(labels)[rows] + user.offsets(width)[places]
    return ClickLog(rows, sessions, places + 1, random.random(len(rows)) < rates)
