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
    source = checks.as_arrow(table)
    query, text, query_id = (columns[role] for role in ("query", "text", "query_id"))
    for role in ("query", "text"):
        _arguments.name(role, columns[role], source.column_names)
    if query_id is None or (query_id not in source.column_names and not labeled):
        query_id = query
    else:
        _arguments.name("query_id", query_id, source.column_names)
    roles = {"query": query_id, "label": columns["label"] if labeled else None, "features": [query, text]}
    lists = arrays.lists_of(source, {}, argument="X", **roles)
    for name in (query, text):
        _check_texts(checks.Where(f"column {name!r}"), lists.source[name])
    check_constant(lists, lists.source[str(query)], f"column {query!r}", "another text in")
    return lists


def texts_of(lists: Lists) -> tuple[list[Any], list[Any]]:
    """Returns the texts of the query and of the document of each document, in the order of the lists."""
    query, text = (lists.values(name).tolist() for name in lists.roles.features)
    return query, text


def text_values(what: str, values: Any) -> list[Any]:
    """Returns texts that are no part of a table as a list.

    Args:
      what: Names the texts, for messages.
      values: A list, an array, or a column of a table.

    Raises:
      ValueError: If a value is not text. The message names the row.
    """
    where = checks.Where(what)
    if isinstance(values, str):
        raise ValueError(f"{where} must be a list of texts, got {checks.shown(values)}.")
    column = checks.feature(where, checks.as_array(what, values))
    _check_texts(where, column)
    return column.to_pylist()


def _check_texts(where: checks.Where, column: Any) -> None:
    checks.refuse_where(pc.is_null(column, nan_is_null=True), where, "text without missing values", column)
    if len(column) and not column_values.is_text(column.type):  # An empty column may have any type.
        raise ValueError(f"{where} must be text, got the type {column.type}.")
