"""Parses the lines of LETOR and SVMlight ranking files into queries."""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any, NamedTuple

import numpy as np

from tfr_smooth.data.dense_text import read_dense
from tfr_smooth.data.letor_format import PLAIN, LetorFormat
from tfr_smooth.data.letor_lines import Block, parse_rows, read_blocks, to_features, width_of

# Parser threads. More gain nothing, as a single thread splits the files into lines.
WORKERS = min(os.cpu_count() or 1, 4)
# Below this many numbers per query, the exact parser is faster than the dense one.
_DENSE_FROM = 1024


class Query(NamedTuple):
    """One query: features float32 [documents, num_features], labels float32 [documents]."""

    query_id: bytes
    features: np.ndarray
    labels: np.ndarray
    doc_ids: list[bytes]


def highest_index(paths: Sequence[str], format: LetorFormat = PLAIN, *, workers: int = WORKERS) -> int:
    """Returns the width of the features of files, and checks every line; `workers` as for `read_queries`."""

    def width(block: Block) -> int:
        colons = block.heads[0].features.count(b":")
        if _read_dense(block, colons, format) is not None:
            return colons
        return max(width_of(row, format) for row in parse_rows(block, None, format))

    return max(_parsed(width, read_blocks(paths, format), workers))


def read_queries(
    paths: Sequence[str],
    num_features: int | None,
    *,
    format: LetorFormat = PLAIN,
    workers: int = 0,
) -> Iterator[Query]:
    """Yields the queries of ranking files in file order.

    Args:
      paths: The files in reading order.
      num_features: Width of the feature matrix; a higher index in a file is an error. None uses the highest index of
        the first document.
      format: The format of the files.
      workers: Parser threads, which run a few queries ahead; 0 parses in the calling thread.

    Yields:
      A `Query` for each block of lines of one query.

    Raises:
      ValueError: If the input is malformed (`path:line: problem`).

    Linear time in the size of the files. Memory holds one query (and `2 * workers` more) and the query ids read so far.
    """
    blocks = read_blocks(paths, format)
    if num_features is None:
        first = next(blocks)
        (row,) = parse_rows(first._replace(heads=first.heads[:1]), None, format)
        blocks, num_features = itertools.chain([first], blocks), width_of(row, format)
        if num_features == 0:
            raise ValueError("no features in the first document")
    width = num_features

    def parsed(block: Block) -> Query:
        features = _read_dense(block, width, format)
        if features is None:
            features = to_features(parse_rows(block, width, format), width, format)
        heads = block.heads
        labels = np.array([head.label for head in heads], dtype=np.float32)
        return Query(heads[0].query_id, features, labels, [head.doc_id for head in heads])

    yield from _parsed(parsed, blocks, workers)


def _read_dense(block: Block, width: int, format: LetorFormat) -> np.ndarray | None:
    """Returns a query's features from the dense parser; None if the query is too small or not dense."""
    if len(block.heads) * width < _DENSE_FROM or format.numeric_tokens:
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
