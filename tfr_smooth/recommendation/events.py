"""Events in order of time: one or more for each pair of a user and an item."""

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


def checked_events(
    users: np.ndarray, times: Any, weights: Any, events: Any, event_times: Any, event_weights: Any
) -> tuple[Any, Any, Any]:
    """Returns the places of the pairs of events, in order of time by default, and the times and weights of the events.

    Args:
      users: The user of each pair, ascending.
      times: The time of each pair, or None.
      weights: The weight of each pair, or None.
      events: As for `Interactions`, like the following arguments.
      event_times: The time of each event, or None.
      event_weights: The weight of each event, or None.

    Raises:
      ValueError: If the events do not fit the pairs.
    """
    if events is None and times is not None:
        events = np.lexsort([times, users])
    if events is not None:
        places = np.asarray(events, None if np.size(events) else np.int64)
        if places.ndim != 1 or places.dtype.kind not in "iu":
            raise ValueError(f"`events` must be integers, [events], got {places.dtype} of shape {places.shape}.")
        places = places.astype(np.int64)
        is_known = ((places >= 0) & (places < len(users))).all()
        if not is_known or not np.bincount(places, minlength=len(users)).all() or (np.diff(users[places]) < 0).any():
            raise ValueError(f"`events` must be all places in `matrix.indices`, user by user, got {events!r}.")
        events = places
    count = 0 if events is None else len(events)
    checked = []
    for name, merge, tolerance, of_pairs, of_events in (
        ("times", np.maximum, 0.0, times, event_times),
        ("weights", np.add, 1e-6, weights, event_weights),
    ):
        is_needed = of_pairs is not None and count > len(users)
        if (of_events is not None) != is_needed:
            raise ValueError(f"`event_{name}` must be given if there are `{name}` and pairs repeat, and only then.")
        if is_needed:
            of_events = checked_numbers(f"event_{name}", of_events, count, "event")
            if not np.allclose(merged(merge, events, of_events), of_pairs, rtol=tolerance):
                raise ValueError(f"`{name}` must be the {merge.__name__} of `event_{name}` of each pair, got others.")
        checked.append(of_events)
    if times is not None:
        ordered = times[events] if checked[0] is None else checked[0]
        if ((np.diff(ordered) < 0.0) & (np.diff(users[events]) == 0)).any():
            raise ValueError("`events` must be in order of time for each user, got another order.")
    return events, *checked
