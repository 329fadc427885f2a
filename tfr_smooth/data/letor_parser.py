"""Reads LETOR / SVMlight ranking files: lines to queries.

Bytes are parsed as bytes: `float(b"...")` takes ASCII digits only, and `bytes.split` cuts at ASCII
whitespace only, so that query ids may hold any other text.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfr_smooth.data.text_files import FilePattern, expand_paths, numbered_lines

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_MAX_INDEX_DIGITS = 9
_DOC_ID = re.compile(rb"\s*docid\s*=\s*(\S+)")
# "1:", "2:", ...: what the features of a dense line start with; grows to the longest line seen.
_dense_prefixes: list[bytes] = []


class Head(NamedTuple):
    """One document line, but for its features, which are text still."""

    number: int
    label: float
    query_id: bytes
    doc_id: bytes
    features: bytes


class Block(NamedTuple):
    """The lines of one query; not `complete` where bad input follows, so that only their own faults matter."""

    path: str
    heads: list[Head]
    complete: bool = True


# For fewer numbers in a query the exact parser is quicker than a call of a dense one.
_DENSE_FROM = 8192

# Reads the text of rows that all have the features 1..n, in order: float32 [rows, n], or None for anything else.
DenseReader: TypeAlias = "Callable[[list[bytes], int], np.ndarray | None]"


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
    return summary_of(expand_paths(file_pattern))


def summary_of(paths: Sequence[str], read_dense: DenseReader | None = None, workers: int = 0) -> LetorSummary:
    """Does what `scan_letor` does, with `read_dense` and `workers` as for `read_queries`."""

    def counted(block: Block) -> tuple[int, int]:
        width = block.heads[0].features.count(b":")
        if _read_dense(read_dense, block, width) is not None:
            return len(block.heads), width
        rows = _rows(block)
        return len(rows), max(row.highest_index for row in rows)

    queries = documents = num_features = longest_list = 0
    for length, highest_index in _parsed(counted, read_blocks(paths), workers):
        queries += 1
        documents += length
        longest_list = max(longest_list, length)
        num_features = max(num_features, highest_index)
    return LetorSummary(tuple(paths), queries, documents, num_features, longest_list)


def width_of_first_row(paths: Sequence[str]) -> int | None:
    """Returns the highest feature index of the first document; None if that has no features."""
    block = next(read_blocks(paths))
    return _rows(Block(block.path, block.heads[:1]))[0].highest_index or None


def read_queries(
    paths: Sequence[str],
    num_features: int,
    list_size: int | None = None,
    *,
    read_dense: DenseReader | None = None,
    workers: int = 0,
) -> Iterator[Query]:
    """Yields the queries of some ranking files in file order.

    Args:
      paths: Files to read, one after the other, as `numbered_lines` does.
      num_features: Width of the feature matrix; a higher index in a file is an error.
      list_size: Keeps only the first `list_size` documents of a query; None keeps them all.
      read_dense: What to try on the rows of a query before the exact parser, which also says what is wrong.
      workers: Threads that parse, a few queries ahead of what is yielded; 0 parses when asked for.

    Yields:
      A `Query` for each block of lines with one query id.

    Raises:
      ValueError: Bad input (`path:line: what is wrong`), also in the lines that are cut off.

    Linear in the size of the files; memory for one query (and `2 * workers` more) and for the query ids seen.
    """

    def parsed(block: Block) -> Query:
        features = _read_dense(read_dense, block, num_features)
        if features is None:
            features = _features(_rows(block, num_features), num_features)
        heads = block.heads[:list_size]
        labels = np.array([head.label for head in heads], dtype=np.float32)
        return Query(heads[0].query_id, features[:list_size], labels, [head.doc_id for head in heads])

    yield from _parsed(parsed, read_blocks(paths), workers)


def _read_dense(read_dense: DenseReader | None, block: Block, width: int) -> np.ndarray | None:
    """What the dense parser makes of a query's features, where it may pay; None for all else."""
    if read_dense is None or len(block.heads) * width < _DENSE_FROM:
        return None
    return read_dense([head.features for head in block.heads], width)


