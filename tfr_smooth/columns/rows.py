"""Rows that are dicts, as a request in JSON has them: a table in the types of the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tfr_smooth.columns.kinds import Column, raw_values
from tfr_smooth.data.reading import checks


def table_of_rows(rows: Sequence[Any], columns: Sequence[Column], others: Sequence[str] = ()) -> pa.Table:
    """Returns rows as a table.

    Args:
      rows: A dict per row, with None for missing values. Further keys are ignored.
      columns: The columns, whose values may be of several types: each is read by the type of the training.
      others: The names of further columns to take, if the first row has them.

    Returns:
      The table.

    Raises:
      ValueError: If a row lacks a column, or a value is of another kind. The message names the column and the row.
    """
    table = {column.name: _values(column, rows) for column in columns}
    for name in others:
        if name not in table and name in rows[0]:
            table[name] = checks.as_array(f"column {name!r}", _of_rows(rows, name, "a value"))
    return pa.table(table)


def _of_rows(rows: Sequence[Any], name: str, contains: str) -> list[Any]:
    """Returns the values of a column of rows."""
    try:
        return [row[name] for row in rows]
    except (KeyError, TypeError, IndexError):
        place = next(place for place, row in enumerate(rows) if not isinstance(row, Mapping) or name not in row)
        expected, got = f"must be in each row ({contains}; None if missing)", checks.shown(rows[place])
        raise ValueError(f"column {name!r} {expected}, got {got} in row {place}.") from None


def _values(column: Column, rows: Sequence[Any]) -> Any:
    """Returns the Arrow values of a column."""
    values, where = _of_rows(rows, column.name, column.contains), checks.Where(f"column {column.name!r}")
    try:
        return checks.as_array(where.what, values)
    except ValueError:
        if len(values) == 1:
            raise
    parts = []  # Values of several types are converted one by one.
    for row, value in enumerate(values):
        try:
            raw = raw_values(column, checks.feature(where, checks.as_array(where.what, [value])))
        except ValueError:
            checks.refuse(where, column.contains, value, row)
        raw = raw.cast(pa.timestamp("us")) if pa.types.is_temporal(raw.type) else raw  # also with a time zone, in UTC
        parts.append(pa.table({"": raw}))
    return pa.concat_tables(parts, promote_options="permissive")[""]
