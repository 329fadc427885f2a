"""Parquet, Feather and CSV files as `Lists`."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from pyarrow import dataset as arrow_dataset
from pyarrow import fs

from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.reading.conversion import BATCH_BYTES, converted
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths
from tfr_smooth.data.roles import Roles

FORMATS = ("parquet", "feather", "csv")
_ROWS_AT_ONCE = 1 << 17
_AHEAD = 2  # batches, to need little memory
_PATTERN = re.compile(r"[*?\[]")


class _NotTogetherError(Exception):
    """The rows of a query are not together; its arguments are the query and the size of a row in bytes."""


def lists_of(
    source: FilePattern,
    format: str,
    filesystem: Any,
    cache_dir: str | os.PathLike[str] | None,
    stack: bool,
    given: Mapping[str, Any],
) -> Lists:
    """Implements `Lists.from_files`; the given columns are by role."""
    files = _dataset(source, format, filesystem)
    roles = Roles.of(files.schema.names, **given)
    states = [[info.path, info.size, info.mtime_ns] for info in files.filesystem.get_file_info(files.files)]
    settings = {"kind": format, "stack": stack}
    final = roles.stacked() if stack else roles
    convert = functools.partial(converted, cache_dir, states, settings, final)
    try:
        return convert(lambda: _streamed(files, roles, stack))
    except _NotTogetherError as error:
        query_id, row_bytes = error.args
        size, free = row_bytes * files.count_rows(), _free_memory()
        if 2 * size > free:  # the rows and their sorted copy
            name = files.files[0] if len(files.files) == 1 else "*"
            raise ValueError(
                f"{files.files[0]}: column {roles.query!r} must have the rows of a query together, which those of "
                f"{query_id!r} are not, and {size / 1e9:.1f} GB are too many to sort in {free / 1e9:.1f} GB of free "
                f"memory. Sort them with DuckDB: COPY (FROM '{name}' ORDER BY \"{roles.query}\") TO 'sorted.parquet'"
            ) from None
    return convert(lambda: _sorted(files, roles, final, stack))


def _dataset(source: FilePattern, format: str, filesystem: Any) -> arrow_dataset.FileSystemDataset:
    """Opens paths, patterns and folders."""
    sources: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    paths: list[str] = []
    for each in [os.fspath(each) for each in sources]:
        if filesystem is None and "://" in each:
            filesystem, each = fs.FileSystem.from_uri(each)
        if filesystem is None:
            paths += [each] if tf.io.gfile.isdir(each) else expand_paths(each, "paths")
        else:
            paths += _matches(filesystem, each)
    try:
        found = paths[0] if len(paths) == 1 else paths
        return arrow_dataset.dataset(found, format=format, filesystem=filesystem, partitioning="hive")
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"`paths` must be readable as {format}, got {paths}: {error}") from None


def _matches(filesystem: Any, pattern: str) -> list[str]:
    """Returns the files of a file system that match a pattern."""
    if not _PATTERN.search(pattern):
        return [pattern]
    folder = pattern[: _PATTERN.search(pattern).start()].rpartition("/")[0]  # type: ignore[union-attr]
    handler = filesystem if isinstance(filesystem, fs.FileSystem) else fs.PyFileSystem(fs.FSSpecHandler(filesystem))
    infos = handler.get_file_info(fs.FileSelector(folder, recursive=True))
    found = sorted(info.path for info in infos if info.is_file and fnmatch.fnmatchcase(info.path, pattern))
    if not found:
        raise ValueError(f"`paths` must match files, got {pattern!r}, which matches none.")
    return found


def _tables(files: arrow_dataset.FileSystemDataset, roles: Roles, stack: bool) -> Iterator[pa.Table]:
    """Yields the checked rows of the files in their order."""
    found = False
    options: dict[str, Any] = {"columns": roles.columns, "batch_size": _ROWS_AT_ONCE, "batch_readahead": _AHEAD}
    if files.format.default_extname == "parquet":
        # By default, whole row groups are read ahead.
        scan = arrow_dataset.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        options["fragment_scan_options"] = scan
    for fragment in files.get_fragments():
        first_row = 0
        try:
            for batch in fragment.to_batches(schema=files.schema, **options):
                if not len(batch):
                    continue
                where = functools.partial(_where, fragment.path, first_row)
                yield checks.checked(pa.Table.from_batches([batch]), roles, stack=stack, where=where, part=True)
                first_row += len(batch)
                found = True
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"{fragment.path}: {error}") from None
    if not found:
        raise ValueError(f"`paths` must have at least one row, got none in {files.files}.")


def _where(path: str, first_row: int, name: str) -> Where:
    return Where(f"{path}: column {name!r}", first_row)


def _streamed(files: arrow_dataset.FileSystemDataset, roles: Roles, stack: bool) -> Iterator[pa.Table]:
    """Yields the checked rows, whose queries must be together."""
    seen: set[Any] = set()
    last = None
    for table in _tables(files, roles, stack):
        ids = table[roles.query].combine_chunks()
        starts = np.flatnonzero(np.diff(ids.dictionary_encode().indices.to_numpy(), prepend=-1))
        for query in ids.take(pa.array(starts)).to_pylist():
            if query in seen and query != last:
                raise _NotTogetherError(query, table.nbytes / len(table))
            last = query
            seen.add(query)
        yield table


def _sorted(files: arrow_dataset.FileSystemDataset, roles: Roles, final: Roles, stack: bool) -> Iterator[pa.Table]:
    """Yields the checked rows by query, sorted in memory."""
    lists = Lists.of_columns(pa.concat_tables(_tables(files, roles, stack)).combine_chunks(), final)
    for rows in np.array_split(lists.rows, lists.source.nbytes // BATCH_BYTES + 1):
        yield lists.source.take(pa.array(rows))


def _free_memory() -> int:
    """Returns the bytes of memory that programs can get without swapping."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
