"""Quantiles of the features of a training set, as piecewise linear curves."""

from __future__ import annotations

import numpy as np

# The product of a slope in this range and a difference of float32 numbers, which may be 0 or infinite, is no NaN.
_SLOPES = (float(np.finfo(np.float32).tiny), 1e30)


class Sample:
    """Up to `size` rows, drawn at random from all that are added (Vitter's algorithm R).

    Args:
      size: The most rows, >= 1.

    Example:
      >>> sample = Sample(2)
      >>> for part in np.split(np.arange(6.0), 3):
      ...     _ = sample.add(part[:, np.newaxis])
      >>> sample.rows.shape
      (2, 1)
    """

    def __init__(self, size: int) -> None:
        self._size, self._random, self._count = size, np.random.default_rng(0), 0
        self._rows = np.zeros((0, 0), np.float32)

    @property
    def rows(self) -> np.ndarray:
        """The rows, float32."""
        return self._rows[: self._count]

    def add(self, rows: np.ndarray) -> np.ndarray:
        """Adds rows and returns them."""
        if not self._count:
            self._rows = np.zeros((self._size, rows.shape[1]), np.float32)
        counts = self._count + np.arange(1, len(rows) + 1)
        places = np.where(counts <= self._size, counts - 1, self._random.random(len(rows)) * counts).astype(np.int64)
        kept = places < self._size
        self._rows[places[kept]] = rows[kept]
        self._count += len(rows)
        return rows


def quantile_curve(column: np.ndarray, segments: int) -> np.ndarray:
    """Returns the segments of the curve from the values of a column to their quantiles.

    The quantile is the fraction of lower values, from 0 for the lowest to 1 for the highest. No distinct value counts
    for more than a fraction of 1 / segments, so the curve has segments for values beside a frequent one. With up to
    segments + 1 distinct values, all count the same.

    Args:
      column: float32 [rows], with at least one.
      segments: The most segments, >= 1.

    Returns:
      float64 [3, segments]: where they start, 6 / their lengths, and how far the curve rises. Those that are not needed
      are 0.

    Time O(n log n), memory O(n).

    Example:
      >>> starts, slopes, rises = quantile_curve(np.float32([0] * 93 + [1, 2, 4, 4, 8, 8, 8]), 4)
      >>> starts.tolist(), slopes.tolist(), rises.tolist()
      ([0.0, 1.0, 2.0, 4.0], [6.0, 6.0, 3.0, 1.5], [0.25, 0.25, 0.25, 0.25])
    """
    values, counts = np.unique(column, return_counts=True)
    knots, weights = values, np.ones(len(values))
    if len(values) > segments + 1:
        weights = np.minimum(counts, _cap(counts, segments))
    lower = np.cumsum(weights) - weights
    quantiles = lower / max(lower[-1], 1.0)
    if len(values) > segments + 1:
        places = np.unique(np.searchsorted(quantiles, np.linspace(0.0, 1.0, segments + 1)))
        knots, quantiles = values[places], quantiles[places]
    curve = np.zeros((3, segments))
    slopes = np.clip(6.0 / np.diff(knots.astype(np.float64)), *_SLOPES)
    curve[:, : len(slopes)] = knots[:-1], slopes, np.diff(quantiles)
    return curve


def _cap(counts: np.ndarray, parts: int) -> float:
    """Returns the cap of more than `parts` counts that is their capped sum divided by `parts`."""
    largest = np.sort(counts)[::-1][:parts]
    others = counts.sum() - np.cumsum(largest) + largest
    caps = others / np.arange(parts, 0, -1)  # if the larger ones are capped, but not this one
    return float(caps[np.argmax(largest <= caps)])
