"""The documents of an estimator, from whatever it takes: lists, a table, or arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth import _arguments
from tfr_smooth.data.column_values import ColumnValues, is_set
from tfr_smooth.data.labels import have_different_labels
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import arrays, checks, files
from tfr_smooth.data.reading.value_types import Reading

# The arguments that say the same in two ways: as an array, and as the name of a column.
_ALTERNATIVES = (("qid", "group", "query"), ("y", "label"), ("sample_weight", "weight"))


def read_documents(
    X: Any, given: Mapping[str, Any], *, needs: Sequence[str] = ("label", "query"), **names: Any
) -> Lists:
    """Returns the lists of what an estimator takes, with each value checked once.

    Args:
      X: `Lists`, a table or a matrix.
      given: The arrays `y`, `qid`, `group` and `sample_weight`, or None.
      needs: The roles that must be defined. Without queries, all rows are one list.
      **names: Columns of the table by role, or None; the label may also be the names of the columns of `y` with their
        weights.

    Returns:
      The lists.

    Raises:
      ValueError: If an argument or value is invalid. The message names the argument, or the column and the row.
    """
    names = {role: name for role, name in names.items() if name is not None}
    both = {**{name: values for name, values in given.items() if values is not None}, **names}
    if isinstance(X, Lists):
        if both:
            raise ValueError(f"`{next(iter(both))}` must not be given with `Lists`, which have roles.")
        lists = X.without("position")
    else:
        lists = _of_columns(X, given, both, needs, names)
    if "label" in needs and not lists.roles.labels:
        raise ValueError("`y` or `label` must define the labels, got neither.")
    if needs and not lists.documents:
        raise ValueError("`X` must have at least one row, got none.")
    return lists


def read_training(X: Any, given: Mapping[str, Any], loss: Any, **names: Any) -> Lists:
    """Returns the lists of a training set: of clicks, those with a click; the labels must have something to learn.

    Args:
      X: As for `read_documents`.
      given: As for `read_documents`.
      loss: The loss of one label. Its `highest_label` limits the labels; `learns_values` says that it learns the labels
        themselves, also where they do not order the documents of a query.
      **names: As for `read_documents`.

    Returns:
      The lists.

    Raises:
      ValueError: If an argument or value is invalid, or nothing can be learned.
    """
    lists = clicked(read_documents(X, given, **names))
    labels = {name: lists.values(name) for name in lists.roles.labels}
    if not any((values > 0.0).any() for values in labels.values()):
        raise ValueError("`label` must be > 0 for at least one document, got only 0: there is nothing to learn.")
    learns_values = getattr(loss, "learns_values", False)
    if not (learns_values and any(values.min() < values.max() for values in labels.values())):
        if lists.lengths.max() == 1:
            checks.warn("`X` should have queries of several documents to rank, got one document in each.")
        elif not have_different_labels(lists).any():
            got = f"equal ones in each of {len(lists):,} queries"
            checks.warn(f"`label` should differ among the documents of a query, got {got}: there is no order to learn.")
    if lists.roles.weight is not None and not (lists.values(lists.roles.weight) > 0.0).any():
        raise ValueError("`weight` must be > 0 for at least one document, got only 0: there is nothing to learn.")
    limit = getattr(loss, "highest_label", np.inf)
    for name, values in labels.items():
        if values.max() > limit:
            raise ValueError(
                f"`label` must be at most {limit:g} for the gain 2^y - 1 of the loss {loss.name!r}, got "
                f"{values.max():g} in the column {name!r}. Map the labels to grades, or pass gain='linear' to the "
                "losses of NDCG."
            )
    if not isinstance(X, Lists) and not checks.is_table(X):  # The columns of tables check this.
        for place, numbers in enumerate(np.asarray(X).T):
            checks.check_differences(f"column {place} of `X`", numbers)
    return lists


def clicked(lists: Lists) -> Lists:
    """Returns the queries with a click if the labels are clicks with propensities, else all queries."""
    roles = lists.roles
    if roles.propensity is None:
        return lists
    if len(roles.labels) > 1:
        raise ValueError(f"`label` must be one column of clicks with `propensity`, got {list(roles.labels)}.")
    has_click = np.logical_or.reduceat(lists.values(roles.labels[0]) > 0.0, lists.starts[:-1])
    if not has_click.any():
        raise ValueError("`label` must have a click with `propensity`, got none.")
    return lists.take(has_click)


def _of_columns(
    X: Any, given: Mapping[str, Any], both: Mapping[str, Any], needs: Sequence[str], names: Mapping[str, Any]
) -> Lists:
    for arguments in _ALTERNATIVES:
        known = [name for name in arguments if name in both]
        if len(known) > 1 and not isinstance(both[known[-1]], Mapping):
            raise ValueError(f"Only one of {_quoted(arguments)} must be given, got {_quoted(known)}.")
    if np.ndim(both.get("y", 0)) > 1 and not isinstance(names.get("label"), Mapping):
        raise ValueError(f"`y` must have one value per row, got shape {np.shape(given['y'])}.")
    check_index(X, both)
    table = as_table(X)
    by_role = {"label": ("y", given.get("y")), "weight": ("sample_weight", given.get("sample_weight"))}
    if both.keys() & {"qid", "group"}:
        by_role["query"] = arrays.queries(given.get("qid"), given.get("group"), len(table))
    elif "query" not in names:
        if "query" in needs:
            raise ValueError("`qid`, `group` or `query` must define the queries, got none of them.")
        by_role["query"] = ("qid", np.zeros(len(table), np.int32))
    return arrays.lists_of(table, by_role, argument="X", **names)


def check_index(X: Any, both: Mapping[str, Any], argument: str = "X") -> None:
    """Checks that the row labels of pandas objects do not say another order of the rows, or have a column by name."""
    for name, given in both.items() if hasattr(X, "iloc") else ():
        if isinstance(given, str) and given in X.index.names and given not in X.columns:
            raise ValueError(f"`{name}` must be a column, got {given!r}, a level of the index: pass `X.reset_index()`.")
        differs = hasattr(given, "iloc") and len(given) == len(X) and not given.index.equals(X.index)
        if differs and given.index.isin(X.index).all():
            hint = f"pass `{name}.loc[{argument}.index]`, or `{name}.to_numpy()` to take the values in their order"
            raise ValueError(f"`{name}` must have the index of `{argument}`, got one of another order: {hint}.")


def as_table(X: Any) -> pa.Table:
    """Returns a table as Arrow columns, and a matrix of numbers, NaN if missing, as one column."""
    return checks.as_arrow(X) if checks.is_table(X) else arrays.dense_table("X", X, missing=True)


def of_files(X: Any, types: Mapping[str, str] | None = None, ids: Sequence[Any] = ()) -> Any:
    """Returns the table of files, if paths are given, and others as they are.

    Args:
      X: A path, a list of paths, or anything else.
      types: The types of known columns, as for `read_files`.
      ids: Columns of ids.
    """
    paths = X if isinstance(X, (list, tuple)) and X else [X]
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return X
    return files.read_table(X, Reading(types=types or {}), [name for name in ids if isinstance(name, str)])


def values_of_queries(X: Any, lists: Lists, name: str) -> dict[str, Any]:
    """Returns the value of a column for each query, categories and intervals as text, None if it is missing.

    Args:
      X: The table, or its lists, which may have more columns than `lists`.
      lists: The lists of the table.
      name: The name of the column, the argument `by`.
    """
    table = X.source if isinstance(X, Lists) else as_table(X)
    column = checks.plain(checks.Where("`by`"), table[_arguments.name("by", name, table.column_names)])
    check_constant(lists, column, "`by`", f"{name!r}, which varies in the query of")
    values = column.take(pa.array(lists.rows[lists.starts[:-1]])).to_pylist()
    return dict(zip(map(str, lists.query_ids.to_pylist()), values, strict=True))


def check_constant(lists: Lists, column: pa.ChunkedArray, what: str, got: str) -> None:
    """Checks that a column has one value in each query; `what` and `got` are the parts of the message."""
    firsts = np.repeat(lists.starts[:-1], lists.lengths)
    if is_set(column.type) or pa.types.is_fixed_size_list(column.type):  # which Arrow does not encode
        values = ColumnValues(column)(lists.rows)
        others = values[firsts]
        missing = (values != values) & (others != others)
        varies = np.flatnonzero(((values != others) & ~missing).any(axis=1))
    elif pa.types.is_nested(column.type):
        raise ValueError(f"{what} must have text, numbers, dates or sets, got the type {column.type}.")
    else:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy()[lists.rows]
        varies = np.flatnonzero(codes != codes[firsts])
    if len(varies):
        raise ValueError(f"{what} must be the same in all rows of a query, got {got} row {lists.rows[varies[0]]}.")


def ranked_rows(X: Any, lists: Lists, scores: np.ndarray, names: tuple[str, str]) -> Any:
    """Returns the rows of a table, ranked within each query, as a pandas DataFrame.

    Args:
      X: The table, or its lists.
      lists: The lists of the table.
      scores: [documents], in the order of the lists.
      names: The names of the columns of scores and ranks.
    """
    order, ranks = ranking(lists, scores)
    if isinstance(X, Lists):
        ranked = lists.to_pandas().iloc[order].copy()
    else:
        # The libraries know types that Arrow cannot convert, such as lists of views.
        frame = X if hasattr(X, "iloc") else X.to_pandas() if hasattr(X, "to_pandas") else as_table(X).to_pandas()
        ranked = frame.iloc[lists.rows[order]].copy()
    ranked[names[0]], ranked[names[1]] = scores[order], ranks
    return ranked


def ranking(lists: Lists, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the order of the documents by query and score, best first, and their ranks in this order, from 1 on."""
    queries = lists.query_of_document
    order = np.lexsort((-scores, queries))
    return order, np.arange(len(order)) - lists.starts[queries[order]] + 1


def _quoted(names: Sequence[str]) -> str:
    *first, last = [f"`{name}`" for name in names]
    return f"{', '.join(first)} and {last}"
