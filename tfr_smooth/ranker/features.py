"""The features of a training: what `Ranker` learns of the columns before the networks, and what it prints of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfr_smooth.columns import TableFeatures
from tfr_smooth.columns.hints import hints
from tfr_smooth.columns.kinds import listed
from tfr_smooth.columns.learning import learn_features
from tfr_smooth.columns.list_context import ordered_columns, ordered_values
from tfr_smooth.columns.matches import text_pairs
from tfr_smooth.data import Lists
from tfr_smooth.data.reading.checks import warn
from tfr_smooth.ranker.plan import TrainingPlan
from tfr_smooth.ranker.screening import columns_without_use

_MOST_PRINTED = 40  # columns
_LEAST_AGREEMENT = 0.98  # of the order of a column with that of the label, if it nearly is the label
_FEW_VALUES = 20  # of a text or set that may be compared with the label
_SAMPLED, _LONGEST, _LEAST_LISTS = 2**12, 2**6, 30  # documents, documents of a list, and lists that are compared


def learn(
    params: Mapping[str, Any], plan: TrainingPlan, documents: Lists, queries: np.ndarray
) -> tuple[TableFeatures, Lists, Lists]:
    """Learns the features of a training.

    Args:
      params: The arguments of the ranker.
      plan: The plan of the training.
      documents: All lists.
      queries: The indices of the training queries.

    Returns:
      The layer of the features, and all lists with their raw and with their prepared values.
    """
    options = {name: params[name] for name in ("max_categories", "kinds", "list_context")}
    matches = params["matches"]
    if matches is None:
        pairs = text_pairs(documents.take(queries), params["kinds"] or {})
        matches = [pair for pair in pairs if pair[0] in documents.roles.features]
        if params["verbose"]:
            _print_uncompared([pair for pair in pairs if pair not in matches])
    options.update(matches=matches, interactions=params["interactions"] or ())
    layer, raw = learn_features(documents, queries, **options)
    prepared = layer.transform(raw)
    if useless := columns_without_use(params, plan, layer, *(lists.take(queries) for lists in (raw, prepared))):
        layer = layer.without_values(useless)
        prepared = layer.transform(raw)
    return layer, raw, prepared


def print_features(layer: TableFeatures) -> None:
    """Prints the kinds of the columns and what else was learned."""
    lines = str(layer.summaries).splitlines()
    if more := len(lines[_MOST_PRINTED:]):
        lines[_MOST_PRINTED:] = [f"... and {more:,} more columns: print `columns_`"]
    if layer.summaries:
        print("\n".join(lines), flush=True)
    if layer.statistics:
        print(f"Statistics: {listed([*layer.statistics])}", flush=True)
    if layer.matches:
        print(f"Matches: {'; '.join(layer.matches)}", flush=True)
    if layer.list_ranks:
        print(f"List ranks: {listed(layer.list_ranks)}", flush=True)


def warn_of_columns(layer: TableFeatures, lists: Lists) -> None:
    """Warns of columns that are constant, that nearly are the label, or of texts that look like other values.

    Args:
      layer: The features.
      lists: The lists of `fit`, with raw values.
    """
    constant = [summary.name for summary in layer.summaries if (summary.values, summary.missing) == (1, 0.0)]
    if constant:
        warn(f"The columns {listed(constant)} have the same value in all rows, which ranks nothing.")
    if told := columns_of_label(layer, lists):
        reason = (
            "which of two documents has the higher label nearly always follows from the value, or from a missing one"
        )
        warn(
            f"The columns {listed(told)} nearly are the label: {reason}. Without what is known only after it, such as "
            "a purchase after a click, scores are honest: select the others by `features`."
        )
    if misread := [*hints(layer.summaries, lists.source)]:
        warn(f"Columns of text may mean something else: {'; '.join(misread)}. `kinds` of a text says that it is one.")


def columns_of_label(layer: TableFeatures, lists: Lists) -> list[str]:
    r"""Returns the columns that nearly order the documents of a list as the label does.

    They are those in which the pairs of a list that differ in the value and in the label have the same order, or the
    opposite one, in a fraction of at least 0.98: $|\gamma| \ge 0.96$ of Goodman and Kruskal. Texts and sets of at most
    20 different values have the order of their mean labels. So do columns that are missing for nearly all documents of
    the lower label, or of the higher one. A sample of the lists is compared, without documents of weight 0, and at
    least 30 lists must have such a pair.

    Args:
      layer: The features.
      lists: The lists, with raw values.

    Time and memory O(documents * columns) of the sample.
    """
    queries = np.random.default_rng(0).permutation(np.flatnonzero(lists.lengths > 1))
    lengths = np.minimum(lists.lengths[queries], _LONGEST)
    count = np.searchsorted(np.cumsum(lengths), _SAMPLED) + 1
    queries, lengths = queries[:count], lengths[:count]
    if layer.stacked or len(queries) < _LEAST_LISTS:
        return []
    rows = lists.rows_of(queries, lengths)
    numbers, others = layer.raw(lists, rows)
    names = ordered_columns(layer.columns)
    ordered = ordered_values(layer.columns, numbers, others, names).numpy().T if names else []
    values: dict[str, np.ndarray] = {**others, **dict(zip(names, ordered, strict=True))}
    weight = lists.roles.weight
    counted = np.ones(len(rows), bool) if weight is None else lists.column(weight)(rows) > 0.0
    told: set[str] = set()
    for label in lists.roles.labels:
        labels, pairs, first = lists.column(label)(rows), [], 0
        for number, length in enumerate(lengths):
            grades, chosen = labels[first : first + length], counted[first : first + length]
            better, worse = np.nonzero((grades[:, np.newaxis] > grades) & np.logical_and.outer(chosen, chosen))
            pairs.append(np.stack([better + first, worse + first, np.full(len(better), number)]))
            first += length
        of_label = np.concatenate(pairs, axis=1)
        told.update(name for name, column in values.items() if _tells(column, labels, *of_label))
    return [column.name for column in layer.columns if column.name in told]


def _tells(column: np.ndarray, labels: np.ndarray, better: np.ndarray, worse: np.ndarray, lists: np.ndarray) -> bool:
    """Returns whether the values of a column, or those that are missing, nearly order pairs of documents of lists."""
    if column.dtype == object:
        known, (different, codes) = column != b"", np.unique(column, return_inverse=True)
        means = np.bincount(codes, labels) / np.bincount(codes)
        column = np.where(known, means[codes], np.nan) if len(different) <= _FEW_VALUES else np.zeros(len(labels))
    else:
        known = ~np.isnan(column if column.ndim == 1 else column[:, 0])

    def agree(values: np.ndarray) -> bool:
        above, below = values[better] > values[worse], values[better] < values[worse]
        differ = above | below
        agreement = max(above.sum(), below.sum()) / max(differ.sum(), 1)
        return agreement >= _LEAST_AGREEMENT and len(np.unique(lists[differ])) >= _LEAST_LISTS

    if column.ndim == 1 and agree(column):
        return True
    missing = [1.0 - known[documents].mean() if len(documents) else 0.0 for documents in (better, worse)]
    return max(missing) >= _LEAST_AGREEMENT and agree(known.astype(int))


def _print_uncompared(pairs: Sequence[tuple[str, str]]) -> None:
    """Prints that texts are not compared with the queries, since the queries are no feature."""
    if pairs:
        texts = ", ".join(repr(document) for _, document in pairs)
        query = pairs[0][0]
        print(f"The queries have words of {texts}: `features` with {query!r} compares them.", flush=True)
