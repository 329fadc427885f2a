"""A user's own table, from a Parquet or CSV file."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tables.table import Table, split

_WORDS = 2.5  # A column of text with more words per value is text, as `Ranker` infers; else a category.
_MOST_EXPONENTIAL = 9  # Gains 2^label - 1 of higher labels would pass trec_eval's range.


def own(
    path: pathlib.Path,
    *,
    label: str,
    query: str,
    time: str | None = None,
    kinds: Mapping[str, str] | None = None,
    matches: Sequence[tuple[str, str]] = (),
) -> Table:
    """Returns the table: 60% of the queries are for training, 15 for validation and 25 for the test.

    Args:
      path: A Parquet file, or else CSV.
      label: The column of labels, whole numbers >= 0. They are gains if one is above 9, else gains are 2^label - 1.
      query: The column of queries.
      time: The column by which queries are split; not a feature. None splits them at random.
      kinds: The kinds of columns that `Ranker` is not to infer.
      matches: The pairs of columns that it compares.

    Returns:
      The table.

    Raises:
      ValueError: If a column is missing, or labels are not whole numbers >= 0.
    """
    rows = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    roles = {"label": label, "query": query, **({"time": time} if time else {})}
    missing = {*roles.values(), *(kinds or {}), *(name for pair in matches for name in pair)} - {*rows}
    if missing:
        raise ValueError(f"{path} must have the given columns, got none named {sorted(missing)}.")
    features = [name for name in rows if name not in roles.values()]
    labels = rows[label].to_numpy(float)
    if not (labels >= 0).all() or (labels % 1).any():
        raise ValueError(f"Labels must be whole numbers >= 0, got {rows[label].describe().to_dict()}.")
    if time:
        order = rows.groupby(query)[time].transform("min")
    else:
        places, names = pd.factorize(rows[query])
        order = np.random.default_rng(0).permutation(len(names))[places]
    given = rows[features].rename(columns={name: f"{name}_" for name in ("query", "label", "part") if name in features})
    names = dict(zip(features, given, strict=True))
    given = given.assign(query=rows[query], label=labels.astype(int)).iloc[np.argsort(order, kind="stable")]
    return Table(
        given.assign(part=split(given["query"])).reset_index(drop=True),
        [*names.values()],
        {names[name]: kind for name, kind in (kinds or {}).items()},
        [(names[left], names[right]) for left, right in matches],
        linear=bool(labels.max() > _MOST_EXPONENTIAL),
    )
