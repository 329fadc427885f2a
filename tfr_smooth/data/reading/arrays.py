"""Arrays with one value per row as columns of `Lists`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth.data import column_values
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.roles import DENSE, Roles


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
    where = lambda name: Where(what.get(name, f"column {name!r}"))  # noqa: E731
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
    dense = column_values.dense_column(array)
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
