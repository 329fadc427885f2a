"""Baselines: popularity and EASE."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.recommendation.interactions import Interactions

# Source of items whose common users are counted at once, which bounds memory.
_BLOCK = 2**22

B = TypeVar("B", bound="Baseline")


class Baseline(abc.ABC):
    """A recommender without a neural network: `fit(interactions)`, then `scores(users)`.

    Attributes:
      interactions_: The interactions of `fit`.

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 0, 0]])
      >>> for baseline in (recommendation.Popularity(), recommendation.EASE(strength=1.0)):
      ...     assert isinstance(baseline, recommendation.Baseline)
      ...     print(baseline.fit(train).predict([1]).round(2))
      [[2. 1. 0.]]
      [[0.   0.33 0.  ]]
    """

    def fit(self: B, interactions: Interactions) -> B:
        """Trains on interactions.

        Args:
          interactions: The interactions.

        Returns:
          The baseline.
        """
        self._fit(interactions)
        self.interactions_ = interactions
        return self

    def predict(self, users: Any) -> np.ndarray:
        """Scores all items.

        Args:
          users: Indices of users, [batch].

        Returns:
          float32 [batch, items]; higher is better.

        Raises:
          ValueError: If the baseline is not fitted, or an index is not one of a user.
        """
        if not hasattr(self, "interactions_"):
            raise ValueError("`fit` must be called first.")
        return self._scores(self.interactions_.checked_users(users))

    @abc.abstractmethod
    def _fit(self, interactions: Interactions) -> None: ...

    @abc.abstractmethod
    def _scores(self, users: np.ndarray) -> np.ndarray: ...


class Popularity(Baseline):
    """Scores items by their number of users: the same ranking for all users.

    Args:
      window: Only interactions that are at most this much older than the latest one count, > 0, in the unit of the
        times, which is seconds for timestamps. None counts all.

    Raises:
      ValueError: If `window` is not > 0; from `fit`, if it is given and the interactions have no times.

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 0, 0]])
      >>> recommendation.Popularity().fit(train).predict([0]).tolist()
      [[2.0, 1.0, 0.0]]
    """

    def __init__(self, *, window: float | None = None) -> None:
        self._window = None if window is None else _arguments.real("window", window, above=0.0)

    def _fit(self, interactions: Interactions) -> None:
        if self._window is not None:
            if interactions.times is None:
                raise ValueError("`interactions` must have times for `window`, got none.")
            first = interactions.times.max(initial=-np.inf) - self._window
            interactions = interactions.keeping(interactions.times >= first)
        self._counts = interactions.users_per_item.astype(np.float32)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return np.tile(self._counts, [len(users), 1])


class EASE(Baseline):
    r"""Embarrassingly Shallow Autoencoder (Steck, WWW 2019): ridge regression of each item on all others.

    With the interactions X [users, items] and $P = (X^\top X + \lambda I)^{-1}$,

    $$\mathrm{scores} = X B, \qquad B_{ij} = -P_{ij} / P_{jj} \text{ for } i \ne j, \qquad B_{jj} = 0$$

    which minimizes $\|X - X B\|_F^2 + \lambda \|B\|_F^2$ among the matrices with zero diagonal.

    Args:
      strength: $\lambda$, > 0.

    Raises:
      ValueError: If `strength` is not > 0; from `fit`, if it is too small for float32.

    Time O(items^3); memory 4 bytes * items^2, which is 6.7 GB for 41,000 items.

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 1, 1], [1, 0, 0]])
      >>> print(recommendation.EASE(strength=1.0).fit(train).predict([2]).round(2))
      [[0.   0.43 0.12]]
    """

    def __init__(self, *, strength: float = 500.0) -> None:
        self._strength = _arguments.real("strength", strength, above=0.0)

    def _fit(self, interactions: Interactions) -> None:
        from scipy.linalg import lapack

        count = interactions.num_items
        gram = np.empty([count, count], np.float32)
        for start, common in _co_occurrences(interactions):
            gram[start : start + common.shape[0]] = common.toarray()
        gram[np.diag_indices(count)] += self._strength
        # In place: LAPACK's columns are the rows of this symmetric matrix.
        factor, failed = lapack.spotrf(gram.T, lower=True, clean=False, overwrite_a=True)
        if failed:
            raise ValueError(f"`strength` must be larger for these interactions, got {self._strength:g}.")
        inverse = lapack.spotri(factor, lower=True, overwrite_c=True)[0].T
        for row in range(1, count):
            inverse[row, :row] = inverse[:row, row]  # LAPACK computes one triangle
        inverse /= -inverse.diagonal()
        inverse[np.diag_indices(count)] = 0.0
        self._weights, self._matrix = inverse, interactions.matrix

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return self._matrix[users] @ self._weights


def _co_occurrences(interactions: Interactions) -> Iterator[tuple[int, Any]]:
    """Yields blocks of rows of X^T X: the first item, and the numbers of common users as a CSR array [block, items]."""
    by_item = interactions.matrix.T.tocsr()
    size = max(1, _BLOCK // max(interactions.num_items, 1))
    for start in range(0, interactions.num_items, size):
        yield start, by_item[start : start + size] @ interactions.matrix
