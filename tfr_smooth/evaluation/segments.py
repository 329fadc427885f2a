"""Measures by segment: of the queries of each value of a column, with a table and a plot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tfr_smooth import _arguments, _plotting
from tfr_smooth._printable import printable
from tfr_smooth.evaluation.calibration import STANDARD_ERRORS
from tfr_smooth.evaluation.trec import ByMeasure, Estimate, estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class BySegment(dict[str, ByMeasure[Estimate]]):
    """The measures of each segment of the queries, by its name. Print it for a table.

    Args:
      values: The values of each query by measure, as of `evaluate_rows` with `by_query=True`.
      segments: The segment of each query.

    Attributes:
      queries: The number of queries of each segment, the largest first.

    Raises:
      ValueError: If a query has no segment.

    Example:
      >>> from tfr_smooth import evaluation
      >>> values = {"ndcg": {"q1": 0.5, "q2": 1.0, "q3": 0.25}}
      >>> print(evaluation.BySegment(values, {"q1": "phone", "q2": "phone", "q3": "desktop"}))
      segment  queries             ndcg
      phone          2  0.7500 ± 0.2500
      desktop        1           0.2500
    """

    def __init__(self, values: Mapping[str, Mapping[str, float]], segments: Mapping[str, Any]) -> None:
        if absent := next((query for of_query in values.values() for query in of_query if query not in segments), None):
            raise ValueError(f"`segments` must have each query of `values`, got none for {absent!r}.")
        groups: dict[str, dict[str, dict[str, float]]] = {}
        for query in next(iter(values.values()), {}):
            of_measures = {measure: of_query[query] for measure, of_query in values.items()}
            groups.setdefault(str(segments[query]), {})[query] = of_measures
        names = sorted(groups, key=lambda name: -len(groups[name]))
        super().__init__({name: estimates(groups[name]) for name in names})
        self.queries = {name: len(groups[name]) for name in names}

    def __str__(self) -> str:
        """Returns the table of means and standard errors."""
        width = max(map(len, map(printable, ["segment", *self])))
        measures: Mapping[str, Estimate] = next(iter(self.values()), {})
        lines = [f"{'segment':<{width}}  queries" + "".join(f"  {measure:>15}" for measure in measures)]
        for name, by_measure in self.items():
            cells = "".join(f"  {value!s:>15}" for value in by_measure.values())
            lines.append(f"{printable(name):<{width}}  {self.queries[name]:>7}{cells}")
        return "\n".join(lines)

    def plot(self, path: str | os.PathLike[str], *, measure: str = "ndcg", top: int = 20) -> None:
        """Plots a measure of the segments as bars, with intervals of 95% (1.96 standard errors).

        Args:
          path: The PNG file to write, in an existing directory. An existing file is replaced atomically.
          measure: The name of the measure.
          top: The number of segments, >= 1; the largest are shown.

        Raises:
          ValueError: If an argument is invalid.
          ImportError: If matplotlib is not installed; the extra `tfr_smooth[evaluation]` includes it.
        """
        _arguments.name("measure", measure, next(iter(self.values()), {}))
        top = _arguments.integer("top", top, least=1)
        _plotting.write_png(path, lambda: _draw(self, measure, top), by="`BySegment.plot`")


def _draw(segments: BySegment, measure: str, top: int) -> Figure:
    values = {f"{name} ({segments.queries[name]})": by_measure[measure] for name, by_measure in segments.items()}
    errors = [STANDARD_ERRORS * np.nan_to_num(estimate.standard_error) for estimate in values.values()]
    means, title = {name: estimate.mean for name, estimate in values.items()}, f"{measure} by segment (queries)"
    return _plotting.bars(means, top, title=title, label=f"mean {measure} and its 95% interval", errors=errors)
