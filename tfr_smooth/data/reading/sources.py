"""Arrays, tables, and whatever else an estimator takes, as `Lists`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import Unpack

from tfr_smooth import _arguments
from tfr_smooth.data.column_values import NESTED, ColumnValues, dense_column, value_type, varying
from tfr_smooth.data.lists import Lists, have_different_labels
from tfr_smooth.data.reading import checks, files, value_types
from tfr_smooth.data.roles import DENSE, RoleNames, Roles

# The arguments that say the same in two ways: as an array, and as the name of a column.
_ALTERNATIVES = (("qid", "group", "query"), ("y", "label"), ("sample_weight", "weight"))


def from_table(table: Any, *, query: str, stack: bool = False, **roles: Unpack[RoleNames]) -> Lists:
    """Returns the lists of a table with one row per document, in any order.

    Args:
      table: A table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface
        (`__arrow_c_stream__`), or a dict of arrays.
      query: The column of query ids.
      stack: Whether to store the features, which must be known numbers, as one column "features", for models of
        such an input.
      **roles: The columns of other roles, of which `label` is required:
        `label`: the column of labels, or those of several objectives, possibly with weights: `{"click": 1.0}`. None
        for unlabeled documents.
        `features`: the feature columns: numbers, booleans, text, dates, vectors and sets, with missing values. None
        uses all columns without another role.
        `weight`: the column of weights.
        `propensity`: the column of propensities, if the labels are clicks: see `batches`.
        `position`: the column of positions at which the documents were shown.
        `document_id`: the column of document ids. None uses the numbers of the rows.

    Returns:
      The lists.

    Raises:
      ValueError: If a column is missing or has values that are not allowed. The message names the column and row.

    Columns are not copied, except for float64 columns with a role and stacked features.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import data
      >>> frame = pd.DataFrame({"qid": [7, 7, 8], "label": [1, 0, 2], "bm25": [0.5, 0.1, 0.9]})
      >>> frame["title"] = list("abc")
      >>> lists = data.from_table(frame, query="qid", label="label")
      >>> inputs, labels = next(iter(lists.batches(2)))
      >>> inputs["bm25"].shape, inputs["title"].numpy().tolist()
      (TensorShape([2, 2]), [[b'a', b'b'], [b'c', b'']])
    """
    columns = checks.as_arrow(table)
    chosen = Roles.of(columns.column_names, query=query, **roles)
    if not len(columns):
        raise ValueError("`table` must have at least one row, got none.")
    columns = checks.checked(columns, chosen, stack=_arguments.boolean("stack", stack))
    return Lists.of_columns(columns, chosen.stacked() if stack else chosen)


def from_arrays(
    features: Any,
    labels: Any = None,
    qid: Any = None,
    *,
    group: Any = None,
    weights: Any = None,
    propensities: Any = None,
    positions: Any = None,
    document_ids: Any = None,
) -> Lists:
    """Returns the lists of arrays with one row per document.

    Args:
      features: Finite numbers [rows, num_features], stored as float32: subtract an offset from large numbers with
        small differences.
      labels: Finite numbers >= 0, [rows], or [rows, objectives] for labels of several objectives. None for
        unlabeled documents.
      qid: The query of each row, [rows], as numbers or text, in any order.
      group: Alternative to `qid`: the number of rows per query, integers >= 1, [queries], for rows sorted by query
        as in LightGBM and XGBoost. Exactly one of them must be given.
      weights: Finite numbers >= 0, [rows]. For one weight per query, repeat it in all rows of the query.
      propensities: Numbers > 0, [rows], if the labels are clicks: see `batches`.
      positions: Whole numbers >= 0 at which the documents were shown, [rows], for `models.PositionBias`.
      document_ids: The ids of the documents, [rows]. None uses the numbers of the rows.

    Returns:
      The lists. The features are one column, "features".

    Raises:
      ValueError: If an argument is invalid. The message names the row of an invalid value.

    Time and memory O(rows * num_features); float32 features are not copied.

    Example:
      >>> from tfr_smooth import data
      >>> lists = data.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], group=[2, 1])
      >>> for inputs, labels in lists.batches(2):
      ...     labels.numpy().tolist()
      [[1.0, 0.0], [2.0, -1.0]]
    """
    table = dense_table("features", features)
    if not len(table):
        raise ValueError("`features` must have at least one row, got none.")
    of_roles = {
        "query": queries(qid, group, len(table)),
        "label": ("labels", labels),
        "weight": ("weights", weights),
        "propensity": ("propensities", propensities),
        "position": ("positions", positions),
        "document_id": ("document_ids", document_ids),
    }
    return lists_of(table, of_roles, argument="features")


def lists_of(table: pa.Table, arrays: Mapping[str, tuple[str, Any]], *, argument: str, **names: Any) -> Lists:
    """Returns the lists of a table and of arrays with one value per row.

    Args:
      table: The table; of a matrix, its only column is `DENSE`.
      arrays: By role, an argument's name and its values or None; labels may be [rows, objectives].
      argument: The name of the argument of the table.
      **names: By role, columns of the table, as for `from_table`; the label may be the names of the labels that
        are given as [rows, objectives], possibly with weights.

    Returns:
      The lists.
    """
    columns = dict(zip(table.column_names, table.columns, strict=True))
    what = {DENSE: f"`{argument}`"} if [*columns] == [DENSE] else {}
    for role, (name_of_array, values) in arrays.items():
        if values is None:
            continue
        several = names.get(role) if role == "label" else None
        if several or (role == "label" and np.ndim(values) == 2):
            parts = _by_label(name_of_array, values, len(table), several)
            names[role] = several or [*parts]
        else:
            parts = {_new_name("query_id" if role == "query" else role, columns): values}
            (names[role],) = parts
        for name, part in parts.items():
            columns[name], what[name] = column(name_of_array, part, len(table)), f"`{name_of_array}`"
    roles = Roles.of([*columns], **{"label": None, "features": None, **names})
    where = lambda name: checks.Where(what.get(name, f"column {name!r}"))  # noqa: E731
    return Lists.of_columns(checks.checked(pa.table(columns), roles, where=where), roles)


def dense_table(argument: str, values: Any, *, missing: bool = False) -> pa.Table:
    """Returns finite numbers [rows, columns] as a table with the column `DENSE`; float32 values are not copied.

    Args:
      argument: The name of the argument.
      values: The numbers.
      missing: Whether values may be missing, NaN.
    """
    if hasattr(values, "toarray"):
        raise ValueError(f"`{argument}` must be a dense matrix, got a sparse one; pass `{argument}.toarray()`.")
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"`{argument}` must have no mask, which would be lost; pass `{argument}.filled(numpy.nan)`.")
    array = np.asarray(values)
    expected = "a table or numbers" if missing else "numbers"
    if array.ndim != 2 or array.dtype.kind not in "biufO" or not array.shape[1]:
        raise ValueError(f"`{argument}` must be {expected} [rows, columns], got {array.dtype} of shape {array.shape}.")
    try:
        with np.errstate(over="ignore"):  # Infinities are reported below.
            array = np.ascontiguousarray(array, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{argument}` must be numbers: {error}.") from None
    dense = dense_column(array)
    wrong = pc.is_inf(dense.values) if missing else pc.invert(pc.is_finite(dense.values))
    place = pc.index(wrong, True).as_py()
    if place >= 0:
        row, number = divmod(place, array.shape[1])
        expected = "finite float32 numbers" + " or NaN" * missing
        raise ValueError(f"`{argument}` must be {expected}, got {array[row, number]} in row {row}, column {number}.")
    return pa.table({DENSE: dense})


def column(argument: str, values: Any, rows: int) -> pa.Array:
    """Returns values as an Arrow array of this length."""
    array = np.asarray(values)
    if array.dtype.kind in "Uf" and not hasattr(values, "dtype"):
        # NumPy makes text of missing values and numbers, and floats of large integers.
        array = np.asarray(values, object)
    if array.shape != (rows,):
        raise ValueError(f"`{argument}` must have one value per row, shape ({rows},), got {array.shape}.")
    return checks.as_array(f"`{argument}`", array)


def queries(qid: Any, group: Any, rows: int) -> tuple[str, Any]:
    """Returns the name of the argument that is given, and the query ids of the rows."""
    if (qid is None) == (group is None):
        given = "neither" if qid is None else "both"
        raise ValueError(f"Exactly one of `qid` and `group` must be given, got {given}.")
    if group is None:
        return "qid", qid
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"`group` must be integers >= 1, got {checks.shown(group)}.")
    if sizes.sum() != rows:
        raise ValueError(f"`group` must add up to the number of rows, {rows}, got a sum of {sizes.sum()}.")
    return "group", np.repeat(np.arange(len(sizes)), sizes)


def _by_label(argument: str, values: Any, rows: int, names: Any) -> dict[str, np.ndarray]:
    """Returns labels [rows, objectives] by name; without names, "label_1" and so on."""
    array = np.asarray(values)
    count = len(names) if names else array.shape[-1]
    if array.shape != (rows, count):
        expected = f"one value per row and label, shape {(rows, count)}"
        raise ValueError(f"`{argument}` must have {expected}, got {array.shape}.")
    return dict(zip(names or [f"label_{number}" for number in range(1, count + 1)], array.T, strict=True))


def _new_name(name: str, others: Mapping[str, Any]) -> str:
    """Returns the name, with `_` appended until no other column has it."""
    while name in others:
        name += "_"
    return name


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
        raise ValueError("`label` must be > 0 for at least one document, got only zeros: there is nothing to learn.")
    learns_values = getattr(loss, "learns_values", False)
    if not (learns_values and any(values.min() < values.max() for values in labels.values())):
        if lists.lengths.max() == 1:
            checks.warn("`X` should have queries of several documents to rank, got one document in each.")
        elif not have_different_labels(lists).any():
            got = f"equal ones in each of {len(lists):,} queries"
            checks.warn(f"`label` should differ among the documents of a query, got {got}: there is no order to learn.")
    if lists.roles.weight is not None and not (lists.values(lists.roles.weight) > 0.0).any():
        raise ValueError("`weight` must be > 0 for at least one document, got only zeros: there is nothing to learn.")
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
        by_role["query"] = queries(given.get("qid"), given.get("group"), len(table))
    elif "query" not in names:
        if "query" in needs:
            raise ValueError("`qid`, `group` or `query` must define the queries, got none of them.")
        by_role["query"] = ("qid", np.zeros(len(table), np.int32))
    return lists_of(table, by_role, argument="X", **names)


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
    return checks.as_arrow(X) if checks.is_table(X) else dense_table("X", X, missing=True)


@dataclasses.dataclass(frozen=True)
class Files:
    """A table in files.

    Args:
      paths: The paths, as for `read_files`.
      reading: How values are written.
    """

    paths: Any
    reading: value_types.Reading = value_types.Reading()


def of_files(X: Any, types: Mapping[str, str] | None = None, ids: Sequence[Any] = ()) -> Any:
    """Returns the table of files, if paths are given, and others as they are.

    Args:
      X: A path, a list of paths, `Files`, or anything else.
      types: The types of known columns, as for `read_files`.
      ids: Columns of ids.
    """
    if not isinstance(X, Files):
        if not all(isinstance(path, (str, os.PathLike)) for path in (X if isinstance(X, (list, tuple)) and X else [X])):
            return X
        X = Files(X)
    return files.read_table(X.paths, X.reading.with_types(types or {}), [name for name in ids if isinstance(name, str)])


def values_of_queries(X: Any, lists: Lists, name: str) -> dict[str, Any]:
    """Returns the value of a column for each query, categories and intervals as text, None if it is missing.

    Args:
      X: The table, or its lists, which may have more columns than `lists`.
      lists: The lists of the table.
      name: The name of the column, the argument `by`.
    """
    table = X.source if isinstance(X, Lists) else as_table(X)
    column = checks.plain(checks.Where("`by`"), table[_arguments.choice("by", name, table.column_names)])
    check_constant(lists, column, "`by`", f"{name!r}, which varies in the query of")
    values = column.take(pa.array(lists.rows[lists.starts[:-1]])).to_pylist()
    return dict(zip(map(str, lists.query_ids.to_pylist()), values, strict=True))


def check_constant(lists: Lists, column: pa.ChunkedArray, what: str, got: str) -> None:
    """Checks that a column has one value in each query; `what` and `got` are the parts of the message."""
    if value_type(column.type) in NESTED:  # which Arrow does not encode
        values = ColumnValues(column)(lists.rows)
    elif pa.types.is_nested(column.type):
        raise ValueError(f"{what} must have text, numbers, dates or sets, got the type {column.type}.")
    else:
        values = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()[lists.rows]
    if len(varies := varying(values, lists.lengths)):
        raise ValueError(f"{what} must be the same in all rows of a query, got {got} row {lists.rows[varies[0]]}.")


def ranked_rows(X: Any, lists: Lists, scores: np.ndarray, names: tuple[str, str]) -> Any:
    """Returns the rows of a table, ranked within each query, as a pandas DataFrame; rows that are dicts, as such.

    Args:
      X: The table, its rows, or its lists.
      lists: The lists of the table.
      scores: [documents], in the order of the lists.
      names: The names of the columns of scores and ranks.
    """
    order, ranks = ranking(lists, scores)
    if checks.are_rows(X):
        added = zip(lists.rows[order].tolist(), scores[order].tolist(), ranks.tolist(), strict=True)
        return [{**X[row], names[0]: score, names[1]: rank} for row, score, rank in added]
    with _arguments.needed("pandas", extra="pandas", by="`rank`"):
        import pandas  # noqa: F401

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
