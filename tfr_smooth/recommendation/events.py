"""Times and weights of events, of which each pair of a user and an item has one or more."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfr_smooth.data.reading import checks


def merged(merge: np.ufunc, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns the sum or maximum of the values of each place, float64 [pairs]."""
    results = np.full(places.max(initial=-1) + 1, 0.0 if merge is np.add else -np.inf)
    merge.at(results, places, values)
    return results


def checked_numbers(name: str, values: Any, count: int, what: str = "interaction") -> np.ndarray:
    """Returns times, or weights > 0, as float64."""
    is_weight = name.endswith("weights")
    expected = f"{count} finite numbers{' > 0' * is_weight}, one per {what}"
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be {expected}, got {checks.shown(values)}.") from None
    if numbers.shape != (count,):
        raise ValueError(f"`{name}` must be {expected}, got the shape {numbers.shape}.")
    if len(wrong := wrong_numbers(numbers, is_weight)):
        raise ValueError(f"`{name}` must be {expected}, got {numbers[wrong[0]]:g} at place {wrong[0]}.")
    return numbers


def wrong_numbers(numbers: np.ndarray, is_weight: bool) -> np.ndarray:
    """Returns the places of numbers that are no times, or no weights > 0 in float32."""
    limits = np.finfo(np.float32)
    good = np.isfinite(numbers)
    return np.flatnonzero(~(good & (numbers >= limits.tiny) & (numbers <= limits.max) if is_weight else good))
