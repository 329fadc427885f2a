"""Times and weights of events, of which each pair of a user and an item has one or more."""

from __future__ import annotations

from typing import Any

import numpy as np


def merged(merge: np.ufunc, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns the sum or maximum of the values of each place, float64 [pairs]."""
    results = np.full(places.max(initial=-1) + 1, 0.0 if merge is np.add else -np.inf)
    merge.at(results, places, values)
    return results


def checked_numbers(name: str, values: Any, count: int, what: str = "interaction") -> np.ndarray:
    """Returns times, or weights > 0, as float64."""
    is_weight = name.endswith("weights")
    numbers = np.asarray(values, np.float64)
    least = np.finfo(np.float32).tiny if is_weight else -np.inf
    if numbers.shape != (count,) or not (np.isfinite(numbers) & (numbers >= least)).all():
        expected = f"{count} finite numbers{' > 0' * is_weight}, one per {what}"
        raise ValueError(f"`{name}` must be {expected}, got {values!r}.")
    return numbers
