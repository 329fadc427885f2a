"""Reads LETOR / SVMlight ranking files: lines to queries, without TensorFlow.

Bytes are parsed as bytes: `float(b"...")` takes ASCII digits only, and `bytes.split` cuts at ASCII
whitespace only, so that query ids may hold any other text.
"""

from __future__ import annotations

import glob
import gzip
import io
import itertools
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np

FilePattern: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_MAX_INDEX_DIGITS = 9
_DOC_ID = re.compile(rb"\s*docid\s*=\s*(\S+)")
# "1:", "2:", ...: what the features of a dense line start with; grows to the longest line seen.
_dense_prefixes: list[bytes] = []


class Row(NamedTuple):
    """One document line: `values[i]` belongs to feature `indexes[i]`, or `i + 1` where None."""

    label: float
    query_id: bytes
    doc_id: bytes
    indexes: list[int] | None
    values: list[float]

    @property
    def highest_index(self) -> int:
        """The highest feature index of the line, 0 where it has no features."""
        return len(self.values) if self.indexes is None else max(self.indexes, default=0)


class Query(NamedTuple):
    """One query: features float32 [documents, num_features], labels float32 [documents]."""

    query_id: bytes
    features: np.ndarray
    labels: np.ndarray
    doc_ids: list[bytes]


class LetorSummary(NamedTuple):
    """What a set of ranking files holds; `longest_list` counts documents, `paths` the files."""

    paths: tuple[str, ...]
    queries: int
    documents: int
    num_features: int
    longest_list: int


def scan_letor(file_pattern: FilePattern) -> LetorSummary:
    r"""Reads ranking files once and counts what they hold; checks every line on the way.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, as for `read_letor`.

    Returns:
      A `LetorSummary` with `paths` (the files in reading order), `queries`, `documents`,
      `num_features` (the highest feature index, at least 0) and `longest_list` (documents).

    Raises:
      ValueError: A pattern matches no file, or bad input (`path:line: what is wrong`).

    One pass over the files, as slow as one epoch of `read_letor`; memory for one query and for the
    query ids seen.

    Example:
      >>> import os, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "train.txt")
      ...     with open(path, "w") as file:
      ...         _ = file.write("1 qid:a 1:0.5 3:2\n0 qid:a 2:1\n0 qid:b 1:0.1\n")
      ...     summary = scan_letor(path)
      >>> summary.queries, summary.documents, summary.num_features, summary.longest_list
      (2, 3, 3, 2)
    """
    paths = expand_paths(file_pattern)
    queries = documents = num_features = longest_list = 0
    for rows in read_blocks(paths):
        queries += 1
        documents += len(rows)
        longest_list = max(longest_list, len(rows))
        num_features = max(num_features, max(row.highest_index for row in rows))
    return LetorSummary(tuple(paths), queries, documents, num_features, longest_list)


def read_queries(paths: Sequence[str], num_features: int, list_size: int | None = None) -> Iterator[Query]:
    """Yields the queries of some ranking files in file order.

    Args:
      paths: Files to read, one after the other; names that end in `.gz` are unpacked.
      num_features: Width of the feature matrix; a higher index in a file is an error.
      list_size: Keeps only the first `list_size` documents of a query; None keeps them all.

    Yields:
      A `Query` for each block of lines with one query id.

    Raises:
      ValueError: Bad input (`path:line: what is wrong`), also in the lines that are cut off.

    Linear in the size of the files; memory for one query and for the query ids seen.
    """
    for rows in read_blocks(paths, num_features):
        yield _to_query(rows[:list_size], num_features)


def read_blocks(paths: Sequence[str], num_features: int | None = None) -> Iterator[list[Row]]:
    """Yields the rows of each query; checks all lines and that no query comes back."""
    seen: set[bytes] = set()
    for path in paths:
        block: list[Row] = []
        query_id = None
        number = 0
        for number, line in _numbered_lines(path):  # noqa: B007 (used after the loop)
            try:
                row = parse_row(line, num_features)
                if row is None:
                    continue
                if row.query_id != query_id:
                    if block:
                        yield block
                    query_id = row.query_id
                    if query_id in seen:
                        raise ValueError(f"query {_shown(query_id)} comes back after its block ended")
                    seen.add(query_id)
                    block = []
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            block.append(row)
        if not block:
            raise ValueError(f"{path}:{max(number, 1)}: the file ends without a document")
        yield block


def parse_row(line: bytes, num_features: int | None = None) -> Row | None:
    """Parses one line.

    Args:
      line: `label qid:text index:value ... # comment`, with or without a line end.
      num_features: The highest feature index that is allowed; None allows any.

    Returns:
      The row, or None for a blank line and for a line that is only a comment.

    Raises:
      ValueError: Says what is wrong with the line.
    """
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: {error.reason} at byte {error.start + 1}") from None
    # Two words first: a "#" inside a query id starts no comment.
    words = line.split(None, 2)
    if not words or words[0].startswith(b"#"):
        return None
    label = _parse_float32(words[0], "label")
    if label < 0:
        raise ValueError(f"label {_shown(words[0])} is negative, which would mean padding")
    if len(words) < 2 or len(words[1]) < 5 or not words[1].startswith(b"qid:"):
        found = _shown(words[1]) if len(words) > 1 else "the end of the line"
        raise ValueError(f"no query id: expected 'qid:<text>' after the label, got {found}")
    features, _, comment = words[2].partition(b"#") if len(words) > 2 else (b"", b"", b"")
    match = _DOC_ID.match(comment)
    indexes: list[int] | None = None
    values = _parse_dense(features)
    if values is None:
        indexes, values = _parse_sparse(features)
    row = Row(label, words[1][4:], match[1] if match else b"", indexes, values)
    if num_features is not None and row.highest_index > num_features:
        raise ValueError(f"feature index {row.highest_index} is over num_features={num_features}")
    return row


