"""Lists in a cache folder: sources are converted once, and then mapped into memory.

An entry is a folder with `documents.arrow` (the columns), `queries.arrow` (ids and lengths), and `lists.json`, which is
written last: what was converted, and the size and time of each file. Files that differ from these are written again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import mmap
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth import _files
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading.text_files import state_of
from tfr_smooth.data.roles import Roles

# Increase when the layout or the results of conversions change: older entries are then written again.
_FORMAT = 5
BATCH_BYTES = 64 << 20  # of a record batch: the memory that a conversion needs, and the size of the chunks of columns
_FILES = ("documents.arrow", "queries.arrow")
_TIME = 10**18  # in nanoseconds


def converted(
    cache_dir: str | os.PathLike[str] | None,
    sources: Sequence[Sequence[Any]],
    settings: dict[str, Any],
    roles: Roles,
    convert: Callable[[], Iterable[pa.Table]],
) -> Lists:
    """Returns the lists of files from the cache folder, which are first converted if missing, outdated or damaged.

    Args:
      cache_dir: The cache folder, created if missing. None uses that of the user.
      sources: The name, size and modification time of each file that is read. An entry is valid as long as these do not
        change.
      settings: Other settings that the result depends on, as JSON. Each combination has its own entry.
      roles: The roles of the columns.
      convert: Reads the files: returns tables of documents, with the rows of each query one after the other.

    Returns:
      The lists, memory-mapped.

    Files are first written under a temporary name, so an interruption leaves no entry. Several processes may convert at
    once: their files are the same.
    """
    names = [source[0] for source in sources]
    settings = {**settings, "roles": dataclasses.asdict(roles)}
    key = hashlib.sha256(json.dumps([names, settings], sort_keys=True).encode()).hexdigest()[:16]
    base = _files.user_cache("lists") if cache_dir is None else Path(cache_dir)
    folder = base / f"{Path(names[0]).name[:80]}-{key}"
    described = json.loads(json.dumps({"format": _FORMAT, "sources": sources, "settings": settings}))
    lists = _open(folder, described, roles)
    if lists is None:
        _write(folder, described, convert())
        lists = _open(folder, described, roles)
        if lists is None:
            raise OSError(f"{folder}: the files differ from what was just written; is another process changing them?")
    return lists


def by_size(items: Iterable[Any], most: int, size_of: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Yields consecutive items in lists of about this size."""
    some: list[Any] = []
    size = 0
    for item in items:
        some.append(item)
        size += size_of(item)
        if size >= most:
            yield some
            some, size = [], 0
    if some:
        yield some


def whole_queries(tables: Iterable[pa.Table], query: str) -> Iterator[pa.RecordBatch]:
    """Yields the rows of tables as large batches of whole queries, whose rows must be one after the other."""
    some: list[pa.Table] = []
    size = 0
    for table in tables:
        if size >= BATCH_BYTES:
            merged = pa.concat_tables(some)
            codes = merged[query].combine_chunks().dictionary_encode().indices.to_numpy()
            last = int(np.flatnonzero(np.diff(codes, prepend=-1))[-1])  # the first row of the last query
            if last:
                yield merged.slice(0, last).combine_chunks().to_batches()[0]
            some, size = [merged.slice(last)], 0
        some.append(table)
        size += table.nbytes
    yield pa.concat_tables(some).combine_chunks().to_batches()[0]


def _open(folder: Path, described: dict[str, Any], roles: Roles) -> Lists | None:
    """Returns the lists of an entry; None if it is missing, outdated or damaged."""
    if not (folder / "lists.json").exists():
        return None
    try:
        entry = json.loads((folder / "lists.json").read_bytes())
        if entry["described"] != described:
            return None
        for name in _FILES:
            if entry["files"][name] != state_of(os.fspath(folder / name))[1:]:
                raise ValueError(f"{name} is not what was written")
        documents, pages = _mapped(folder / _FILES[0])
        queries, _ = _mapped(folder / _FILES[1])
        lengths = queries["length"].to_numpy()
        if {*roles.columns} != {*documents.column_names} or len(documents) != lengths.sum() or (lengths < 1).any():
            raise ValueError(_FILES[0])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        warnings.warn(f"{folder}: the files are damaged ({error}) and are written again.", stacklevel=4)
        return None
    return Lists(documents, roles, query_ids=queries["query"].combine_chunks(), lengths=lengths, pages=pages)


def _mapped(path: Path) -> tuple[pa.Table, mmap.mmap]:
    with open(path, "rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    table = pa.ipc.open_file(pa.py_buffer(pages)).read_all()
    table.validate()
    return table, pages


def _write(folder: Path, described: dict[str, Any], tables: Iterable[pa.Table]) -> None:
    """Writes an entry."""
    folder.mkdir(parents=True, exist_ok=True)
    query = described["settings"]["roles"]["query"]
    ids, lengths = [], []
    try:
        batches = whole_queries(tables, query)
        first = next(batches)
        with _written(folder / _FILES[0], first.schema) as writer:
            for batch in itertools.chain([first], batches):
                codes = batch[query].dictionary_encode()
                ids.append(codes.dictionary)
                lengths.append(np.bincount(codes.indices.to_numpy(), minlength=len(codes.dictionary)))
                writer.write_batch(batch)
        queries = pa.table({"query": pa.concat_arrays(ids), "length": np.concatenate(lengths).astype(np.int64)})
        with _written(folder / _FILES[1], queries.schema) as writer:
            writer.write_table(queries)
        files = {name: state_of(os.fspath(folder / name))[1:] for name in _FILES}
        _files.write_text(folder / "lists.json", [json.dumps({"described": described, "files": files})])
    except BaseException:
        if not any(folder.iterdir()):
            folder.rmdir()
        raise


@contextlib.contextmanager
def _written(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatchFileWriter]:
    """Yields the writer of a file that appears whole, with the same time for each process that writes it."""
    with _files.replacing(path) as temporary:
        with pa.ipc.new_file(os.fspath(temporary), schema) as writer:
            yield writer
        os.utime(temporary, ns=(_TIME, _TIME))