def _parsed(parse: Callable[[Block], Any], blocks: Iterator[Block], workers: int) -> Iterator[Any]:
    """Yields what `parse` makes of each complete block, in their order, and raises the first fault of the files."""
    if workers == 0:
        for block in blocks:
            result = parse(block)
            if block.complete:
                yield result
        return
    pending: collections.deque[futures.Future[tuple[Block, Any]]] = collections.deque()
    fault = None
    with futures.ThreadPoolExecutor(workers) as pool:
        try:
            while pending or fault is None:
                if fault is None and len(pending) <= 2 * workers:
                    try:
                        pending.append(pool.submit(lambda block: (block, parse(block)), next(blocks)))
                    except (StopIteration, ValueError, OSError) as error:
                        fault = error  # of a later line than those which are being parsed
                else:
                    block, result = pending.popleft().result()
                    if block.complete:
                        yield result
        finally:
            for future in pending:
                future.cancel()
    if not isinstance(fault, StopIteration):
        raise fault


def read_blocks(paths: Sequence[str]) -> Iterator[Block]:
    """Yields the lines of each query; checks them but for their features, and that no query comes back."""
    seen: set[bytes] = set()
    for path in paths:
        block: list[Head] = []
        number = 0
        try:
            for number, line in numbered_lines(path):  # noqa: B007 (used after the loop)
                head = _located(path, number, parse_head, line, number)
                if head is None:
                    continue
                if not block or head.query_id != block[0].query_id:
                    if block:
                        yield Block(path, block)
                    block = []
                    if head.query_id in seen:
                        again = f"query {_shown(head.query_id)} comes back after its block ended"
                        raise ValueError(f"{path}:{number}: {again}")
                    seen.add(head.query_id)
                block.append(head)
        except ValueError:
            if block:
                yield Block(path, block, complete=False)
            raise
        if not block:
            raise ValueError(f"{path}:{max(number, 1)}: the file ends without a document")
        yield Block(path, block)


def _located(path: str, number: int, parse: Callable[..., Any], *arguments: Any) -> Any:
    """Calls `parse`, and says in its errors where the line is."""
    try:
        return parse(*arguments)
    except ValueError as error:
        raise ValueError(f"{path}:{number}: {error}") from None


def _rows(block: Block, num_features: int | None = None) -> list[Row]:
    """The rows of a query, by the exact parser."""
    return [_located(block.path, head.number, _to_row, head, num_features) for head in block.heads]


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
    head = parse_head(line, number=1)
    return None if head is None else _to_row(head, num_features)


def parse_head(line: bytes, number: int) -> Head | None:
    """Parses all of a line but its features; raises and returns None as `parse_row` does."""
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
    return Head(number, label, words[1][4:], match[1] if match else b"", features)


def _to_row(head: Head, num_features: int | None) -> Row:
    indexes: list[int] | None = None
    values = _parse_dense(head.features)
    if values is None:
        indexes, values = _parse_sparse(head.features)
    row = Row(head.label, head.query_id, head.doc_id, indexes, values)
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


def _features(rows: Sequence[Row], num_features: int) -> np.ndarray:
    """The values of some rows, float32 [rows, num_features], 0 where a row has none."""
    if all(row.indexes is None and len(row.values) == num_features for row in rows):
        return np.array([row.values for row in rows], dtype=np.float32)
    features = np.zeros((len(rows), num_features), dtype=np.float32)
    for features_row, row in zip(features, rows, strict=True):
        if row.indexes is None:
            features_row[: len(row.values)] = row.values
        elif row.indexes:
            features_row[np.array(row.indexes) - 1] = row.values
    return features


def _shown(text: bytes) -> str:
    shown = text.decode(errors="replace")
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")
