"""Click logs simulated from labels and rankings by models of users."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tfr_smooth import _arguments


@dataclasses.dataclass(frozen=True, kw_only=True)
class UserModel(abc.ABC):
    r"""Base class of models of users, with the probability that a document is attractive.

    An examined document with the label y attracts a click with the probability

    $$\gamma(y) = \epsilon + (1 - \epsilon) \frac{2^y - 1}{2^{y_{\max}} - 1}$$

    (Ai et al., "Unbiased Learning to Rank with Unbiased Propensity Estimation", SIGIR 2018.)

    Args:
      noise: Epsilon, the probability of a click on an examined document with the label 0, in [0, 1].
      max_label: The highest label, >= 1.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> from tfr_smooth import clicks
      >>> clicks.PositionBased(noise=0.1, max_label=2).attractiveness([0, 1, 2]).round(2).tolist()
      [0.1, 0.4, 1.0]
    """

    noise: float = 0.1
    max_label: int = 4

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.real("noise", self.noise, least=0.0, most=1.0)
        _arguments.integer("max_label", self.max_label, least=1)

    def attractiveness(self, labels: np.ndarray) -> np.ndarray:
        """Returns the probability that an examined document is attractive.

        Args:
          labels: Labels in [0, max_label] of any shape; negative labels mark padding.

        Returns:
          Probabilities of this shape, 0 for padding.

        Raises:
          ValueError: If a label exceeds `max_label`.
        """
        labels = np.asarray(labels, np.float64)
        if labels.size and labels.max() > self.max_label:
            raise ValueError(f"`labels` must be <= {self.max_label}, the user model's `max_label`, got {labels.max()}.")
        gains = (2.0 ** np.maximum(labels, 0.0) - 1.0) / (2.0**self.max_label - 1.0)
        return np.where(labels >= 0.0, self.noise + (1.0 - self.noise) * gains, 0.0)

    @abc.abstractmethod
    def click_probabilities(self, labels: np.ndarray) -> np.ndarray:
        """Returns the probability of a click on each document.

        Args:
          labels: [..., positions], the labels in the order of the ranking; negative labels mark padding.

        Returns:
          float64 [..., positions], 0 for padding.
        """

    def draw(self, labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draws clicks.

        Args:
          labels: [..., positions], as for `click_probabilities`.
          random: The random numbers.

        Returns:
          bool [..., positions].
        """
        probabilities = self.click_probabilities(labels)
        return random.random(probabilities.shape) < probabilities


