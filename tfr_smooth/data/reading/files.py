"""Parquet, Feather and CSV files as `Lists`."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from pyarrow import dataset as arrow_dataset
from pyarrow import fs
from typing_extensions import Unpack

from tfr_smooth import _arguments
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.reading.conversion import BATCH_BYTES, converted
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths
from tfr_smooth.data.roles import RoleNames, Roles

FORMATS = ("parquet", "feather", "csv")
_ROWS_AT_ONCE = 1 << 17
_AHEAD = 2  # batches, to need little memory
_PATTERN = re.compile(r"[*?\[]")


class _NotTogetherError(Exception):
    """The rows of a query are not together; its arguments are the query and the size of a row in bytes."""


def read_files(
    paths: FilePattern,
    *,
    query: str,
    stack: bool = False,
    format: str = "parquet",
    filesystem: Any = None,
    cache_dir: str | os.PathLike[str] | None = None,
    **roles: Unpack[RoleNames],
) -> Lists:
    r"""Returns the lists of Parquet, Feather or CSV files with one row per document.

    The files are read once, into a file of the cache folder that later calls in any process map into memory. So the
    lists may be larger than memory, if the rows of each query are together. Otherwise, they are sorted in memory.

    Args:
      paths: A path, a glob pattern, a folder with files or hive partitions (`year=2026/`), or a list of these; also
        URIs of a file system of pyarrow (`s3://`, `gs://`, `hdfs://`).
      query: The column of query ids.
      stack: Whether to store the features as one column "features".
      format: "parquet", "feather" (Arrow IPC) or "csv".
      filesystem: A file system of pyarrow or fsspec. None uses that of the paths.
      cache_dir: The cache folder, as for `read_letor`.
      **roles: The columns of other roles, as for `from_table`.

    Returns:
      The lists.

    Raises:
      ValueError: If an argument or value is invalid (`path: column, row`), or the rows of a query are not together
        and too many to sort.

    Time is linear in the size of the files. Memory holds about 64 MB of rows, and the query ids.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.csv"
      >>> _ = path.write_text("qid,label,bm25\n7,1,0.5\n7,0,0.1\n8,2,0.9\n")
      >>> lists = data.read_files(path, query="qid", label="label", format="csv", cache_dir=path.parent)
      >>> lists.lengths.tolist(), lists.values("bm25").tolist()
      ([2, 1], [0.5, 0.10000000149011612, 0.8999999761581421])
    """
    _arguments.choice("format", format, FORMATS)
    _arguments.boolean("stack", stack)
    files = _dataset(paths, format, filesystem)
    chosen = Roles.of(files.schema.names, query=query, **roles)
    states = [[info.path, info.size, info.mtime_ns] for info in files.filesystem.get_file_info(files.files)]
    settings = {"kind": format, "stack": stack}
    final = chosen.stacked() if stack else chosen
    convert = functools.partial(converted, cache_dir, states, settings, final)
    try:
        return convert(lambda: _streamed(files, chosen, stack))
    except _NotTogetherError as error:
        query_id, row_bytes = error.args
        size, free = row_bytes * files.count_rows(), _free_memory()
        if 2 * size > free:  # the rows and their sorted copy
            name = files.files[0] if len(files.files) == 1 else "*"
            raise ValueError(
                f"{files.files[0]}: column {chosen.query!r} must have the rows of a query together, which those of "
                f"{query_id!r} are not, and {size / 1e9:.1f} GB are too many to sort in {free / 1e9:.1f} GB of free "
                f"memory. Sort them with DuckDB: COPY (FROM '{name}' ORDER BY \"{chosen.query}\") TO 'sorted.parquet'"
            ) from None
    return convert(lambda: _sorted(files, chosen, final, stack))


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
