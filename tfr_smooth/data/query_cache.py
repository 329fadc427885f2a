"""A binary file of parsed queries: made once, read by place, and never read after its source has changed.

The file holds plain arrays one after the other, each at a multiple of 64 bytes, then a JSON description of them and its
length. It is mapped into memory, so that opening it costs nothing and the operating system keeps what is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfr_smooth import _files
from tfr_smooth.data.letor_parser import Query

# To be raised whenever the layout or what the parser makes of a line changes: older files are then made anew.
_FORMAT = 1
_ALIGNMENT = 64
_TAIL = 8  # bytes that hold the length of the description


class QueryCache:
    """The queries of some ranking files, in their order.

    Attributes:
      num_features: Width of the features.
      lengths: int64 [queries], the documents of each query.
      longest: The most documents of a query.
    """

    def __init__(self, path: Path, description: dict[str, Any]) -> None:
        def mapped(name: str) -> np.ndarray:
            kind, shape, start = description["arrays"][name]
            if 0 in shape:
                return np.zeros(shape, kind)
            return np.memmap(path, np.dtype(kind), "r", start, tuple(shape))

        self.num_features: int = description["num_features"]
        self._features, self._labels = mapped("features"), mapped("labels")
        self._starts = np.array(mapped("starts"))
        self._query_ids, self._doc_ids = mapped("query_ids"), mapped("doc_ids")
        self.lengths = np.diff(self._starts)
        self.longest = int(self.lengths.max())

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.lengths)

    def batch(self, queries: np.ndarray, list_size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the features and labels of some queries.

        Args:
          queries: int64 [batch], places of queries.
          list_size: Documents in each list; None pads to the longest of the batch.

        Returns:
          float32 [batch, list, num_features], 0 for padding, and float32 [batch, list], -1 for padding.
        """
        longest = list_size or int(self.lengths[queries].max(initial=0))
        features = np.empty((len(queries), longest, self.num_features), np.float32)
        labels = np.full((len(queries), longest), -1.0, np.float32)
        for row, query in enumerate(queries.tolist()):
            start = self._starts[query]
            length = min(self._starts[query + 1] - start, longest)
            features[row, :length] = self._features[start : start + length]
            features[row, length:] = 0.0
            labels[row, :length] = self._labels[start : start + length]
        return features, labels

    def ids(self, queries: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of some queries, [batch], and of their documents, [batch, longest], "" for padding."""
        doc_ids = np.zeros((len(queries), longest), self._doc_ids.dtype)
        for row, query in enumerate(queries.tolist()):
            start = self._starts[query]
            length = min(self._starts[query + 1] - start, longest)
            doc_ids[row, :length] = self._doc_ids[start : start + length]
        return self._query_ids[queries].astype(object), doc_ids.astype(object)


def cached_queries(
    cache_dir: str | os.PathLike[str],
    paths: Sequence[str],
    settings: dict[str, Any],
    parse: Callable[[], tuple[int, Iterable[Query]]],
) -> QueryCache:
    """Returns the queries of some files from their cache, which is made first where there is none that fits.

    Args:
      cache_dir: Folder of the cache, made if missing. It may hold those of many data sets.
      paths: The files. The cache fits as long as their sizes and times of change are what they were.
      settings: What else the result of `parse` depends on, as JSON; each has a cache of its own.
      parse: Reads the files: returns the number of features and the queries, at least one.

    A cache is written under another name first: an interrupted run leaves none. Time linear in the size of the files,
    once; memory for the labels and ids.
    """
    folder = Path(cache_dir)
    names = [os.path.abspath(path) for path in paths]
    key = hashlib.sha256(json.dumps([names, settings], sort_keys=True).encode()).hexdigest()[:16]
    path = folder / f"{Path(names[0]).name}-{key}.queries"
    sources = [[name, os.stat(name).st_size, os.stat(name).st_mtime_ns] for name in names]
    fits = {"format": _FORMAT, "sources": sources, "settings": settings}
    description = _description(path)
    if description is None or any(description.get(name) != value for name, value in fits.items()):
        folder.mkdir(parents=True, exist_ok=True)
        num_features, queries = parse()
        _files.write_bytes(path, _chunks(num_features, queries, fits))
        description = _description(path)
        assert description is not None
    return QueryCache(path, description)


def _description(path: Path) -> dict[str, Any] | None:
    """What the end of a cache says; None if it is missing, or cut short."""
    try:
        with open(path, "rb") as file:
            file.seek(-_TAIL, os.SEEK_END)
            end = file.tell()
            start = end - int.from_bytes(file.read(_TAIL), "little")
            file.seek(start)
            return json.loads(file.read(end - start))
    except (OSError, ValueError):
        return None


def _chunks(num_features: int, queries: Iterable[Query], fits: dict[str, Any]) -> Iterator[bytes]:
    """The bytes of a cache. Only the features, which are nearly all of it, go out query by query."""
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
