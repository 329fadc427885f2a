"""Tables of texts as `Lists`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth import _arguments
from tfr_smooth.data.column_values import OUTER_BLANKS, TEXTS, value_type
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks, sources
from tfr_smooth.data.reading.ids import plain_array
from tfr_smooth.data.reading.sources import check_constant, of_files


def table_of(X: Any, columns: Mapping[str, str | None]) -> Any:
    """Returns the table of files, whose texts are text, if paths are given, and others as they are."""
    return of_files(X, {str(columns[role]): "text" for role in ("query", "text")}, [columns["query_id"]])


def lists_of(table: Any, columns: Mapping[str, str | None], *, labeled: bool) -> Lists:
    """Returns the lists of a table with one row per query and document.

    Args:
      table: The table, or paths of files.
      columns: The columns by role: "query", "text", "label" and "query_id", None for equal texts of queries.
      labeled: Whether the table must have labels; otherwise, the column of query ids may also be missing.

    Returns:
      The lists, whose features are the texts of the query and of the document.

    Raises:
      ValueError: If a column is missing or has values that are not allowed. The message names the column and row.
    """
    source = checks.as_arrow(table_of(table, columns))
    query, text, query_id = (columns[role] for role in ("query", "text", "query_id"))
    for role in ("query", "text"):
        _arguments.name(role, columns[role], source.column_names)
    if query_id is None or (query_id not in source.column_names and not labeled):
        query_id = query
    else:
        _arguments.name("query_id", query_id, source.column_names)
    roles = {"query": query_id, "label": columns["label"] if labeled else None, "features": [query, text]}
    for name in dict.fromkeys((query, text)):
        texts = _texts(checks.Where(f"column {name!r}"), source[name])
        source = source.set_column(source.column_names.index(name), name, texts)
    lists = sources.lists_of(source, {}, argument="X", **roles)
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
    if isinstance(values, (str, Mapping)) or hasattr(values, "columns"):
        got = type(values).__name__
        raise ValueError(f"{where} must be a list of texts, or one column of a table, got {got}.")
    return _texts(where, checks.as_array(what, values)).to_pylist()


def _texts(where: checks.Where, column: Any) -> Any:
    """Returns the texts of a column without the blanks around them, which do not count."""
    values = plain_array(column)
    checks.refuse_where(pc.is_null(values, nan_is_null=True), where, "text without missing values", values)
    if len(values) and value_type(values.type) not in TEXTS:  # An empty column may have any type.
        checks.refuse(where, "text", values[0], 0)
    return pc.replace_substring_regex(values.cast(pa.large_string()), OUTER_BLANKS, "")
