"""Baselines: popularity, item kNN, EASE, implicit ALS and BPR."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from tfr_smooth import _arguments, _extras
from tfr_smooth.recommendation.interactions import Interactions, sparse

# Pairs of items whose common users are counted at once, which bounds memory.
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
      ...     print(baseline.fit(train).scores([1]).round(2))
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

    def scores(self, users: Any) -> np.ndarray:
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

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 0, 0]])
      >>> recommendation.Popularity().fit(train).scores([0]).tolist()
      [[2.0, 1.0, 0.0]]
    """

    def _fit(self, interactions: Interactions) -> None:
        self._counts = interactions.users_per_item.astype(np.float32)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return np.tile(self._counts, [len(users), 1])


class ItemKNN(Baseline):
    r"""Item-based nearest neighbors with the cosine similarity and shrinkage.

    With the number of users $n_{ij}$ of both items i and j, and the k most similar items $N(j)$ of j,

    $$s_{ij} = \frac{n_{ij}}{\sqrt{n_{ii} n_{jj}} + h}, \qquad
    \mathrm{score}(u, j) = \sum_{i \in I(u) \cap N(j)} s_{ij}$$

    (Deshpande and Karypis, TOIS 2004). The shrinkage h lowers the similarities of rare items.

    Args:
      neighbors: The number k of neighbors of an item, >= 1.
      shrinkage: h, >= 0.

    Raises:
      ValueError: If an argument is out of its range.

    Time is that of the sparse product and of sorting its values; memory O(items * neighbors).

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 1, 1], [1, 0, 0]])
      >>> print(recommendation.ItemKNN(shrinkage=0.0).fit(train).scores([2]).round(2))
      [[0.   0.82 0.58]]
    """

    def __init__(self, *, neighbors: int = 200, shrinkage: float = 50.0) -> None:
        self._neighbors = _arguments.integer("neighbors", neighbors, least=1)
        self._shrinkage = _arguments.real("shrinkage", shrinkage, least=0.0)

    def _fit(self, interactions: Interactions) -> None:
        roots = np.sqrt(interactions.users_per_item.astype(np.float32))
        parts = []
        for start, common in _co_occurrences(interactions):
            rows = np.repeat(np.arange(common.shape[0]), np.diff(common.indptr))
            similar = common.data / (roots[start + rows] * roots[common.indices] + np.float32(self._shrinkage))
            similar[start + rows == common.indices] = 0.0  # not a neighbor of itself
            order = np.lexsort([-similar, rows])
            nearest = order[np.arange(len(order)) - common.indptr[rows] < self._neighbors]
            parts.append(sparse.csr_array((similar[nearest], (rows[nearest], common.indices[nearest])), common.shape))
        self._weights = sparse.vstack(parts, format="csr").T.tocsr()
        self._matrix = interactions.matrix

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return (self._matrix[users] @ self._weights).toarray()


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
      >>> print(recommendation.EASE(strength=1.0).fit(train).scores([2]).round(2))
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


class _Factorization(Baseline):
    """A model of the package implicit, whose scores are products of factors."""

    @abc.abstractmethod
    def _model(self) -> Any:
        """Imports implicit and returns the untrained model."""

    def _fit(self, interactions: Interactions) -> None:
        with _extras.needed("implicit", extra="recommendation", by=f"`{type(self).__name__}`"):
            import threadpoolctl

            model = self._model()
        with threadpoolctl.threadpool_limits(1, "blas"):  # implicit has threads of its own
            model.fit(sparse.csr_matrix(interactions.matrix), show_progress=False)
        self._users, self._items = model.user_factors, model.item_factors

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return self._users[users] @ self._items.T


