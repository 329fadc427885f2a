"""Reads the lines of ranking files: parses them, and groups them by query.

Lines are parsed as bytes: `float(b"...")` accepts only ASCII digits, and `bytes.split` splits only at ASCII whitespace,
so query ids may contain any other text.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfr_smooth.data.letor_format import PLAIN, LetorFormat
from tfr_smooth.data.text_files import COMPRESSED, is_file, numbered_lines

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_MAX_INDEX_DIGITS = 9
_DOC_ID = re.compile(rb"\s*docid\s*=\s*(\S+)")
_PAIRS = re.compile(rb"\s*(?:\d{1,9}:[^\s:_]+(?:\s+|\Z))*")
# The file extensions of query sizes in LightGBM and XGBoost.
_SIZES_ENDINGS = (".query", ".group")


class Head(NamedTuple):
    """One document line, with its features still as text."""

    number: int
    label: float
    query_id: bytes
    doc_id: bytes
    features: bytes


class Block(NamedTuple):
    """The lines of one query; not `complete` if malformed input follows, so they are only checked for errors."""

    path: str
    heads: list[Head]
    complete: bool = True


def read_blocks(paths: Sequence[str], format: LetorFormat = PLAIN) -> Iterator[Block]:
    """Yields the lines of each query; checks all but their features, and that queries are contiguous."""
    seen: set[bytes] = set()
    numbers = itertools.count()  # the ids of queries with only a size
    for path, sizes_file in zip(paths, sizes_files(paths, format), strict=True):
        block: list[Head] = []
        try:
            heads = _heads(path, format)
            if sizes_file is not None:
                heads = _by_size(path, format, sizes_file, numbers)
            for head in heads:
                if not block or head.query_id != block[0].query_id:
                    if block:
                        yield Block(path, block)
                    block = []
                    if head.query_id in seen:
                        expected = "its lines must be contiguous in one file"
                        raise ValueError(f"{path}:{head.number}: duplicate query {shown(head.query_id)}: {expected}")
                    seen.add(head.query_id)
                block.append(head)
        except ValueError:
            if block:
                yield Block(path, block, complete=False)
            raise
        yield Block(path, block)


def _heads(path: str, format: LetorFormat, query_id: bytes | None = None) -> Iterator[Head]:
    """Yields the heads of the document lines of a file, at least one."""
    number = 0
    found = False
    for number, line in numbered_lines(path):  # noqa: B007 (used after the loop)
        head = _located(path, number, parse_head, line, number, format, query_id)
        if head is not None:
            found = True
            yield head
    if not found:
        raise ValueError(f"{path}:{max(number, 1)}: the file has no documents")


def _by_size(path: str, format: LetorFormat, sizes_file: str, numbers: Iterator[int]) -> Iterator[Head]:
    """Yields the heads of a file whose query sizes are in another file; the query ids are numbers."""
    sizes = list(_read_sizes(sizes_file))
    expected = f"the sum of the sizes in {sizes_file}, {sum(sizes)}"
    ids = (b"%d" % number for size, number in zip(sizes, numbers, strict=False) for _ in range(size))
    last = 0
    for head in _heads(path, format, b""):
        query_id = next(ids, None)
        last = head.number
        if query_id is None:
            raise ValueError(f"{path}:{last}: more documents than {expected}")
        yield head._replace(query_id=query_id)
    if next(ids, None) is not None:
        raise ValueError(f"{path}:{last}: fewer documents than {expected}")


def sizes_files(paths: Sequence[str], format: LetorFormat) -> list[str | None]:
    """Returns the file of query sizes of each data file, None for files with query ids.

    Raises:
      ValueError: If the number of files in `group_sizes` is not the number of data files, or a data file has two
        candidates.
    """
    if isinstance(format.group_sizes, list):
        if len(format.group_sizes) != len(paths):
            expected = f"`group_sizes` must match one file for each of the {len(paths)} data files"
            raise ValueError(f"{expected}, got {len(format.group_sizes)}.")
        return list(format.group_sizes)
    if format.query_ids == "comment":
        return [None] * len(paths)
    return [_sizes_beside(path) for path in paths]


def _sizes_beside(path: str) -> str | None:
    """Returns the file of query sizes next to a file without query ids; None if there is none."""
    root, ending = os.path.splitext(path)
    roots = [path, root] if ending in COMPRESSED else [path]
    found = list(filter(is_file, [root + ending for root in roots for ending in _SIZES_ENDINGS]))
    if not found or _has_query_ids(path):
        return None
    if len(found) > 1:
        raise ValueError(
            f"`group_sizes` must name the file of query sizes of {path}, got None and the candidates {found}."
        )
    return found[0]


def _has_query_ids(path: str) -> bool:
    """Whether the first document has a query id; True for a file without documents, which the reader rejects."""
    for _, line in numbered_lines(path):
        words = line.split(None, 2)
        if words and not words[0].startswith(b"#"):
            return any(word.startswith(b"qid:") for word in words[:2])
    return True


def _read_sizes(path: str) -> Iterator[int]:
    """Yields the query sizes, one per line; blank lines are skipped.

    Raises:
      ValueError: If a line is not an integer >= 1 (`path:line: problem`).
    """
    for number, line in numbered_lines(path):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or len(text) > 9 or int(text) == 0:
            shown = text.decode(errors="replace")[:60]
            raise ValueError(f"{path}:{number}: query size {shown!r} is not an integer >= 1")
        yield int(text)


def _located(path: str, number: int, parse: Callable[..., Any], *arguments: Any) -> Any:
    """Calls `parse` and prefixes its errors with `path:line`."""
    try:
        return parse(*arguments)
    except ValueError as error:
        raise ValueError(f"{path}:{number}: {error}") from None


def parse_rows(block: Block, num_features: int | None, format: LetorFormat) -> list[dict[int, float]]:
    """Returns the rows of a query from the exact parser."""
    return [_located(block.path, head.number, parse_row, head, num_features, format) for head in block.heads]


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
            return Head(number, label, _utf8(query_id), b"", features)
    match = _DOC_ID.match(comment)
    return Head(number, label, _utf8(query_id), _document_id(match[1]) if match else b"", features)


def _utf8(query_id: bytes) -> bytes:
    try:
        query_id.decode()
    except UnicodeDecodeError:
        raise ValueError(f"query id {query_id!r} is not UTF-8 text") from None
    return query_id


def _document_id(text: bytes) -> bytes:
    """Returns the text in UTF-8; other comments are taken as Latin-1, in which all bytes are characters."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1").encode()
    return text


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


