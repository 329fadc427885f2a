"""Parsers of one line of a ranking file and of the features of a query's lines.

Lines are parsed as bytes: `float(b"...")` accepts only ASCII digits, and `bytes.split` splits only at ASCII whitespace,
so query ids may contain any other text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfr_smooth.data.letor_format import PLAIN, LetorFormat

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_MAX_INDEX_DIGITS = 9
_DOC_ID = re.compile(rb"\s*docid\s*=\s*(\S+)")
# "0:", "1:", ...: the prefixes of the features of a dense line. The list grows to the longest line so far.
_dense_prefixes: list[bytes] = [b"0:"]


class Head(NamedTuple):
    """One document line, with its features still as text."""

    number: int
    label: float
    query_id: bytes
    doc_id: bytes
    features: bytes


class Row(NamedTuple):
    """The features of a line: `values[i]` belongs to feature `indices[i]`, counted from 1, or `i + 1` if None."""

    indices: list[int] | None
    values: list[float]

    @property
    def highest_index(self) -> int:
        """The highest feature index of the line, 0 if it has no features."""
        return len(self.values) if self.indices is None else max(self.indices, default=0)


def parse_head(line: bytes, number: int, format: LetorFormat = PLAIN, query_id: bytes | None = None) -> Head | None:
    """Parses a line except for its features.

    Args:
      line: `label qid:text index:value ... # comment`, with or without a line end.
      number: The line number.
      format: The format of the line.
      query_id: The query id, if known from elsewhere; the line must then have no `qid:text`. None reads it from the
        line.

    Returns:
      The head, or None for a blank line or a line with only a comment.

    Raises:
      ValueError: If the line is malformed.
    """
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: {error.reason} at byte {error.start + 1}") from None
    if not format.labeled:
        line = _with_label(line)
    # Two words first: a "#" inside a query id starts no comment.
    words = line.split(None, 2)
    if not words or words[0].startswith(b"#"):
        return None
    label = _parse_label(words[0])
    if query_id is None and format.query_ids == "qid":
        if len(words) < 2 or len(words[1]) < 5 or not words[1].startswith(b"qid:"):
            raise ValueError(_no_query_id(words, line))
        features, _, comment = words[2].partition(b"#") if len(words) > 2 else (b"", b"", b"")
        query_id = words[1][4:]
    else:
        if len(words) > 1 and words[1].startswith(b"qid:"):
            given = "`query_ids='comment'`" if query_id is None else "a file of query sizes"
            raise ValueError(f"unexpected query id {shown(words[1])} with {given}")
        features, _, comment = line.split(None, 1)[1].partition(b"#") if len(words) > 1 else (b"", b"", b"")
        if query_id is None:
            query_id = b"".join(comment.split(None, 1)[:1])
            if not query_id:
                raise ValueError("no query id: expected '# <text>' after the features with `query_ids='comment'`")
            return Head(number, label, query_id, b"", features)
    match = _DOC_ID.match(comment)
    return Head(number, label, query_id, match[1] if match else b"", features)


def _with_label(line: bytes) -> bytes:
    """Returns the line with the label 0 in place of its own, or added if it has none."""
    first, *rest = line.split(None, 1) or [b"#"]
    if first.startswith(b"#"):
        return b""
    return b" ".join([b"0", *rest] if b":" not in first else [b"0", line])


def _no_query_id(words: list[bytes], line: bytes) -> str:
    found = shown(words[1]) if len(words) > 1 else "the end of the line"
    by_comment = "" if b"#" not in line else "; `LetorFormat(query_ids='comment')` reads the first word after '#'"
    return (
        f"no query id: expected 'qid:<text>' after the label, got {found}"
        f"{by_comment}; `LetorFormat(group_sizes=FILE)` reads query sizes from a file"
    )


def parse_row(head: Head, num_features: int | None = None, format: LetorFormat = PLAIN) -> Row:
    """Parses the features of a line.

    Args:
      head: The line.
      num_features: The largest allowed feature number. None allows any.
      format: The format of the line.

    Returns:
      The row; NaN stands for the minimum of the query.

    Raises:
      ValueError: If the line is malformed.
    """
    first = format.first_index
    values = _parse_dense(head.features, first)
    row = _parse_sparse(head.features, first, format.replaced) if values is None else Row(None, values)
    if num_features is not None and row.highest_index > num_features:
        wrong = row.highest_index - 1 + first
        raise ValueError(
            f"feature index {wrong} exceeds num_features={num_features}" + " (indices start at 0)" * (first == 0)
        )
    return row


def _parse_dense(features: bytes, first: int = 1) -> list[float] | None:
    """Returns the values of `1:a 2:b ... n:z` (or from index 0); None for other text, for `_parse_sparse`."""
    pieces = features.split()
    count = len(pieces)
    while len(_dense_prefixes) < first + count:
        _dense_prefixes.append(b"%d:" % len(_dense_prefixes))
    if count == 0 or not pieces[-1].startswith(_dense_prefixes[first + count - 1]):
        return None
    # A value with another prefix keeps its ":" and is not a float. With `count` colons in total, each piece has
    # exactly one.
    if features.count(b":") != count or b"_" in features:
        return None
    try:
        values = list(map(float, map(bytes.removeprefix, pieces, _dense_prefixes[first:])))
    except ValueError:
        return None
    # Also False for NaN. If only the sum is too large, the exact check decides.
    return values if sum(map(abs, values)) <= _FLOAT32_MAX else None


def _parse_sparse(features: bytes, first: int, replaced: dict[bytes, float]) -> Row:
    """Returns the checked indices and values in the order of the line."""
    found: dict[int, float] = {}
    for piece in features.split():
        index_text, colon, value_text = piece.partition(b":")
        if not colon:
            raise ValueError(f"expected 'index:value', got {shown(piece)}")
        index = int(index_text) if _is_index(index_text) else -1
        if index < first:
            hint = "; `LetorFormat(first_index=0)` reads indices from 0" if index == 0 else ""
            highest = 10**_MAX_INDEX_DIGITS - 1
            raise ValueError(f"feature index {shown(index_text)} is not an integer from {first} to {highest}{hint}")
        if index + 1 - first in found:
            raise ValueError(f"duplicate feature index {index}")
        value = replaced.get(value_text)
        found[index + 1 - first] = _parse_value(value_text, index) if value is None else value
    return Row(list(found), list(found.values()))


def _is_index(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _MAX_INDEX_DIGITS


def _parse_label(text: bytes) -> float:
    label = _float32(text)
    if label is None:
        hint = "; `LetorFormat(labeled=False)` reads documents without labels" if b":" in text else ""
        raise ValueError(f"label {shown(text)} is not a finite float32 number{hint}")
    if label < 0:
        hint = "`LetorFormat(labeled=False)` reads documents without labels"
        raise ValueError(f"label {shown(text)} is negative, which marks padding; {hint}")
    return label


def _parse_value(text: bytes, index: int) -> float:
    value = _float32(text)
    if value is None:
        is_token = b":" not in text and not any(byte in b"0123456789" for byte in text)
        token = text.decode(errors="replace")
        hint = f"; `LetorFormat(missing={{{token!r}: VALUE}})` reads it as VALUE" if is_token and len(text) < 20 else ""
        raise ValueError(f"value of feature {index}: {shown(text)} is not a finite float32 number{hint}")
    return value


def _float32(text: bytes) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # The comparison is also False for NaN.
    return value if abs(value) <= _FLOAT32_MAX and b"_" not in text else None


def to_features(rows: Sequence[Row], num_features: int, format: LetorFormat = PLAIN) -> np.ndarray:
    """Returns the features of a query, float32 [rows, num_features], 0 where a row omits one."""
    if all(row.indices is None and len(row.values) == num_features for row in rows):
        return np.array([row.values for row in rows], dtype=np.float32)
    features = np.zeros((len(rows), num_features), dtype=np.float32)
    for features_row, row in zip(features, rows, strict=True):
        if row.indices is None:
            features_row[: len(row.values)] = row.values
        elif row.indices:
            features_row[np.array(row.indices) - 1] = row.values
    if format.missing:
        absent = np.isnan(features)
        lowest = np.where(absent, np.inf, features).min(axis=0)
        features = np.where(absent, np.where(np.isfinite(lowest), lowest, 0.0), features).astype(np.float32)
    return features


def shown(text: bytes) -> str:
    """Returns the text in quotes, truncated if it is long."""
    decoded = text.decode(errors="replace")
    return repr(decoded if len(decoded) <= 60 else decoded[:57] + "...")
