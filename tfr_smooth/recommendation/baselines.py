"""Baselines: popularity, transitions between items and EASE."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from typing_extensions import Self

from tfr_smooth import _arguments
from tfr_smooth.recommendation.interactions import Interactions, sparse
from tfr_smooth.recommendation.sequences import in_blocks

# Numbers of common users of items that are counted at once, which bounds memory. Not tuned.
_BLOCK = 2**22


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

    def fit(self, interactions: Interactions) -> Self:
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

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 0, 0]])
      >>> recommendation.Popularity().fit(train).predict([0]).tolist()
      [[2.0, 1.0, 0.0]]
    """

    def _fit(self, interactions: Interactions) -> None:
        self._counts = interactions.users_per_item.astype(np.float32)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return np.tile(self._counts, [len(users), 1])


class MarkovChain(Baseline):
    r"""Scores items by the transitions from the user's latest items, in order of time.

    With the items $j_1, j_2, \dots$ of a user, the latest one first, and the number $c_{ji}$ of places in the training
    at which item i follows item j at a distance of at most K, each weighted by decay^(distance - 1),

    $$\mathrm{score}_i = \sum_{k=1}^{K} \mathrm{decay}^{k-1} \, p(i \mid j_k), \qquad
      p(i \mid j) = \frac{c_{ji} + \mu \, p_i}{\sum_{i'} c_{ji'} + \mu}$$

    with the share $p_i$ of item i in all interactions, one of which is added to each item. It decides between items
    that never followed $j_k$, and is the score for users without items. For K = 1, this is a Markov chain of first
    order with Dirichlet smoothing (Zhai and Lafferty, "A Study of Smoothing Methods for Language Models Applied to Ad
    Hoc Information Retrieval", SIGIR 2001); for larger K, a mixture of transitions (Raftery, "A Model for High-order
    Markov Chains", 1985).

    Args:
      order: K, the number of the latest items that predict the next one, >= 1.
      decay: The weight of an item relative to the one after it, in (0, 1].
      smoothing: $\mu$, > 0.

    Raises:
      ValueError: If an argument is out of range; from `fit`, if the interactions have no order.

    Time and memory O(interactions * order), besides the scores.

    Example:
      >>> from scipy import sparse
      >>> from tfr_smooth import recommendation
      >>> matrix = sparse.csr_array([[1, 1, 0], [1, 1, 0], [1, 0, 0]])
      >>> train = recommendation.Interactions(matrix, times=[10, 20, 10, 20, 10])
      >>> print(recommendation.MarkovChain(order=1, smoothing=1.0).fit(train).predict([2]).round(2))
      [[0.17 0.79 0.04]]
    """

    def __init__(self, *, order: int = 10, decay: float = 0.8, smoothing: float = 30.0) -> None:
        self.order = _arguments.integer("order", order, least=1)
        self.decay = _arguments.real("decay", decay, above=0.0, most=1.0)
        self.smoothing = _arguments.real("smoothing", smoothing, above=0.0)

    def _fit(self, interactions: Interactions) -> None:
        items, _, starts = interactions.sequences()
        users = np.repeat(np.arange(interactions.num_users), np.diff(starts))
        shape = interactions.num_items, interactions.num_items
        counts = sparse.csr_array(shape, dtype=np.float64)
        for distance in range(1, self.order + 1):
            is_pair = users[distance:] == users[:-distance]
            pairs = items[:-distance][is_pair], items[distance:][is_pair]
            weights = np.full(len(pairs[0]), self.decay ** (distance - 1))
            counts += sparse.csr_array((weights, pairs), shape=shape)
        pairs = counts.tocoo()
        totals = self.smoothing + np.bincount(pairs.row, pairs.data, minlength=shape[0])
        shares = pairs.data / totals[pairs.row], (pairs.row, pairs.col)
        self.transitions = sparse.csr_array(shares, shape=shape, dtype=np.float32)
        self.smoothed = (self.smoothing / totals).astype(np.float32)
        counts_of_items = interactions.users_per_item + 1.0
        self.shares = (counts_of_items / counts_of_items.sum()).astype(np.float32)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        latest, rows = self.interactions_.latest(users, self.order)[0], of_rows(self.transitions)
        scores = lambda items: transition_scores(items, rows, self.smoothed, self.shares, self.order, self.decay)[0]  # noqa: E731
        return in_blocks(scores, latest, len(self.shares)).numpy()


