"""Partial dependence: the mean score as one column takes each of some values."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _plotting
from tfr_smooth._printable import printable
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.data.lists import Lists

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("number", "boolean", "date", "category", "id")  # of columns with a partial dependence
_MOST_TICKS = 200
_SCORED = 2**14  # documents that are scored for each value


@dataclasses.dataclass(frozen=True)
class PartialDependence:
    """The mean score of documents by the value of a column, as returned by `Ranker.partial_dependence`.

    Print it for a table.

    Args:
      column: The name of the column.
      values: Its values, at least one: numbers or dates in ascending order, or texts, the most frequent ones first.
      scores: The mean score with each value, [values].
      known: The values of the column in the documents.

    Raises:
      ValueError: If there are not as many scores as values.

    Example:
      >>> from tfr_smooth import training
      >>> print(training.PartialDependence("brand", ["acme", "umbrella"], [0.5, 0.25], ["acme", "acme", "umbrella"]))
      brand     mean score  documents
      acme          0.5000        67%
      umbrella      0.2500        33%
    """

    column: str
    values: np.ndarray
    scores: np.ndarray
    known: np.ndarray

    def __post_init__(self) -> None:
        """Checks the lengths and makes arrays."""
        for name in ("values", "scores", "known"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        if len(self.values) != len(self.scores) or not len(self.values):
            expected = f"{len(self.values)} numbers, one for each of `values` and at least one"
            raise ValueError(f"`scores` must be {expected}, got {len(self.scores)}.")

    @property
    def _are_texts(self) -> bool:
        return self.values.dtype.kind in "UO"

    def _share(self, value: Any) -> str:
        """Returns the share of the documents that have a text."""
        return f"{np.mean(self.known == value):.0%}"

    def __str__(self) -> str:
        """Returns the table; of texts with the share of the documents that have them."""
        shown = [f"{value:.6g}" if isinstance(value, float) else printable(value) for value in self.values]
        width = max(map(len, [printable(self.column), *shown]))
        lines = [f"{printable(self.column):<{width}}  mean score{'  documents' * self._are_texts}"]
        for name, value, score in zip(shown, self.values, self.scores, strict=True):
            share = f"  {self._share(value):>9}" if self._are_texts else ""
            lines.append(f"{name:<{width}}  {score:>10.4f}{share}")
        return "\n".join(lines)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Plots the mean scores; ticks show quantiles of numbers and dates, percentages the shares of texts.

        Args:
          path: The PNG file to write, in an existing directory. An existing file is replaced atomically.

        Raises:
          ImportError: If matplotlib is not installed; the extra `tfr_smooth[evaluation]` includes it.
        """
        _plotting.write_png(path, lambda: draw(self), by="`PartialDependence.plot`")


def draw(dependence: PartialDependence) -> Figure:
    """Returns the figure of `PartialDependence.plot` in the current theme."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    color = _plotting.COLORS[0]
    if dependence._are_texts:
        names = [_plotting.plain(f"{value} ({dependence._share(value)})") for value in dependence.values]
        figure.set_size_inches(5.5, 1.2 + 0.26 * len(names))
        axes.plot(dependence.scores, names, "o", color=color)
        axes.invert_yaxis()
        axes.set_xlabel("mean score")
        axes.set_title(f"Mean score by {_plotting.plain(dependence.column)}")
        return figure
    axes.plot(dependence.values, dependence.scores, marker="o", markersize=3.5, color=color)
    ticks = at_quantiles(dependence.known, _MOST_TICKS)
    axes.plot(ticks, np.zeros(len(ticks)), "|", color=_plotting.GRAY, transform=axes.get_xaxis_transform())
    axes.set_xlabel(_plotting.plain(dependence.column))
    axes.set_ylabel("mean score")
    axes.set_title("Mean score by the value of the column, and quantiles of its values")
    return figure


def partial_dependence(
    score: Callable[..., np.ndarray], layer: TableFeatures, lists: Lists, name: str, *, points: int, seed: int
) -> PartialDependence:
    """Computes the mean score by the value of a column, as described in `Ranker.partial_dependence`.

    Args:
      score: A function from lists, and from a function that changes raw values, to the scores of the documents.
      layer: The features.
      lists: The lists, with raw values.
      name: The name of the column.
      points: The most values.
      seed: Seed of the sample of documents.
    """
    column = {column.name: column for column in layer.columns}[name]
    place = [other.name for other in layer.columns if other.stacked].index(name) if column.stacked else None
    # One list for each document, which alone takes the value: ranks depend on the others.
    documents = np.random.default_rng(seed).permutation(lists.documents)
    of_query = lists.query_of_document[documents]
    count = max(int(np.searchsorted(np.cumsum(lists.lengths[of_query]), _SCORED, side="right")), 1)
    documents, of_query = documents[:count], of_query[:count]
    inside = documents - lists.starts[of_query]
    lists = lists.take(of_query)
    probes = lists.starts[:-1] + inside
    is_probe = np.isin(np.arange(lists.documents), probes)

    def changed(raw: Any, places: np.ndarray, value: Any) -> Any:
        numbers, others = raw
        values = np.array(others[name] if place is None else numbers[:, place])
        values[is_probe[places]] = value
        if place is None:
            return numbers, {**others, name: values}
        numbers = np.array(numbers)
        numbers[:, place] = values
        return numbers, others

    numbers, others = layer.raw(lists, lists.rows[probes])
    values = others[name] if place is None else numbers[:, place]
    missing = column.missing_value.encode() if column.dtype == tf.string else column.missing_value
    known = values[(values != missing) & (values == values)]  # NaN differs from itself
    if not len(known):
        raise ValueError(f"`column` must have known values, got only missing ones in {name!r}.")
    grid = at_quantiles(known, points) if column.ordered else most_frequent(known, points)
    scores = [score(lists, changed=functools.partial(changed, value=value))[probes].mean() for value in grid]
    return PartialDependence(name, _shown(grid), np.array(scores), _shown(known))


def at_quantiles(values: np.ndarray, count: int) -> np.ndarray:
    """Returns different values at evenly spaced quantiles; all of them if there are at most so many."""
    different = np.unique(values)
    if len(different) <= count:
        return different
    return np.unique(np.sort(values)[np.linspace(0, len(values) - 1, count).round().astype(int)])


def most_frequent(values: np.ndarray, count: int) -> np.ndarray:
    """Returns the most frequent different values."""
    different, counts = np.unique(values, return_counts=True)
    return different[np.argsort(-counts, kind="stable")[:count]]


def _shown(values: np.ndarray) -> np.ndarray:
    """Returns raw values as they are shown: dates of seconds since 1970-01-01 UTC, and text of bytes."""
    if values.dtype.kind == "i":
        return values.astype("datetime64[s]")
    return (
        values if values.dtype.kind == "f" else np.array([value.decode(errors="replace") for value in values], object)
    )
