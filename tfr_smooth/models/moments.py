"""Mean, variances and covariances of documents added in batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


class Moments:
    """The mean of rows, and sums of products of their differences from it.

    Batches are merged as by Chan, Golub and LeVeque (1979), which is numerically stable.

    Args:
      product: Maps differences, float64 [rows, columns], to the sums of their products over the rows: of each column
        with itself, [columns], or of all pairs of columns, [columns, columns].

    Attributes:
      count: The number of rows.
      mean: float64 [columns].
      products: The sums of products of all rows.

    Example:
      >>> import numpy as np
      >>> moments = Moments(lambda differences: np.square(differences).sum(axis=0))
      >>> moments.add(np.array([[1.0], [2.0]]))
      >>> moments.add(np.array([[6.0]]))
      >>> moments.mean.tolist(), moments.products.tolist()
      ([3.0], [14.0])
    """

    def __init__(self, product: Callable[[np.ndarray], np.ndarray]) -> None:
        self._product = product
        self.count = 0
        self.mean: np.ndarray = np.zeros(())
        self.products: np.ndarray = np.zeros(())

    def add(self, rows: np.ndarray) -> None:
        """Adds float64 rows [rows, columns]."""
        if not len(rows):
            return
        mean = rows.mean(axis=0)
        total = self.count + len(rows)
        shift = mean - self.mean
        between = self._product(shift[np.newaxis]) * (self.count * len(rows) / total)
        self.products = self.products + self._product(rows - mean) + between
        self.mean = self.mean + shift * (len(rows) / total)
        self.count = total