def parse_row(head: Head, num_features: int | None = None, format: LetorFormat = PLAIN) -> dict[int, float]:
    """Parses the features of a line.

    Args:
      head: The line.
      num_features: The largest allowed feature number. None allows any.
      format: The format of the line.

    Returns:
      The values by feature index; NaN stands for the minimum of the query.

    Raises:
      ValueError: If the line is malformed.
    """
    found = _parse_pairs(head.features, format)
    if found is None:
        found = _parse_checked(head.features, format)
    if num_features is not None and width_of(found, format) > num_features:
        from_0 = " (indices start at 0)" if format.first_index == 0 else ""
        raise ValueError(f"feature index {max(found)} exceeds num_features={num_features}{from_0}")
    return found


def width_of(row: dict[int, float], format: LetorFormat) -> int:
    """Returns the number of features up to the highest index of a row."""
    return max(row) + 1 - format.first_index if row else 0


def _parse_pairs(features: bytes, format: LetorFormat) -> dict[int, float] | None:
    """Returns the values by index, fast; None for text that only `_parse_checked` can read or describe."""
    if not _PAIRS.fullmatch(features) or any(token in features for token in format.numeric_tokens):
        return None
    pieces = features.replace(b":", b" ").split()
    try:
        found = dict(zip(map(int, pieces[::2]), map(float, pieces[1::2]), strict=True))
    except ValueError:
        return None
    # Also False for NaN. If only the sum is too large, the exact check decides.
    is_finite = sum(map(abs, found.values())) <= _FLOAT32_MAX
    is_unique = 2 * len(found) == len(pieces)
    return found if is_finite and is_unique and min(found, default=1) >= format.first_index else None


def _parse_checked(features: bytes, format: LetorFormat) -> dict[int, float]:
    """Returns the values by index; checks each piece."""
    first = format.first_index
    found: dict[int, float] = {}
    for piece in features.split():
        index_text, colon, value_text = piece.partition(b":")
        if not colon:
            raise ValueError(f"expected 'index:value', got {shown(piece)}")
        index = int(index_text) if index_text.isdigit() and len(index_text) <= _MAX_INDEX_DIGITS else -1
        if index < first:
            hint = "; `LetorFormat(first_index=0)` reads indices from 0" if index == 0 else ""
            highest = 10**_MAX_INDEX_DIGITS - 1
            raise ValueError(f"feature index {shown(index_text)} is not an integer from {first} to {highest}{hint}")
        if index in found:
            raise ValueError(f"duplicate feature index {index}")
        value = format.replaced.get(value_text)
        found[index] = _parse_value(value_text, index) if value is None else value
    return found


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


def to_features(rows: Sequence[dict[int, float]], num_features: int, format: LetorFormat = PLAIN) -> np.ndarray:
    """Returns the features of a query, float32 [rows, num_features], 0 where a row omits one."""
    features = np.zeros((len(rows), num_features), dtype=np.float32)
    for features_row, row in zip(features, rows, strict=True):
        features_row[np.array([*row], int) - format.first_index] = [*row.values()]
    if format.missing:
        absent = np.isnan(features)
        lowest = np.where(absent, np.inf, features).min(axis=0)
        features = np.where(absent, np.where(np.isfinite(lowest), lowest, 0.0), features).astype(np.float32)
    return features


def shown(text: bytes) -> str:
    """Returns the text in quotes, truncated if it is long."""
    decoded = text.decode(errors="replace")
    return repr(decoded if len(decoded) <= 60 else decoded[:57] + "...")
