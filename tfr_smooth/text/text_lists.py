"""Tables of texts as `Lists`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from tfr_smooth import _arguments
from tfr_smooth.data import column_values
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import arrays, checks
from tfr_smooth.data.reading.sources import check_constant


def lists_of(table: Any, columns: Mapping[str, str | None], *, labeled: bool) -> Lists:
    """Returns the lists of a table with one row per query and document.

    Args:
      table: The table.
      columns: The columns by role: "query", "text", "label" and "query_id", None for equal texts of queries.
      labeled: Whether the table must have labels; otherwise, the column of query ids may also be missing.

    Returns:
      The lists, whose features are the texts of the query and of the document.

    Raises:
      ValueError: If a column is missing or has values that are not allowed. The message names the column and row.
    """
    found = checks.as_arrow(table)
    query, text, query_id = (columns[role] for role in ("query", "text", "query_id"))
    for role in ("query", "text"):
        _arguments.name(role, columns[role], found.column_names)
    if query_id is None or (query_id not in found.column_names and not labeled):
        query_id = query
    else:
        _arguments.name("query_id", query_id, found.column_names)
    roles = {"query": query_id, "label": columns["label"] if labeled else None, "features": [query, text]}
    lists = arrays.lists_of(found, {}, argument="X", **roles)
    for name in (query, text):
        where, values = checks.Where(f"column {name!r}"), lists.source[name]
        checks.refuse_where(pc.is_null(values, nan_is_null=True), where, "text without missing values", values)
        if not column_values.is_text(values.type):
            raise ValueError(f"{where} must be text, got the type {values.type}.")
    check_constant(lists, lists.source[str(query)], f"column {query!r}", "another text in")
    return lists
