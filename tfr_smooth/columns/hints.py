"""What a user should know of the columns: which tell the label, and which texts look like other values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth.columns.date import date_format_of
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.columns.kinds import Column, listed
from tfr_smooth.columns.list_context import ordered_columns, ordered_values, raw_rows, sampled
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading.checks import warn

_SAMPLED = 2**12  # rows
# Not tuned: the hints and warnings of the tests have them, and clean tables have none.
_MOST, _SOME = 0.9, 0.1  # of the different texts, of which so many look like something
_OF_PLACE = re.compile("(^|[^a-z])(position|rank|slot)$", re.IGNORECASE)
_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)$"
_FORMATTED = r"^[$€£¥]?\s?[+-]?(\d+|\d{1,3}([.,' ]\d{3})+)([.,]\d+)?\s?[%$€£¥]?$"
_COMMAS = r"^[+-]?\d+(,\d+)?$"
_FRACTION = r"[.,'%$€£¥]"
_PARTS = r"^[^\s{0}]+(\s?[{0}]\s?[^\s{0}]+)*$"  # values without blanks, separated
_SEPARATORS = "|;,"
_LEAST_AGREEMENT = 0.98  # of the order of a column with that of the label, if it nearly is the label
_FEW_VALUES = 20  # of a text or set that may be compared with the label
_DOCUMENTS, _LONGEST, _LEAST_LISTS = 2**12, 2**6, 30  # documents, documents of a list, and lists that are compared


def warn_of_columns(layer: TableFeatures, lists: Lists) -> None:
    """Warns of columns that are constant, that nearly are the label, or of texts that look like other values.

    Args:
      layer: The features.
      lists: The lists of `fit`, with raw values.
    """
    constant = [column.name for column in layer.columns if (column.values, column.missing) == (1, 0.0)]
    if constant:
        warn(f"The columns {listed(constant)} have the same value in all rows, which ranks nothing.")
    if told := columns_of_label(layer, lists):
        warn(
            f"The columns {listed(told)} nearly are the label: which of two documents has the higher label nearly "
            "always follows from the value, or from a missing one. Without what is known only after it, such as a "
            "purchase after a click, scores are honest: select the others by `features`."
        )
    shown = [column.name for column in layer.columns if _OF_PLACE.search(column.name) and column.kind == "number"]
    if shown and all(np.isin(lists.values(name), (0, 1)).all() for name in lists.roles.labels):
        warn(
            f"The columns {listed(shown)} may tell where a document was shown. If labels are clicks, they follow from "
            "that, and new rankings do not know it: leave the columns out by `features`, and see the page on clicks."
        )
    if misread := [*hints(layer.columns, lists.source)]:
        warn(f"Columns of text may mean something else: {'; '.join(misread)}. `kinds` of a text says that it is one.")


def hints(columns: Iterable[Column], table: pa.Table) -> Iterator[str]:
    """Yields what columns of text look like, and what to do.

    Args:
      columns: The columns.
      table: The table, with the texts as they are.
    """
    for column in columns:
        if column.type == "text" and column.kind in ("category", "id") and column.reason[:1] != "`":
            values = table[column.name]
            texts = pc.unique(values[:: len(values) // _SAMPLED + 1].drop_null())
            texts = texts.filter(pc.not_equal(texts, ""))
            if len(texts) and (hint := _hint(column.name, texts)):
                yield hint


def _hint(name: str, texts: Any) -> str:
    """Returns what different texts look like, and what to do; "" for nothing."""
    share = lambda pattern: pc.mean(pc.match_substring_regex(texts, pattern).cast(pa.int8())).as_py()  # noqa: E731
    first = texts[0].as_py()
    if date_format := date_format_of(texts):
        return f"{name!r} looks like dates ({first!r}): pass kinds={{{name!r}: 'date:{date_format}'}}"
    for pattern, decimal in ((_PLAIN, ""), (_COMMAS, " and decimal=','")):
        others = texts.filter(pc.invert(pc.match_substring_regex(texts, pattern)))
        is_sign = len(others) == 1 < len(texts) - 1 and not any(map(str.isalnum, others[0].as_py()))
        if is_sign or (_MOST <= share(pattern) < 1.0 and len(texts) > 1 / (1 - _MOST)):
            other = others[0].as_py()
            how = f"by nulls=[{other!r}]{decimal} of the readers"
            return f"{name!r} has numbers and {other!r}: make that missing, such as {how}"
    if share(_FORMATTED) >= _MOST and share(_FRACTION) >= _SOME:
        how = "by `.str.replace(...).astype(float)` of pandas"
        how = "by decimal=',' of the readers" if share(_COMMAS) >= _MOST else how
        return f"{name!r} has numbers as text ({first!r}): convert them, such as {how}"
    for separator in _SEPARATORS:
        several = share(re.escape(separator))
        if several >= (_SOME if separator == "|" else 1 - _MOST + _SOME) and share(_PARTS.format(separator)) >= _MOST:
            split = pc.split_pattern(texts, separator)
            parts = pc.list_flatten(split)
            if np.mean([len(set(text)) < len(text) for text in split.to_pylist()]) >= 0.5:
                how = "a set loses the order and the number of its values: make columns of these"
                return f"{name!r} looks like histories ({first!r}): {how}, such as the last value and the share of each"
            if len(pc.unique(parts)) < len(parts):
                return f"{name!r} looks like sets ({first!r}): pass kinds={{{name!r}: 'set:{separator}'}}"
    return ""


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
    queries, lengths = sampled(lists, _DOCUMENTS, _LONGEST)
    if layer.stacked or len(queries) < _LEAST_LISTS:
        return []
    rows = lists.rows_of(queries, lengths)
    numbers, others = raw_rows(lists, rows, layer.columns)
    names = ordered_columns(layer.columns)
    ordered = ordered_values(layer.columns, numbers, others, names).numpy().T if names else []
    values: dict[str, np.ndarray] = {**others, **dict(zip(names, ordered, strict=True))}
    weight = lists.roles.weight
    counted = np.ones(len(rows), bool) if weight is None else lists.column(weight)(rows) > 0.0
    told: set[str] = set()
    query = np.repeat(np.arange(len(lengths)), lengths)
    are_compared = np.equal.outer(query, query) & np.logical_and.outer(counted, counted)
    for label in lists.roles.labels:
        labels = lists.column(label)(rows)
        better, worse = np.nonzero(are_compared & np.greater.outer(labels, labels))
        told.update(name for name, column in values.items() if _tells(column, labels, better, worse, query[better]))
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