class IALS(_Factorization):
    r"""Implicit alternating least squares (Hu, Koren and Volinsky, ICDM 2008), by the package implicit.

    Factors of users and items minimize

    $$\sum_{u, i} c_{ui} (x_{ui} - w_u^\top v_i)^2 + \lambda \Big(\sum_u \|w_u\|^2 + \sum_i \|v_i\|^2\Big)$$

    with the confidence $c_{ui} = \alpha$ for interactions and 1 for other pairs.

    Args:
      factors: The number of factors, >= 1.
      strength: $\lambda$, > 0.
      confidence: $\alpha$, > 0.
      iterations: Updates of both sides, >= 1.
      seed: Seed of the initial factors, >= 0.

    Raises:
      ValueError: If an argument is out of its range.
      ImportError: From `fit`, if implicit is not installed; the extra `tfr_smooth[recommendation]` includes it.

    Time per iteration O(interactions * factors + (users + items) * factors^2), on all processors.

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
      >>> scores = recommendation.IALS(factors=2, strength=0.1).fit(train).scores([0])
      >>> bool(scores[0, 1] > scores[0, 2])
      True
    """

    def __init__(
        self,
        *,
        factors: int = 64,
        strength: float = 50.0,
        confidence: float = 5.0,
        iterations: int = 15,
        seed: int = 0,
    ) -> None:
        self._factors = _arguments.integer("factors", factors, least=1)
        self._strength = _arguments.real("strength", strength, above=0.0)
        self._confidence = _arguments.real("confidence", confidence, above=0.0)
        self._iterations = _arguments.integer("iterations", iterations, least=1)
        self._seed = _arguments.integer("seed", seed, least=0)

    def _model(self) -> Any:
        from implicit.cpu.als import AlternatingLeastSquares

        return AlternatingLeastSquares(
            factors=self._factors,
            regularization=self._strength,
            alpha=self._confidence,
            iterations=self._iterations,
            random_state=self._seed,
        )


class BPR(_Factorization):
    r"""Bayesian personalized ranking (Rendle et al., UAI 2009, Section 4.1), by the package implicit.

    Factors of users and items, and biases of items, minimize

    $$\sum_{(u, i, j)} -\log \sigma(s_{ui} - s_{uj}) + \lambda \|\theta\|^2, \qquad s_{ui} = w_u^\top v_i + b_i$$

    over items i of user u and sampled items j that are not, by stochastic gradient descent.

    Args:
      factors: The number of factors, >= 1.
      learning_rate: The learning rate, > 0.
      strength: $\lambda$, >= 0.
      iterations: Passes over the interactions, >= 1.
      seed: Seed of the factors and samples, >= 0. The result also depends on the order of threads.

    Raises:
      ValueError: If an argument is out of its range.
      ImportError: From `fit`, if implicit is not installed; the extra `tfr_smooth[recommendation]` includes it.

    Time per iteration O(interactions * factors), on all processors.

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
      >>> scores = recommendation.BPR(factors=2, learning_rate=0.5).fit(train).scores([0])
      >>> bool(scores[0, :2].min() > scores[0, 2:].max())
      True
    """

    def __init__(
        self,
        *,
        factors: int = 64,
        learning_rate: float = 0.01,
        strength: float = 0.01,
        iterations: int = 100,
        seed: int = 0,
    ) -> None:
        self._factors = _arguments.integer("factors", factors, least=1)
        self._learning_rate = _arguments.real("learning_rate", learning_rate, above=0.0)
        self._strength = _arguments.real("strength", strength, least=0.0)
        self._iterations = _arguments.integer("iterations", iterations, least=1)
        self._seed = _arguments.integer("seed", seed, least=0)

    def _model(self) -> Any:
        from implicit.cpu.bpr import BayesianPersonalizedRanking

        return BayesianPersonalizedRanking(
            factors=self._factors,
            learning_rate=self._learning_rate,
            regularization=self._strength,
            iterations=self._iterations,
            random_state=self._seed,
        )


def _co_occurrences(interactions: Interactions) -> Iterator[tuple[int, Any]]:
    """Yields blocks of rows of X^T X: the first item, and the numbers of common users as a CSR array [block, items]."""
    by_item = interactions.matrix.T.tocsr()
    size = max(1, _BLOCK // max(interactions.num_items, 1))
    for start in range(0, interactions.num_items, size):
        yield start, by_item[start : start + size] @ interactions.matrix
