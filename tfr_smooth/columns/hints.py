"""Columns of text that look like numbers, dates or sets, and the arguments that read them so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth.columns.summary import ColumnSummary

_SAMPLED = 2**12  # rows
_MOST, _SOME = 0.9, 0.1  # of the different texts, of which so many look like something
_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)$"
_FORMATTED = r"^[$€£¥]?\s?[+-]?(\d+|\d{1,3}([.,' ]\d{3})+)([.,]\d+)?\s?[%$€£¥]?$"
_COMMAS = r"^[+-]?\d+(,\d+)?$"
_FRACTION = r"[.,'%$€£¥]"
_DATE = re.compile(r"(?=\d{4}\D|\d\d?\D\d\d?\D\d\d)(\d+)([./-])(\d\d?)\2(\d{4}|\d\d?)(?=\D|$)")
_PARTS = r"^[^\s{0}]+(\s?[{0}]\s?[^\s{0}]+)*$"  # values without blanks, separated
_SEPARATORS = "|;,"


def hints(summaries: Iterable[ColumnSummary], table: pa.Table) -> Iterator[str]:
    """Yields what columns of text look like, and what to do.

    Args:
      summaries: What was inferred of the columns.
      table: The table, with the texts as they are.
    """
    for summary in summaries:
        if summary.type == "text" and summary.kind in ("category", "id") and summary.reason[:1] != "`":
            column = table[summary.name]
            texts = pc.unique(column[:: len(column) // _SAMPLED + 1].drop_null())
            texts = texts.filter(pc.not_equal(texts, ""))
            if len(texts) and (hint := _hint(summary.name, texts)):
                yield hint


def _hint(name: str, texts: Any) -> str:
    """Returns what different texts look like, and what to do; "" for nothing."""
    share = lambda pattern: pc.mean(pc.match_substring_regex(texts, pattern).cast(pa.int8())).as_py()  # noqa: E731
    first = texts[0].as_py()
    if date_format := date_format_of(texts):
        return f"{name!r} looks like dates ({first!r}): pass kinds={{{name!r}: 'date:{date_format}'}}"
    plain = share(_PLAIN)
    if _MOST <= plain < 1.0 and len(texts) > 1 / (1 - _MOST):
        other = texts.filter(pc.invert(pc.match_substring_regex(texts, _PLAIN)))[0].as_py()
        return f"{name!r} has numbers and {other!r}: make that missing, such as by nulls=[{other!r}] of the readers"
    if share(_FORMATTED) >= _MOST and share(_FRACTION) >= _SOME:
        how = "by `.str.replace(...).astype(float)` of pandas"
        how = "by decimal=',' of the readers" if share(_COMMAS) >= _MOST else how
        return f"{name!r} has numbers as text ({first!r}): convert them, such as {how}"
    for separator in _SEPARATORS:
        several = share(re.escape(separator))
        if several >= (_SOME if separator == "|" else 1 - _MOST + _SOME) and share(_PARTS.format(separator)) >= _MOST:
            parts = pc.list_flatten(pc.split_pattern(texts, separator))
            if len(pc.unique(parts)) < len(parts):
                return f"{name!r} looks like sets ({first!r}): pass kinds={{{name!r}: 'set:{separator}'}}"
    return ""


def date_format_of(texts: Any) -> str:
    """Returns the format of different texts that look like dates, the day first if both can be; "" for others."""
    dates = [date.groups() for date in map(_DATE.match, texts.to_pylist()) if date]
    if not dates or len(dates) < _MOST * len(texts):
        return ""
    first, second = (max(int(date[place]) for date in dates) for place in (0, 2))
    separator, year = dates[0][1], "%Y" if max(len(date[3]) for date in dates) == 4 else "%y"
    if len(dates[0][0]) == 4:
        return separator.join(["%Y", "%m", "%d"])
    return separator.join(["%m", "%d", year] if second > 12 and first <= 12 else ["%d", "%m", year])
