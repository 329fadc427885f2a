"""Counts of the queries, documents, labels and missing values of `Lists`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from tfr_smooth.data.lists import Lists

_MOST_LABELS = 1000  # of different labels that a summary counts


class Summary(NamedTuple):
    """What `Lists.summary` returns.

    Attributes:
      queries: The number of queries.
      documents: The number of documents.
      num_features: The number of features: the width of the feature matrix, or the number of feature columns.
      longest_list: The number of documents of the longest list.
      highest_label: The highest label; 0 without labels.
      whole_labels: Whether all labels are whole numbers.
      label_counts: The number of documents by label, sorted by label; empty for more than 1,000 different labels.
      missing: The number of missing values by feature column, for columns that have any.

    Example:
      >>> from tfr_smooth import data
      >>> lists = data.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], ["a", "b", "a"])
      >>> lists.summary().label_counts
      {0.0: 1, 1.0: 1, 2.0: 1}
    """

    queries: int
    documents: int
    num_features: int
    longest_list: int
    highest_label: float
    whole_labels: bool
    label_counts: dict[float, int]
    missing: dict[str, int]


def summary_of(lists: Lists) -> Summary:
    """Implements `Lists.summary`."""
    counts: dict[float, int] = {}
    whole, highest = True, 0.0
    if lists.roles.labels:
        labels = np.concatenate([lists.values(name) for name in lists.roles.labels])
        distinct, numbers = np.unique(labels, return_counts=True)
        whole, highest = bool((distinct == np.round(distinct)).all()), float(distinct.max(initial=0.0))
        if len(distinct) <= _MOST_LABELS:
            counts = dict(zip(distinct.tolist(), numbers.tolist(), strict=True))
    missing, rows = {}, lists.rows
    for name in lists.roles.features:
        if not pa.types.is_fixed_size_list(lists.source[name].type):
            missing[name] = int(pc.is_null(lists.source[name], nan_is_null=True).to_numpy()[rows].sum())
    return Summary(
        len(lists), lists.documents, lists.num_features, int(lists.lengths.max(initial=0)), highest, whole, counts,
        {name: number for name, number in missing.items() if number},
    )  # fmt: skip