def _parse_dense(features: bytes) -> list[float] | None:
    """The values of `1:a 2:b ... n:z`; None for anything else, so that `_parse_sparse` decides."""
    pieces = features.split()
    count = len(pieces)
    while len(_dense_prefixes) < count:
        _dense_prefixes.append(b"%d:" % (len(_dense_prefixes) + 1))
    if count == 0 or not pieces[-1].startswith(_dense_prefixes[count - 1]):
        return None
    # A value keeps its ":" where the prefix differs, and then is no float. With `count` colons
    # no piece can lack its own.
    if features.count(b":") != count or b"_" in features:
        return None
    try:
        values = list(map(float, map(bytes.removeprefix, pieces, _dense_prefixes)))
    except ValueError:
        return None
    # False for NaN too; a sum that is only too large is left to the exact check.
    return values if sum(map(abs, values)) <= _FLOAT32_MAX else None


def _parse_sparse(features: bytes) -> tuple[list[int], list[float]]:
    """Indexes and values in the order of the line, each of them checked."""
    found: dict[int, float] = {}
    for piece in features.split():
        index_text, colon, value_text = piece.partition(b":")
        if not colon:
            raise ValueError(f"expected 'index:value', got {_shown(piece)}")
        index = int(index_text) if _is_index(index_text) else 0
        if index == 0:
            raise ValueError(
                f"feature index {_shown(index_text)} is no whole number from 1 to {10**_MAX_INDEX_DIGITS - 1}"
            )
        if index in found:
            raise ValueError(f"feature index {index} comes twice")
        found[index] = _parse_float32(value_text, f"value of feature {index}:")
    return list(found), list(found.values())


def _is_index(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _MAX_INDEX_DIGITS


def _parse_float32(text: bytes, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    # The comparison is False for NaN too.
    if not abs(value) <= _FLOAT32_MAX or b"_" in text:
        raise ValueError(f"{what} {_shown(text)} is no finite float32 number")
    return value


def _to_query(rows: Sequence[Row], num_features: int) -> Query:
    if all(row.indexes is None and len(row.values) == num_features for row in rows):
        features = np.array([row.values for row in rows], dtype=np.float32)
    else:
        features = np.zeros((len(rows), num_features), dtype=np.float32)
        for features_row, row in zip(features, rows, strict=True):
            if row.indexes is None:
                features_row[: len(row.values)] = row.values
            elif row.indexes:
                features_row[np.array(row.indexes) - 1] = row.values
    labels = np.array([row.label for row in rows], dtype=np.float32)
    return Query(rows[0].query_id, features, labels, [row.doc_id for row in rows])


def _numbered_lines(path: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    with _open_binary(path) as stream:
        try:
            for number, line in enumerate(stream, start=1):  # noqa: B007 (used below)
                yield number, line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}:{number + 1}: truncated or damaged gzip data: {error}") from None


def _open_binary(path: str) -> BinaryIO:
    if path.endswith(".gz"):
        # The outer buffer makes reading line by line several times faster.
        return io.BufferedReader(gzip.open(path, "rb"), 1 << 16)
    return open(path, "rb")


def expand_paths(file_pattern: FilePattern) -> list[str]:
    """Turns paths and glob patterns into files: list order, the matches of a pattern sorted."""
    if isinstance(file_pattern, (str, os.PathLike)):
        patterns = [file_pattern]
    elif isinstance(file_pattern, (list, tuple)):
        patterns = list(file_pattern)
    else:
        raise ValueError(f"`file_pattern` must be a path, a pattern or a list of these, got {file_pattern!r}.")
    if not patterns:
        raise ValueError("`file_pattern` must name at least one file, got an empty list.")
    paths: list[str] = []
    for pattern in patterns:
        if not isinstance(pattern, (str, os.PathLike)):
            raise ValueError(f"`file_pattern` must hold paths or patterns, got {pattern!r}.")
        name = os.fspath(pattern)
        # A file that is there is meant literally, even with "[" in its name.
        matches = [name] if os.path.isfile(name) else sorted(glob.glob(name, recursive=True))
        matches = [match for match in matches if os.path.isfile(match)]
        if not matches:
            raise ValueError(f"`file_pattern` must match files, got {name!r}, which matches none.")
        paths.extend(matches)
    for before, path in itertools.pairwise(sorted(paths)):
        if before == path:
            raise ValueError(f"`file_pattern` must match a file once, got {path!r} twice.")
    return paths


def _shown(text: bytes) -> str:
    shown = text.decode(errors="replace")
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")
