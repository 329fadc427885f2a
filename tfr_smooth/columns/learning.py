"""What is learned of the columns of a table, such as their kinds and statistics; tables and rows as raw values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from scipy import stats

from tfr_smooth import _arguments
from tfr_smooth.columns.date import are_dates
from tfr_smooth.columns.features import TableFeatures, matrices
from tfr_smooth.columns.kinds import (
    Column,
    NoKnownValues,
    check_names,
    has_words,
    learn_column,
    listed,
    raw_array,
    raw_values,
)
from tfr_smooth.columns.list_context import learn_context
from tfr_smooth.columns.matches import SOME_WORDS, Match, equal_pairs
from tfr_smooth.columns.number import columns_of_matrix
from tfr_smooth.columns.statistics import learn_statistics, with_numbers
from tfr_smooth.data.column_values import dense_column, value_type
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks
from tfr_smooth.data.roles import STATISTICS

_RISES = 0.95  # Spearman's correlation of dates with the places of lists; not tuned


def learn_features(
    lists: Lists,
    queries: np.ndarray | None = None,
    *,
    max_categories: int = 100,
    kinds: Mapping[str, Any] | None = None,
    matches: Sequence[Sequence[str]] = (),
    find_equal: bool = False,
    crosses: Sequence[Sequence[str]] = (),
    list_context: bool = False,
    order: np.ndarray | None = None,
) -> tuple[TableFeatures, Lists]:
    """Learns the feature columns of lists, in one pass over the columns, and the statistics of ids.

    Args:
      lists: The lists.
      queries: The indices of the training queries. None for all.
      max_categories: The most values of a category of unknown kind, >= 1.
      kinds: The kinds of columns that are not to be inferred, by name, or layers that encode texts.
      matches: Pairs of names of columns to compare.
      find_equal: Whether to compare also pairs of ids or categories of `equal_pairs`.
      crosses: Pairs of names of columns whose values have a joint statistic.
      list_context: Whether columns have ranks and shares within the list, as of `list_context.learn_context`.
      order: The place of each list in the order whose runs are the parts of `learn_statistics`. None is that of lists.

    Returns:
      The layer, and all lists with the raw values of the columns. Those of training have their statistics without
      their own labels, in a further column.

    Raises:
      ValueError: If an argument or a column is invalid. The message names the column.
    """
    training = lists if queries is None else lists.take(queries)
    rows = np.sort(training.rows)
    learned: dict[str, Any]  # the arguments of the layer
    if lists.is_dense:
        for name, given in (("kinds", kinds), ("crosses", crosses)):
            if given:
                raise ValueError(f"`{name}` must be None for a matrix of numbers, got {given!r}.")
        learned = {"columns": columns_of_matrix(matrices(lists, rows)), "matches": matches, "stacked": True}
    else:
        table = lists.source.select(lists.roles.features)
        options: dict[str, Any] = {"max_categories": max_categories, "kinds": kinds, "matches": matches}
        chosen = None if len(rows) == len(table) else rows
        learned, raw = learn_columns(table, chosen, release=lists.release, **options)
        roles, changed = lists.roles, {name: raw[name] for name in raw if raw[name] is not table[name]}
        for pair in equal_pairs(learned["columns"], raw, training) if find_equal else ():
            learned["matches"].append(Match.of(pair, learned["columns"]).learn(learned["columns"], raw, chosen))
        of_parts = {"order": order if order is None or queries is None else order[queries]}
        learned["columns"] = with_numbers(learned["columns"], raw, training, **of_parts)
        learned["statistics"], matrix = learn_statistics(learned["columns"], raw, training, crosses, **of_parts)
        if learned["statistics"]:
            changed[STATISTICS] = dense_column(matrix)
            roles = dataclasses.replace(roles, features=(*roles.features, STATISTICS))
        if changed:
            lists = lists.replace(roles, changed)
            training = lists if queries is None else lists.take(queries)
    if list_context:
        learned.update(learn_context(training, learned["columns"]))
    return TableFeatures(**learned), lists


def time_order(lists: Lists, kinds: Mapping[str, Any]) -> tuple[str, np.ndarray] | None:
    """Finds a column of dates that rise or fall along the lists, as in a log.

    Args:
      lists: The lists.
      kinds: The kinds of columns that are not to be inferred, by name.

    Returns:
      The name of the column, and the place of each list in time, [lists]; None if there is no such column.
    """
    firsts = pa.array(lists.rows[lists.starts[:-1]])
    for name in () if lists.is_dense else lists.roles.features:
        kind, values = str(kinds.get(name, "")), lists.source[name].take(firsts)
        taken = kind.partition(":")[0] or value_type(values.type)
        if taken != "date" and (kind or taken != "text" or not are_dates(values)):
            continue
        try:
            column, _ = learn_column(name, values, kind=kind or None)
        except ValueError:  # is raised where all rows are learned
            continue
        days = column.ordered_values(raw_array(column, values)).numpy()
        known = np.flatnonzero(~np.isnan(days))
        if len(np.unique(days[known])) > 1 and abs(rises := stats.spearmanr(days[known], known).statistic) > _RISES:
            return name, np.arange(len(lists))[:: int(np.sign(rises))]
    return None


def learn_columns(
    table: pa.Table,
    rows: np.ndarray | None = None,
    *,
    max_categories: int = 100,
    kinds: Mapping[str, Any] | None = None,
    matches: Sequence[Sequence[str]] = (),
    release: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Learns the columns of an Arrow table, as `checked_table` returns it.

    Args:
      table: The table.
      rows: The training rows. None for all.
      max_categories: As for `learn_features`.
      kinds: As for `learn_features`.
      matches: As for `learn_features`.
      release: Called after each column; all of them together may be larger than memory.

    Returns:
      The arguments of `TableFeatures`, and the raw values of all rows by column.

    Raises:
      ValueError: As for `learn_features`.
    """
    most, encoders = _arguments.integer("max_categories", max_categories, least=1), {}
    matched: dict[str, str] = {}
    given = {str(name): kind for name, kind in (kinds or {}).items()}
    for name in given.keys() - table.column_names:
        raise ValueError(f"`kinds` must be of features, {listed(table.column_names)}, got {name!r}, which is none.")
    for name, kind in given.items():
        if isinstance(kind, tf.keras.layers.Layer):
            encoders[name], given[name] = kind, f"encoded:{kind.width}"
    for pair in matches:
        texts = [name for name in pair if name in table.column_names and given.get(name, "text") == "text"]
        if len(texts) == 2 and any(name in given or has_words(table[name], SOME_WORDS) for name in texts):
            matched.update(dict.fromkeys(texts, "text"))  # also queries of few words or few values
    columns, raw, empty = [], {}, []
    for name, values in zip(table.column_names, table.columns, strict=True):
        kind, reason = given.get(name, matched.get(name)), "`kinds`" if name in given else "`matches`"
        try:
            column, raw[name] = learn_column(name, values, rows=rows, max_categories=most, kind=kind, reason=reason)
            columns.append(column)
        except NoKnownValues:
            empty.append(name)
        release()
    if empty:
        raise ValueError(f"The columns {listed(empty)} must have known values, got only missing ones.")
    compared = []
    for pair in matches:
        compared.append(Match.of(pair, columns).learn(columns, raw, rows))
        release()
    return {"columns": columns, "matches": compared, "encoders": encoders}, raw


def checked_table(table: Any) -> pa.Table:
    """Returns a table as checked Arrow columns.

    Args:
      table: A table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface.

    Returns:
      The columns.

    Raises:
      ValueError: If a column has values of another type, different types or an infinite number.
    """
    columns = checks.as_arrow(table)
    names = columns.column_names
    return pa.table({name: checks.feature(checks.Where(f"column {name!r}"), columns[name]) for name in names})


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
    learned, _ = learn_columns(columns, rows, max_categories=max_categories, kinds=kinds)
    return learned["columns"]


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
    columns, given = list(columns), checks.as_arrow(table)
    check_names(given.column_names, columns)
    checked = checked_table(given.select([column.name for column in columns]))
    return {column.name: raw_array(column, checked[column.name]) for column in columns}


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
