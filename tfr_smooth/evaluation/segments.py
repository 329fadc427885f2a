"""Measures by segment: of the queries of each value of a column, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfr_smooth._arguments import printable
from tfr_smooth.evaluation.trec import ByMeasure, Estimate, estimates


class BySegment(dict[str | None, ByMeasure[Estimate]]):
    """The measures of each segment of the queries, by its name, the largest first. Print it for a table.

    Args:
      values: The values of each query by measure, as of `evaluate_rows` with `by_query=True`.
      segments: The segment of each query; None or NaN if it is missing, which is the segment None.

    Attributes:
      queries: The number of queries of each segment.

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
        groups: dict[str | None, dict[str, dict[str, float]]] = {}
        for query in next(iter(values.values()), {}):
            of_measures = {measure: of_query[query] for measure, of_query in values.items()}
            segment = segments[query]
            is_missing = segment is None or segment != segment  # NaN
            groups.setdefault(None if is_missing else str(segment), {})[query] = of_measures
        names = sorted(groups, key=lambda name: -len(groups[name]))
        super().__init__({name: estimates(groups[name]) for name in names})
        self.queries = {name: len(groups[name]) for name in names}

    def __str__(self) -> str:
        """Returns the table of means and standard errors."""
        shown = ["(missing)" if name is None else printable(name) for name in self]
        width = max(map(len, ["segment", *shown]))
        measures: Mapping[str, Estimate] = next(iter(self.values()), {})
        lines = [f"{'segment':<{width}}  queries" + "".join(f"  {measure:>15}" for measure in measures)]
        for name, (segment, by_measure) in zip(shown, self.items(), strict=True):
            cells = "".join(f"  {value!s:>15}" for value in by_measure.values())
            lines.append(f"{name:<{width}}  {self.queries[segment]:>7}{cells}")
        return "\n".join(lines)

    def to_pandas(self) -> Any:
        """Returns a DataFrame with a row per segment: its queries, and the mean and `_error` of each measure.

        Returns:
          The pandas DataFrame, with the segments as its index, None for the missing one.

        Example:
          >>> from tfr_smooth import evaluation
          >>> segments = evaluation.BySegment({"ndcg": {"q1": 0.5, "q2": 1.0}}, {"q1": "phone", "q2": "phone"})
          >>> segments.to_pandas().reset_index()
            segment  queries  ndcg  ndcg_error
          0   phone        2  0.75        0.25
        """
        import pandas as pd

        index = pd.Index([*self], dtype=object, name="segment")
        frame = pd.DataFrame({"queries": [*self.queries.values()]}, index)
        for measure in next(iter(self.values()), {}):
            frame[[measure, f"{measure}_error"]] = [tuple(each[measure]) for each in self.values()]
        return frame
