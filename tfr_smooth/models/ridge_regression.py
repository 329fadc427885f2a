"""Ridge regression on documents added in batches."""

from __future__ import annotations

import numpy as np


class RidgeRegression:
    r"""Ridge regression of labels on document features.

    $$w = (X^\top X / D + \lambda I)^{-1} X^\top y / D$$

    with centered X and y of D documents. There is no intercept, as it does not affect rankings.

    Time O(D F^2 + F^3) and memory O(F^2) for F features.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth.models.ridge_regression import RidgeRegression
      >>> regression = RidgeRegression()
      >>> regression.add(np.array([[-1.0], [1.0]]), np.array([0.0, 2.0]))
      >>> regression.weights(strength=1.0).tolist(), regression.weights(strength=1e-12).round(6).tolist()
      ([0.5], [1.0])
    """

    def __init__(self) -> None:
        self._documents = 0
        self._mean: np.ndarray = np.zeros(())
        # Sums of products of differences from the mean; the label is the last column.
        self._products: np.ndarray = np.zeros(())

    def add(self, features: np.ndarray, labels: np.ndarray) -> None:
        """Adds documents: features [documents, num_features] and labels [documents]."""
        if not len(labels):
            return
        rows = np.concatenate([features, np.reshape(labels, [-1, 1])], axis=1).astype(np.float64)
        mean = rows.mean(axis=0)
        centered = rows - mean
        # The merge of Chan, Golub and LeVeque 1979, which is numerically stable.
        total = self._documents + len(rows)
        shift = mean - self._mean
        between = np.outer(shift, shift) * (self._documents * len(rows) / total)
        self._products = self._products + centered.T @ centered + between
        self._mean = self._mean + shift * (len(rows) / total)
        self._documents = total

    def weights(self, strength: float) -> np.ndarray:
        r"""Returns the weights w, float64 [num_features].

        Args:
          strength: $\lambda$, > 0, relative to the variance of the features.
        """
        covariance = self._products / self._documents
        return np.linalg.solve(covariance[:-1, :-1] + strength * np.eye(len(covariance) - 1), covariance[:-1, -1])

    def stddev(self, weights: np.ndarray) -> float:
        """Returns the standard deviation of the scores Xw of the documents."""
        return float(np.sqrt(weights @ self._products[:-1, :-1] @ weights / self._documents))
