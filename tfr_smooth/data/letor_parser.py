"""Parses the lines of LETOR and SVMlight ranking files into queries."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfr_smooth.data.letor_format import PLAIN, LetorFormat, read_sizes
from tfr_smooth.data.letor_lines import Head, Row, parse_head, parse_row, shown, to_features
from tfr_smooth.data.text_files import numbered_lines


class Block(NamedTuple):
    """The lines of one query; not `complete` if malformed input follows, so they are only checked for errors."""

    path: str
    heads: list[Head]
    complete: bool = True


# Below this many numbers per query, the exact parser is faster than a dense one.
_DENSE_FROM = 8192

# A parser of rows that all have the same n features in order. Maps (rows, n, first index) to float32 [rows, n], or to
# None for other rows.
DenseReader: TypeAlias = "Callable[[list[bytes], int, int], np.ndarray | None]"


class Query(NamedTuple):
    """One query: features float32 [documents, num_features], labels float32 [documents]."""

    query_id: bytes
    features: np.ndarray
    labels: np.ndarray
    doc_ids: list[bytes]


class LetorSummary(NamedTuple):
    r"""The contents of a set of ranking files, as returned by `scan_letor`.

    Attributes:
      paths: The files in reading order.
      queries: The number of queries.
      documents: The number of documents.
      num_features: The width of the feature matrix: the highest index, or one more if indices start at 0.
      longest_list: The number of documents of the longest query.
      highest_label: The highest label.
      whole_labels: Whether all labels are whole numbers.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
      >>> _ = path.write_text("2 qid:a 1:0.5\n0 qid:a 3:1\n")
      >>> summary = data.scan_letor(path)
      >>> summary.documents, summary.num_features, summary.highest_label
      (2, 3, 2.0)
    """

    paths: tuple[str, ...]
    queries: int
    documents: int
    num_features: int
    longest_list: int
    highest_label: float
    whole_labels: bool


def summary_of(
    paths: Sequence[str], format: LetorFormat = PLAIN, *, read_dense: DenseReader | None = None, workers: int = 0
) -> LetorSummary:
    """Implements `scan_letor`, with `read_dense` and `workers` as for `read_queries`."""

    def counted(block: Block) -> tuple[int, int, float, bool]:
        width = block.heads[0].features.count(b":")
        if _read_dense(read_dense, block, width, format) is None:
            width = max(row.highest_index for row in _rows(block, None, format))
        labels = [head.label for head in block.heads]
        return len(labels), width, max(labels), all(map(float.is_integer, labels))

    queries = 0
    found: list[Any] = [0, 0, 0.0, True]
    longest_list = 0
    for length, *others in _parsed(counted, read_blocks(paths, format), workers):
        queries += 1
        longest_list = max(longest_list, length)
        documents, width, label, whole = found
        found = [documents + length, max(width, others[0]), max(label, others[1]), whole and others[2]]
    documents, width, label, whole = found
    return LetorSummary(tuple(paths), queries, documents, width, longest_list, label, whole)


def width_of_first_row(paths: Sequence[str], format: LetorFormat = PLAIN) -> int | None:
    """Returns the number of features of the first document; None if it has none."""
    block = next(read_blocks(paths, format))
    return _rows(Block(block.path, block.heads[:1]), None, format)[0].highest_index or None


def read_queries(
    paths: Sequence[str],
    num_features: int,
    list_size: int | None = None,
    *,
    format: LetorFormat = PLAIN,
    read_dense: DenseReader | None = None,
    workers: int = 0,
) -> Iterator[Query]:
    """Yields the queries of ranking files in file order.

    Args:
      paths: The files in reading order.
      num_features: Width of the feature matrix; a higher index in a file is an error.
      list_size: Keeps only the first `list_size` documents of a query. None keeps all.
      format: The format of the files.
      read_dense: A parser to try on the rows of a query before the exact parser, which also reports errors. None uses
        only the exact parser.
      workers: Parser threads, which run a few queries ahead; 0 parses in the calling thread.

    Yields:
      A `Query` for each block of lines of one query.

    Raises:
      ValueError: If the input is malformed (`path:line: problem`), including lines beyond `list_size`.

    Linear time in the size of the files. Memory holds one query (and `2 * workers` more) and the query ids read so far.
    """

    def parsed(block: Block) -> Query:
        features = _read_dense(read_dense, block, num_features, format)
        if features is None:
            features = to_features(_rows(block, num_features, format), num_features, format)
        heads = block.heads[:list_size]
        labels = np.array([head.label for head in heads], dtype=np.float32)
        return Query(heads[0].query_id, features[:list_size], labels, [head.doc_id for head in heads])

    yield from _parsed(parsed, read_blocks(paths, format), workers)


def _read_dense(read_dense: DenseReader | None, block: Block, width: int, format: LetorFormat) -> np.ndarray | None:
    """Returns a query's features from the dense parser; None if the query is too small or not dense."""
    if read_dense is None or len(block.heads) * width < _DENSE_FROM:
        return None
    return read_dense([head.features for head in block.heads], width, format.first_index)


def _parsed(parse: Callable[[Block], Any], blocks: Iterator[Block], workers: int) -> Iterator[Any]:
    """Yields the result of `parse` for each complete block in order, and raises the first error of the files."""
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
                        fault = error  # on a later line than the pending blocks
                else:
                    block, result = pending.popleft().result()
                    if block.complete:
                        yield result
        finally:
            for future in pending:
                future.cancel()
    if not isinstance(fault, StopIteration):
        raise fault


def read_blocks(paths: Sequence[str], format: LetorFormat = PLAIN) -> Iterator[Block]:
    """Yields the lines of each query; checks all but their features, and that queries are contiguous."""
    seen: set[bytes] = set()
    numbers = itertools.count()  # the ids of queries with only a size
    for path, sizes_file in zip(paths, format.sizes_files(paths), strict=True):
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
    sizes = list(read_sizes(sizes_file))
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


def _located(path: str, number: int, parse: Callable[..., Any], *arguments: Any) -> Any:
    """Calls `parse` and prefixes its errors with `path:line`."""
    try:
        return parse(*arguments)
    except ValueError as error:
        raise ValueError(f"{path}:{number}: {error}") from None


def _rows(block: Block, num_features: int | None, format: LetorFormat) -> list[Row]:
    """Returns the rows of a query from the exact parser."""
    return [_located(block.path, head.number, parse_row, head, num_features, format) for head in block.heads]
