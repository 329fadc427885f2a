"""Reads LETOR / SVMlight ranking files: lines to queries."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfr_smooth.data.letor_format import LetorFormat, read_sizes
from tfr_smooth.data.letor_lines import PLAIN, Head, Row, parse_head, parse_row, shown, to_features
from tfr_smooth.data.text_files import numbered_lines


class Block(NamedTuple):
    """The lines of one query; not `complete` where bad input follows, so that only their own faults matter."""

    path: str
    heads: list[Head]
    complete: bool = True


# For fewer numbers in a query the exact parser is quicker than a call of a dense one.
_DENSE_FROM = 8192

# Reads the text of rows that all have the n features from the first on, in order: float32 [rows, n], or None for
# anything else; the arguments are the rows, n and the first index.
DenseReader: TypeAlias = "Callable[[list[bytes], int, int], np.ndarray | None]"


class Query(NamedTuple):
    """One query: features float32 [documents, num_features], labels float32 [documents]."""

    query_id: bytes
    features: np.ndarray
    labels: np.ndarray
    doc_ids: list[bytes]


class LetorSummary(NamedTuple):
    """What a set of ranking files holds.

    Attributes:
      paths: The files in reading order.
      queries: Their number.
      documents: Their number.
      num_features: The width that all features need: the highest index, or one more where they count from 0.
      longest_list: Documents of the longest query.
      highest_label: The highest label.
      whole_labels: Whether all labels are whole numbers.
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
    """Does what `scan_letor` does, with `read_dense` and `workers` as for `read_queries`."""

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
    """Returns the number of features that the first document needs; None if it has none."""
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
    """Yields the queries of some ranking files in file order.

    Args:
      paths: Files to read, one after the other, as `numbered_lines` does.
      num_features: Width of the feature matrix; a higher index in a file is an error.
      list_size: Keeps only the first `list_size` documents of a query; None keeps them all.
      format: How the files are written.
      read_dense: What to try on the rows of a query before the exact parser, which also says what is wrong.
      workers: Threads that parse, a few queries ahead of what is yielded; 0 parses when asked for.

    Yields:
      A `Query` for each block of lines of one query.

    Raises:
      ValueError: Bad input (`path:line: what is wrong`), also in the lines that are cut off.

    Linear in the size of the files; memory for one query (and `2 * workers` more) and for the query ids seen.
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
    """What the dense parser makes of a query's features, where it may pay; None for all else."""
    if read_dense is None or len(block.heads) * width < _DENSE_FROM:
        return None
    return read_dense([head.features for head in block.heads], width, format.first_index)


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


def read_blocks(paths: Sequence[str], format: LetorFormat = PLAIN) -> Iterator[Block]:
    """Yields the lines of each query; checks them but for their features, and that no query comes back."""
    seen: set[bytes] = set()
    numbers = itertools.count()  # the ids of queries that have but a size
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
                        again = f"query {shown(head.query_id)} comes back after its block ended"
                        raise ValueError(f"{path}:{head.number}: {again}")
                    seen.add(head.query_id)
                block.append(head)
        except ValueError:
            if block:
                yield Block(path, block, complete=False)
            raise
        yield Block(path, block)


def _heads(path: str, format: LetorFormat, query_id: bytes | None = None) -> Iterator[Head]:
    """Yields the heads of the lines of a file that has a document."""
    number = 0
    found = False
    for number, line in numbered_lines(path):  # noqa: B007 (used after the loop)
        head = _located(path, number, parse_head, line, number, format, query_id)
        if head is not None:
            found = True
            yield head
    if not found:
        raise ValueError(f"{path}:{max(number, 1)}: the file ends without a document")


def _by_size(path: str, format: LetorFormat, sizes_file: str, numbers: Iterator[int]) -> Iterator[Head]:
    """Yields the heads of the lines of a file whose queries have their sizes in another file, and numbers for ids."""
    sizes = list(read_sizes(sizes_file))
    expected = f"the {sum(sizes)} that the sizes in {sizes_file} add up to"
    ids = (b"%d" % number for size, number in zip(sizes, numbers, strict=False) for _ in range(size))
    last = 0
    for head in _heads(path, format, b""):
        query_id = next(ids, None)
        last = head.number
        if query_id is None:
            raise ValueError(f"{path}:{last}: one document more than {expected}")
        yield head._replace(query_id=query_id)
    if next(ids, None) is not None:
        raise ValueError(f"{path}:{last}: the file ends with fewer documents than {expected}")


def _located(path: str, number: int, parse: Callable[..., Any], *arguments: Any) -> Any:
    """Calls `parse`, and says in its errors where the line is."""
    try:
        return parse(*arguments)
    except ValueError as error:
        raise ValueError(f"{path}:{number}: {error}") from None


def _rows(block: Block, num_features: int | None, format: LetorFormat) -> list[Row]:
    """The rows of a query, by the exact parser."""
    return [_located(block.path, head.number, parse_row, head, num_features, format) for head in block.heads]
