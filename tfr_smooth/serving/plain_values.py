"""Plain Python values of the columns of a ranker as arrays, with the checks and the types of `Ranker.predict`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth.columns.kinds import KINDS, Column, raw_values
from tfr_smooth.data.column_values import ColumnValues
from tfr_smooth.data.reading import checks


def column_of(feature: Mapping[str, Any]) -> Column:
    """Returns a column that checks and converts the values of a feature; it has learned nothing else.

    Args:
      feature: The entry of the model card. Those of `export_ranker` have no kind.
    """
    shape, kind = feature["shape"], feature.get("kind")
    if kind is None and feature["type"] == "float32" and None not in shape:
        kind = "number" if math.prod(shape) == 1 else "vector"
    elif kind is None and feature["type"] == "string" and shape == []:
        kind = "category"
    if kind is None:
        expected = "float32 or strings to load it in Python"
        raise ValueError(f"column {feature['name']!r} must be {expected}, got {feature['type']} {shape}.")
    column = object.__new__(KINDS[kind])
    length = {"length": math.prod(shape)} if kind == "vector" else {}
    option, trained = feature.get("option"), feature.get("trained", "")
    vars(column).update({"name": feature["name"], "type": trained, "separator": option, "format": option, **length})
    return column


def values_of(column: Column, rows: Sequence[Any]) -> list[Any]:
    """Returns the values of a column of documents, or of their queries."""
    name = column.name
    try:
        return [row[name] for row in rows]
    except (KeyError, TypeError, IndexError):
        place = next(place for place, row in enumerate(rows) if not isinstance(row, Mapping) or name not in row)
        expected = f"must be in the query or in each document ({column.contains}; None if missing)"
        got = checks.shown(rows[place])
        raise ValueError(f"column {name!r} {expected}, got {got} in row {place}.") from None


def raw_of_values(column: Column, values: Sequence[Any]) -> np.ndarray:
    """Returns the raw values of a column of Python values."""
    where = checks.Where(f"column {column.name!r}")
    try:
        array = checks.as_array(where.what, values)
    except ValueError:
        if len(values) == 1:
            raise
        parts = []  # Values of several types are converted one by one.
        for row, value in enumerate(values):
            try:
                parts.append(raw_of_values(column, [value]))
            except ValueError:
                checks.refuse(where, column.contains, value, row)
        return np.concatenate(parts)
    return raw_of_array(column, checks.feature(where, array))


def raw_of_array(column: Column, values: Any) -> np.ndarray:
    """Returns the raw values of a column [rows, ...], as the signatures take them, of checked Arrow values."""
    raw = raw_values(column, values)
    raw = raw if isinstance(raw, pa.ChunkedArray) else pa.chunked_array([raw])
    return ColumnValues(raw)(np.arange(len(raw)))
