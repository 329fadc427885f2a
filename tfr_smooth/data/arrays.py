"""Arrays with one row per document as `Lists`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth.data import list_columns
from tfr_smooth.data.list_columns import DENSE, Roles, Where
from tfr_smooth.data.lists import Lists

# Role to the argument of `Lists.from_arrays`.
_OTHERS = {
    "weight": "weights",
    "propensity": "propensities",
    "position": "positions",
    "document_id": "document_ids",
}


def lists_of(features: Any, labels: Any, qid: Any, group: Any, others: Mapping[str, Any]) -> Lists:
    """Implements `Lists.from_arrays`; `others` are the other arguments by name."""
    matrix = _matrix("features", features)
    rows = len(matrix)
    if not rows or not matrix.shape[1]:
        raise ValueError(f"`features` must have at least one row and one column, got shape {matrix.shape}.")
    columns: dict[str, Any] = {"query_id": _queries(qid, group, rows)}
    arguments = {"query_id": "qid"}
    by_label = {} if labels is None else {"label": labels}
    if np.ndim(labels) == 2:
        by_label = {f"label_{number}": each for number, each in enumerate(np.asarray(labels).T, 1)}
    for name, values in by_label.items():
        columns[name], arguments[name] = _column("labels", values, rows), "labels"
    given = {role: name for role, name in _OTHERS.items() if others[name] is not None}
    for role, name in given.items():
        columns[role], arguments[role] = _column(name, others[name], rows), name
    columns[DENSE] = list_columns.dense_column(matrix)
    roles = Roles.of([*columns], query="query_id", label=list(by_label), features=[DENSE], **{r: r for r in given})
    where = lambda name: Where(f"`{arguments.get(name, name)}`")  # noqa: E731
    return Lists.of_columns(list_columns.checked(pa.table(columns), roles, where=where), roles)


def _matrix(name: str, values: Any) -> np.ndarray:
    """Returns values as finite float32 [rows, columns]."""
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "biufO":
        raise ValueError(f"`{name}` must be numbers [rows, columns], got {array.dtype} of shape {array.shape}.")
    try:
        with np.errstate(over="ignore"):  # Infinities are reported below.
            array = np.ascontiguousarray(array, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be numbers: {error}.") from None
    for start in range(0, len(array), 2**16):  # in parts, to need little memory
        wrong = np.argwhere(~np.isfinite(array[start : start + 2**16]))
        if len(wrong):
            row, column = wrong[0][0] + start, wrong[0][1]
            value = array[row, column]
            raise ValueError(f"`{name}` must be finite float32 numbers, got {value} in row {row}, column {column}.")
    return array


def _column(argument: str, values: Any, rows: int) -> pa.Array:
    """Returns values as an Arrow array of this length."""
    array = np.asarray(values)
    if array.shape != (rows,):
        shape = f"shape ({rows},), one value per row of `features`"
        raise ValueError(f"`{argument}` must have {shape}, got {array.shape}.")
    try:
        return pa.array(array, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"`{argument}` must have values of one type: {error}.") from None


def _queries(qid: Any, group: Any, rows: int) -> pa.Array:
    """Returns the query ids of the rows."""
    if (qid is None) == (group is None):
        given = "neither" if qid is None else "both"
        raise ValueError(f"Exactly one of `qid` and `group` must be given, got {given}.")
    if group is None:
        return _column("qid", qid, rows)
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"`group` must be integers >= 1, got {group!r}.")
    if sizes.sum() != rows:
        raise ValueError(f"`group` must add up to the {rows} rows of `features`, got a sum of {sizes.sum()}.")
    return pa.array(np.repeat(np.arange(len(sizes)), sizes))