class EASE(Baseline):
    r"""Embarrassingly Shallow Autoencoder (Steck, WWW 2019): ridge regression of each item on all others.

    With the interactions X [users, items] and $P = (X^\top X + \lambda I)^{-1}$,

    $$\mathrm{scores} = X B, \qquad B_{ij} = -P_{ij} / P_{jj} \text{ for } i \ne j, \qquad B_{jj} = 0$$

    which minimizes $\|X - X B\|_F^2 + \lambda \|B\|_F^2$ among the matrices with zero diagonal.

    Args:
      strength: $\lambda$, > 0.
      max_items: Number of the most frequent items that the regression is of, >= 1; other items have the score 0. None:
        all.

    Raises:
      ValueError: If an argument is out of range; from `fit`, if `strength` is too small for float32.

    Time O(items^3); memory 4 bytes * items^2, which is 6.7 GB for 41,000 items.

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 1, 1], [1, 0, 0]])
      >>> print(recommendation.EASE(strength=1.0).fit(train).predict([2]).round(2))
      [[0.   0.43 0.12]]
    """

    def __init__(self, *, strength: float = 500.0, max_items: int | None = None) -> None:
        self._strength = _arguments.real("strength", strength, above=0.0)
        self._max_items = _arguments.integer_or_none("max_items", max_items, least=1)

    def _fit(self, interactions: Interactions) -> None:
        from scipy.linalg import lapack

        self._num_items = interactions.num_items
        self._items = np.sort(np.argsort(-interactions.users_per_item, kind="stable")[: self._max_items])
        matrix, count = interactions.matrix[:, self._items], len(self._items)
        gram, by_item, size = np.empty([count, count], np.float32), matrix.T.tocsr(), max(1, _BLOCK // max(count, 1))
        for start in range(0, count, size):
            gram[start : start + size] = (by_item[start : start + size] @ matrix).toarray()
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
        self._weights = inverse

    def _scores(self, users: np.ndarray) -> np.ndarray:
        scores = np.zeros([len(users), self._num_items], np.float32)
        scores[:, self._items] = self.interactions_.matrix[users][:, self._items] @ self._weights
        return scores

    def neighbors(self, count: int) -> Any:
        """Returns B with the greatest weights of each row only, a sparse array [items, items]."""
        count = min(count, len(self._items))
        # In rows, to bound memory.
        columns = [np.sort(np.argpartition(-np.abs(row), count - 1)[:count]) for row in self._weights]
        values = [row[chosen] for row, chosen in zip(self._weights, columns, strict=True)]
        starts = np.zeros(self._num_items + 1, np.int32)
        starts[self._items + 1] = count
        content = np.concatenate(values), self._items[np.concatenate(columns)], np.cumsum(starts)
        return sparse.csr_array(content, shape=[self._num_items] * 2)


def of_rows(matrix: Any) -> list[np.ndarray]:
    """Returns the starts, columns and values of the rows of a CSR array."""
    return [matrix.indptr, matrix.indices, matrix.data]


def sums_of_rows(
    matrix: Sequence[Any], users: tf.Tensor, rows: tf.Tensor, count: tf.Tensor, weights: tf.Tensor | None = None
) -> tf.Tensor:
    """Returns the sums of some rows of a square matrix for each user, float32 [count, columns].

    Args:
      matrix: The matrix, as of `of_rows`.
      users: The user of each row, ascending, int64 [rows].
      rows: The rows, [rows].
      count: The number of users, int64.
      weights: What multiplies each row, float32 [rows]. None: 1.
    """
    starts, *content = map(tf.convert_to_tensor, matrix)
    columns, values = (
        tf.gather(tf.RaggedTensor.from_row_splits(each, starts, validate=False), rows) for each in content
    )
    summands = values.values
    if weights is not None:  # `value_rowids` takes three times as long
        summands *= tf.gather(weights, values.to_sparse().indices[:, 0])
    splits = tf.cast(tf.gather(columns.row_splits, tf.searchsorted(users, tf.range(count + 1))), tf.int64)
    size = tf.cast(tf.shape(starts)[0] - 1, columns.dtype)
    return tf.raw_ops.RaggedBincount(splits=splits, values=columns.values, size=size, weights=summands)


def transition_scores(
    items: tf.Tensor, transitions: Sequence[Any], smoothed: Any, shares: Any, order: int, decay: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the scores of a `MarkovChain` for items in order after all padding, and the sum of their weights."""
    length, count = tf.shape(items, tf.int64)[1], tf.shape(items, tf.int64)[0]
    places = tf.where((items >= 0) & (tf.range(length) >= length - order))
    users, item = places[:, 0], tf.gather_nd(items, places)
    weights = decay ** tf.cast(length - 1 - places[:, 1], tf.float32)
    rest = weights * tf.gather(tf.convert_to_tensor(smoothed), item)
    total, rest = (tf.math.unsorted_segment_sum(each, users, count)[:, tf.newaxis] for each in (weights, rest))
    total, rest = (tf.where(total > 0.0, each, 1.0) for each in (total, rest))
    return sums_of_rows(transitions, users, item, count, weights) + rest * tf.convert_to_tensor(shares), total
