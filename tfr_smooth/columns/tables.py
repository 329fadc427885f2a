"""The columns of any table: learned, and as raw values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth import _arguments
from tfr_smooth.columns.kinds import Column, check_names, raw_table
from tfr_smooth.columns.learning import learn_table
from tfr_smooth.data.column_values import ColumnValues
from tfr_smooth.data.reading.checks import Where, as_arrow, feature


def checked_table(table: Any) -> pa.Table:
    """Returns a table as checked Arrow columns.

    Args:
      table: A table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface.

    Returns:
      The columns.

    Raises:
      ValueError: If a column has values of another type, different types or an infinite number.
    """
    columns = as_arrow(table)
    names = columns.column_names
    return pa.table({name: feature(Where(f"column {name!r}"), columns[name]) for name in names})


def infer_columns(
    table: Any, *, max_categories: int = 100, rows: np.ndarray | None = None, kinds: Mapping[str, str] | None = None
) -> list[Column]:
    """Returns the columns of a training table, with their kinds, means and categories.

    Integers and floats are numbers, and durations their days; whole numbers are ids if the last word of the name is
    "id", "sku" or the like. Timestamps and dates, also in text as in ISO 8601, are dates, in UTC if they have no time
    zone; lists of one length of numbers are vectors, and other lists sets. Text and categorical columns are categories
    if they have few values, else text if they have several words, else ids; three letters of scripts without blanks,
    such as Chinese and Thai, count as a word. NaN, None, NaT, NA and empty text are missing values.

    Args:
      table: A table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface, with
        unique column names.
      max_categories: The most values, >= 1, of a category of unknown kind. Of a column whose kind is given as
        "category", these are the most frequent ones, ties in the order of the text; others count as unseen.
      rows: The rows to learn from, integers [n]. None uses all.
      kinds: The kinds of columns by name, in place of the inferred ones: "id", "set", "text" and "category" for text,
        "id" and "category" also for numbers; "set:SEPARATOR" for text with several values, such as "set:|".

    Returns:
      One column per column of the table, in order.

    Raises:
      ValueError: If a column has values of another type or different types, no known values, an infinite number,
        numbers that are mostly equal as float32, or a name that is empty or not unique. The message names the column.

    Time O(rows * columns). Memory: one column at a time.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth.columns import infer_columns
      >>> frame = pd.DataFrame({"price": [1.0, None, 3.0], "brand": ["b", "a", "a"]})
      >>> price, brand = infer_columns(frame)
      >>> price.kind, price.fill, price.has_missing, brand.categories
      ('number', 2.0, True, ('a', 'b'))
    """
    columns = checked_table(table)
    if not columns.num_columns:
        raise ValueError("`table` must have at least one column, got none.")
    for name in kinds or {}:
        _arguments.name("kinds", name, columns.column_names)
    layer, _ = learn_table(columns, rows, max_categories=max_categories, kinds=kinds)
    return list(layer.columns)


def column_arrays(table: Any, columns: Iterable[Column]) -> dict[str, np.ndarray]:
    """Returns the raw values of the columns of a table, as a model with `TableFeatures` takes them.

    Args:
      table: A table, as for `infer_columns`. Further columns are ignored.
      columns: The columns, as from `infer_columns`.

    Returns:
      Name -> values [rows]: numbers, booleans and the days of durations as float32, NaN if missing; categories as
      bytes, b"" if missing; dates as int64 seconds since 1970-01-01 UTC, the smallest int64 if missing.

    Raises:
      ValueError: If a column is missing from the table, has values of another kind, or a number that is infinite as
        float32. The message names the column and the row.

    Time and memory O(rows * columns).

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth.columns import column_arrays, infer_columns
      >>> columns = infer_columns(pd.DataFrame({"price": [1, 3], "brand": ["b", "a"]}))
      >>> arrays = column_arrays(pd.DataFrame({"id": [7], "price": [2.5], "brand": [None]}), columns)
      >>> {name: values.tolist() for name, values in arrays.items()}
      {'price': [2.5], 'brand': [b'']}
    """
    columns, given = list(columns), as_arrow(table)
    check_names(given.column_names, columns)
    raw = raw_table(checked_table(given.select([column.name for column in columns])), columns)
    rows = np.arange(len(raw))
    return {name: ColumnValues(raw[name])(rows) for name in raw.column_names}
