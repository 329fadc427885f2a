"""What was inferred of the columns of a training table, as a table to read."""

from __future__ import annotations

from typing import NamedTuple

from tfr_smooth._arguments import printable


class ColumnSummary(NamedTuple):
    """What was inferred of one column of the training rows.

    Attributes:
      name: The name.
      kind: The kind.
      reason: Why it has this kind.
      type: The type of its values: "number", "boolean", "text", "date", "vector" or "set".
      values: The number of different values, of numbers and dates in a sample of 65,536 rows; None for vectors and
        sets.
      missing: The fraction of missing values.

    Example:
      >>> from tfr_smooth.columns import ColumnSummary
      >>> ColumnSummary("price", "number", "numbers", "number", 70, 0.1).missing
      0.1
    """

    name: str
    kind: str
    reason: str
    type: str
    values: int | None
    missing: float


class ColumnSummaries(tuple[ColumnSummary, ...]):
    """The `ColumnSummary` of each column of a table. Print it for a table.

    Example:
      >>> from tfr_smooth.columns import ColumnSummaries, ColumnSummary
      >>> print(ColumnSummaries([ColumnSummary("price", "number", "numbers", "number", 70, 0.1)]))
      column  kind    values  missing  reason
      price   number      70      10%  numbers
    """

    def __str__(self) -> str:
        """Returns the table, a line for each column."""
        rows = [("column", "kind", "values", "missing", "reason")]
        for summary in self:
            values = "" if summary.values is None else f"{summary.values:,}"
            rows.append((printable(summary.name), summary.kind, values, f"{summary.missing:.0%}", summary.reason))
        first, second, third, fourth, _ = (max(map(len, cells)) for cells in zip(*rows, strict=True))
        return "\n".join(f"{a:<{first}}  {b:<{second}}  {c:>{third}}  {d:>{fourth}}  {e}" for a, b, c, d, e in rows)
