"""A cache of parsed queries, in memory or in a file, which is invalid after its sources change.

It stores plain arrays one after the other, each at a multiple of 64 bytes, the features first, followed by a JSON
description of them and its length. A file is memory-mapped, so opening it is free and the operating system caches what
is used.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfr_smooth import _files
from tfr_smooth.data.letor_parser import Query
from tfr_smooth.data.text_files import state_of

# Increase when the layout or the parser's results change: older caches are then created again.
_FORMAT = 2
_ALIGNMENT = 64
_TAIL = 8  # bytes for the length of the description


class QueryCache:
    """The queries of ranking files, in file order.

    Args:
      content: uint8, the bytes of the cache.
      path: The file with these bytes. None if they are only in memory.

    Attributes:
      path: The file, or None.
      num_features: Width of the features.
      features: float32 [documents, num_features].
      labels: float32 [documents].
      starts: int64 [queries + 1], the index of the first document of each query, then the number of documents.
      query_ids: bytes [queries].
      doc_ids: bytes [documents].
      lengths: int64 [queries], the number of documents of each query.

    Raises:
      ValueError: If the bytes are truncated or not a cache.
    """

    def __init__(self, content: np.ndarray, path: Path | None = None) -> None:
        self.description = _description(content)

        def array(name: str) -> np.ndarray:
            kind, shape, start = self.description["arrays"][name]
            return np.frombuffer(content, np.dtype(kind), math.prod(shape), start).reshape(shape)

        self.path = path
        self.num_features: int = self.description["num_features"]
        self.features, self.labels = array("features"), array("labels")
        self.starts = array("starts")
        self.query_ids, self.doc_ids = array("query_ids"), array("doc_ids")
        self.lengths = np.diff(self.starts)

    @classmethod
    def in_memory(cls, num_features: int, queries: Iterable[Query]) -> QueryCache:
        """Stores queries, at least one, in memory."""
        content = bytearray()
        for chunk in _chunks(num_features, queries, {}):
            content += chunk
        return cls(np.frombuffer(content, np.uint8))

    @classmethod
    def open(cls, path: Path) -> QueryCache | None:
        """Opens a file; returns None if it is missing or damaged."""
        try:
            return cls(np.memmap(path, np.uint8, "r"), path)
        except (OSError, ValueError):
            return None

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.lengths)

    def batch(self, queries: np.ndarray, list_size: int | None = None) -> tuple[np.ndarray, ...]:
        """Returns the padded features, labels and ids of queries.

        Args:
          queries: int64 [batch], indices of queries.
          list_size: Documents per list. None pads to the longest list of the batch.

        Returns:
          float32 [batch, list, num_features], 0 for padding; float32 [batch, list], -1 for padding; the query ids
          [batch]; and the document ids [batch, list], "" for padding.
        """
        longest = list_size or int(self.lengths[queries].max(initial=0))
        features = np.empty((len(queries), longest, self.num_features), np.float32)
        labels = np.full((len(queries), longest), -1.0, np.float32)
        doc_ids = np.zeros((len(queries), longest), self.doc_ids.dtype)
        for row, query in enumerate(queries.tolist()):
            start = self.starts[query]
            length = min(self.starts[query + 1] - start, longest)
            documents = slice(start, start + length)
            features[row, :length] = self.features[documents]
            features[row, length:] = 0.0
            labels[row, :length] = self.labels[documents]
            doc_ids[row, :length] = self.doc_ids[documents]
        return features, labels, self.query_ids[queries], doc_ids


def cached_queries(
    cache_dir: str | os.PathLike[str],
    paths: Sequence[str],
    settings: dict[str, Any],
    parse: Callable[[], tuple[int, Iterable[Query]]],
) -> QueryCache:
    """Returns the queries of files from their cache, which is first created if missing or outdated.

    Args:
      cache_dir: Directory of the cache, created if missing. It may contain the caches of multiple data sets.
      paths: All files that `parse` reads. The cache is valid as long as their sizes and modification times do not
        change.
      settings: Other settings that the result of `parse` depends on, as JSON. Each combination has its own cache.
      parse: Reads the files: returns the number of features and the queries, at least one.

    Returns:
      The cache.

    A cache is first written under a temporary name, so an interrupted run leaves none. Creation takes linear time in
    the size of the files, and memory for the labels and ids.
    """
    folder = Path(cache_dir)
    sources = [state_of(path) for path in paths]
    names = [source[0] for source in sources]
    key = hashlib.sha256(json.dumps([names, settings], sort_keys=True).encode()).hexdigest()[:16]
    path = folder / f"{Path(names[0]).name}-{key}.queries"
    fits = {"format": _FORMAT, "sources": sources, "settings": settings}
    cache = QueryCache.open(path)
    if cache is None or any(cache.description.get(name) != value for name, value in fits.items()):
        folder.mkdir(parents=True, exist_ok=True)
        num_features, queries = parse()
        _files.write_bytes(path, _chunks(num_features, queries, fits))
        cache = QueryCache.open(path)
        assert cache is not None
    return cache


def _description(content: np.ndarray) -> dict[str, Any]:
    """Returns the description at the end of a cache."""
    end = len(content) - _TAIL
    length = int.from_bytes(content[-_TAIL:].tobytes(), "little")
    if not 0 < length <= end:
        raise ValueError("not a query cache")
    return json.loads(content[end - length : end].tobytes())


def _chunks(num_features: int, queries: Iterable[Query], fits: dict[str, Any]) -> Iterator[bytes]:
    """Yields the bytes of a cache. Only the features, which are most of it, are streamed query by query."""
    labels, query_ids, doc_ids = [], [], []
    for query in queries:
        yield np.ascontiguousarray(query.features, np.float32).tobytes()
        labels.append(query.labels)
        query_ids.append(query.query_id)
        doc_ids.append(np.array(query.doc_ids, np.bytes_))
    starts = np.cumsum([0, *map(len, labels)])
    place = int(starts[-1]) * num_features * 4
    arrays: dict[str, Any] = {"features": ["<f4", [int(starts[-1]), num_features], 0]}
    for name, array in {
        "labels": np.concatenate(labels).astype("<f4"),
        "starts": starts.astype("<i8"),
        "query_ids": np.array(query_ids, np.bytes_),
        "doc_ids": np.concatenate(doc_ids),
    }.items():
        gap = -place % _ALIGNMENT
        yield bytes(gap) + array.tobytes()
        arrays[name] = [array.dtype.str, list(array.shape), place + gap]
        place += gap + array.nbytes
    text = json.dumps({**fits, "num_features": num_features, "arrays": arrays}).encode()
    yield text + len(text).to_bytes(_TAIL, "little")
