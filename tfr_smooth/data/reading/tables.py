"""Tables of pandas, Polars, PyArrow, DuckDB and others as `Lists`."""

from __future__ import annotations

from typing import Any

from typing_extensions import Unpack

from tfr_smooth import _arguments
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks
from tfr_smooth.data.roles import RoleNames, Roles


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