@dataclasses.dataclass(frozen=True, kw_only=True)
class PositionBased(UserModel):
    r"""Position-based model: a click is the examination of the position and the attractiveness of the document.

    $$P(C_k = 1) = \theta_k \, \gamma(y_k), \qquad \theta_k = k^{-\eta}$$

    (Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback", WSDM 2017.)

    Args:
      eta: Strength of the position bias, >= 0. 0 for no bias.
      noise: Probability of a click on an examined document with the label 0, in [0, 1]; see `UserModel`.
      max_label: The highest label, >= 1.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> from tfr_smooth import clicks
      >>> clicks.PositionBased(eta=1.0, noise=0.1, max_label=2).click_probabilities([2, 1, 0]).round(3).tolist()
      [1.0, 0.2, 0.033]
    """

    eta: float = 1.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.real("eta", self.eta, least=0.0)

    def propensities(self, num_positions: int) -> np.ndarray:
        """Returns the factor of the attractiveness at each position.

        Args:
          num_positions: Number of positions.

        Returns:
          float64 [num_positions].
        """
        return np.arange(1.0, num_positions + 1.0) ** -self.eta

    def offsets(self, num_positions: int) -> np.ndarray:
        """Returns the probability of a click at each position that does not depend on the document.

        Args:
          num_positions: Number of positions.

        Returns:
          float64 [num_positions].
        """
        return np.zeros(num_positions)

    def click_probabilities(self, labels: np.ndarray) -> np.ndarray:
        """Returns the probability of a click on each document; see `UserModel`."""
        labels = np.asarray(labels)
        count = labels.shape[-1]
        found = self.propensities(count) * self.attractiveness(labels) + self.offsets(count)
        return np.where(labels >= 0.0, found, 0.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrustBias(PositionBased):
    r"""Position-based model of users who also click on unattractive documents, as they trust high positions.

    $$P(C_k = 1) = \alpha_k \, \gamma(y_k) + \beta_k, \qquad
      \alpha_k = \theta_k (1 - \epsilon_k), \quad \beta_k = \theta_k \epsilon_k, \quad \epsilon_k = t / k$$

    (Agarwal et al., "Addressing Trust Bias for Unbiased Learning-to-Rank", WWW 2019, with $\epsilon^+_k = 1$ and
    $\epsilon^-_k = \epsilon_k$; $\alpha$ and $\beta$ as in Vardasbi et al., CIKM 2020.) `propensities` are alpha and
    `offsets` are beta.

    Args:
      trust: Probability t of a click on an examined, unattractive document at the first position, in [0, 1].
      eta: Strength of the position bias, >= 0, of the examination $\theta_k = k^{-\eta}$.
      noise: Probability that a document with the label 0 is attractive, in [0, 1]; see `UserModel`.
      max_label: The highest label, >= 1.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> from tfr_smooth import clicks
      >>> user = clicks.TrustBias(trust=0.6, noise=0.0, max_label=1)
      >>> user.click_probabilities([0, 0, 1]).round(3).tolist()
      [0.6, 0.15, 0.333]
    """

    trust: float = 0.65

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.real("trust", self.trust, least=0.0, most=1.0)

    def propensities(self, num_positions: int) -> np.ndarray:
        """Returns alpha [num_positions]; see `PositionBased`."""
        return super().propensities(num_positions) - self.offsets(num_positions)

    def offsets(self, num_positions: int) -> np.ndarray:
        """Returns beta [num_positions]; see `PositionBased`."""
        return super().propensities(num_positions) * self.trust / np.arange(1.0, num_positions + 1.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cascade(UserModel):
    r"""Cascade model: the user reads from the top, clicks on attractive documents, and may stop after a click.

    $$P(C_k = 1) = \gamma(y_k) \prod_{i < k} (1 - p \, \gamma(y_i))$$

    (Craswell et al., "An Experimental Comparison of Click Position-Bias Models", WSDM 2008, where p is 1.) Examination
    depends on the documents above, so no propensities by position correct its bias exactly.

    Args:
      stop: Probability p of stopping after a click, in [0, 1]. 1 for at most one click.
      noise: Probability of a click on an examined document with the label 0, in [0, 1]; see `UserModel`.
      max_label: The highest label, >= 1.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> from tfr_smooth import clicks
      >>> clicks.Cascade(noise=0.1, max_label=2).click_probabilities([1, 1, 0]).round(3).tolist()
      [0.4, 0.24, 0.036]
    """

    stop: float = 1.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.real("stop", self.stop, least=0.0, most=1.0)

    def click_probabilities(self, labels: np.ndarray) -> np.ndarray:
        """Returns the probability of a click on each document; see `UserModel`."""
        attractive = self.attractiveness(labels)
        stays = np.cumprod(1.0 - self.stop * attractive, axis=-1)
        return attractive * np.concatenate([np.ones_like(stays[..., :1]), stays[..., :-1]], axis=-1)

    def draw(self, labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draws clicks.

        Args:
          labels: [..., positions], as for `click_probabilities`.
          random: The random numbers.

        Returns:
          bool [..., positions].
        """
        attractive = self.attractiveness(labels)
        clicks = random.random(attractive.shape) < attractive
        stops = clicks & (random.random(attractive.shape) < self.stop)
        return clicks & (np.cumsum(stops, axis=-1) - stops == 0)


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
