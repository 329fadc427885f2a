"""Parquet, Feather and CSV files as `Lists`."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv, fs
from typing_extensions import Unpack

from tfr_smooth import _arguments
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks, csv_types
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.reading.conversion import BATCH_BYTES, converted
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths
from tfr_smooth.data.roles import RoleNames, Roles

if TYPE_CHECKING:
    from pyarrow import dataset as arrow_dataset

# By the ending of a file.
_FORMATS = {
    "pq": "parquet",
    "arrow": "feather",
    "ipc": "feather",
    **{name: name for name in ("parquet", "feather", "csv", "tsv")},
}
_COMPRESSED = (".gz", ".bz2", ".lz4")  # that the datasets of Arrow detect
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
    format: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    **roles: Unpack[RoleNames],
) -> Lists:
    r"""Returns the lists of Parquet, Feather, CSV or TSV files with one row per document.

    The files are read once, into a file of the cache folder that later calls in any process map into memory. So the
    lists may be larger than memory, if the rows of each query are together. Otherwise, they are sorted in memory.
    A column that only some of the files have is missing in the others. In CSV files, ids of queries and documents are
    text, and so are columns with integers of more than 64 bits or leading zeros.

    Args:
      paths: A path, a glob pattern, a folder with files or hive partitions (`year=2026/`), or a list of these; also
        URIs of a file system of pyarrow (`s3://`, `gs://`, `hdfs://`).
      query: The column of query ids.
      stack: Whether to store the features as one column "features".
      format: "parquet", "feather" (Arrow IPC), "csv" or "tsv". None takes that of the ending of the (first) file, such
        as .parquet, .pq, .feather, .arrow, .csv and .tsv, possibly followed by .gz, .bz2 or .lz4.
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
      >>> lists = data.read_files(path, query="qid", label="label", cache_dir=path.parent)
      >>> lists.lengths.tolist(), lists.values("bm25").tolist()
      ([2, 1], [0.5, 0.10000000149011612, 0.8999999761581421])
    """
    if format is not None:
        _arguments.choice("format", format, sorted({*_FORMATS.values()}))
    _arguments.boolean("stack", stack)
    files = _dataset(paths, format)
    is_csv = files.format.default_extname == "csv"
    types = csv_types.initial(files) if is_csv else _types(files)
    chosen = Roles.of(list(filter(None, types)), query=query, **roles)  # CSV files of pandas have row labels named "".
    types.update((name, csv_types.ID) for name in (chosen.query, chosen.document_id) if is_csv and name is not None)
    states = [[info.path, info.size, info.mtime_ns] for info in files.filesystem.get_file_info(files.files)]
    settings = {"kind": [files.format.default_extname, is_csv and files.format.parse_options.delimiter], "stack": stack}
    final = chosen.stacked() if stack else chosen
    tables = _streamed
    while True:
        try:
            return converted(cache_dir, states, settings, final, lambda: tables(_Source(files, types, chosen, stack)))  # noqa: B023
        except csv_types.WiderError as error:
            types.update(error.args[0])
        except _NotTogetherError as error:
            _check_memory(files, chosen.query, *error.args)
            tables = _sorted


class _Source(NamedTuple):
    """Files, the types of their columns, and what is read from them."""

    files: arrow_dataset.FileSystemDataset
    types: dict[str, pa.DataType]
    roles: Roles
    stack: bool


def _check_memory(files: arrow_dataset.FileSystemDataset, query: str, query_id: Any, row_bytes: float) -> None:
    """Checks that the rows can be sorted in memory."""
    size, free = row_bytes * files.count_rows(), _free_memory()
    if 2 * size > free:  # the rows and their sorted copy
        name = files.files[0] if len(files.files) == 1 else "*"
        raise ValueError(
            f"{files.files[0]}: column {query!r} must have the rows of a query together, which those of "
            f"{query_id!r} are not, and {size / 1e9:.1f} GB are too many to sort in {free / 1e9:.1f} GB of free "
            f"memory. Sort them with DuckDB: COPY (FROM '{name}' ORDER BY \"{query}\") TO 'sorted.parquet'"
        )


def _types(files: arrow_dataset.FileSystemDataset) -> dict[str, pa.DataType]:
    """Returns the types of the columns of all files that hold the values of each."""
    schema = files.schema
    for fragment in files.get_fragments():
        try:
            schema = pa.unify_schemas([schema, fragment.physical_schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise ValueError(f"{fragment.path}: the types must be those of {files.files[0]}: {error}") from None
    return {field.name: field.type for field in schema}


def _dataset(source: FilePattern, format: str | None) -> arrow_dataset.FileSystemDataset:
    """Opens paths, patterns and folders."""
    from pyarrow import dataset as arrow_dataset  # imports pandas if it can

    sources: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    filesystem, paths = fs.LocalFileSystem(), []
    for path in [os.fspath(path) for path in sources]:
        if "://" in path:
            filesystem, path = fs.FileSystem.from_uri(path)
            paths += _matches(filesystem, path)
        else:
            paths += [path] if os.path.isdir(path) else expand_paths(path, "paths")
    format = format or _format_of(paths[0], filesystem)
    tabs = csv.ParseOptions(delimiter="\t")
    kind = arrow_dataset.CsvFileFormat(parse_options=tabs) if format == "tsv" else format
    try:
        some = paths[0] if len(paths) == 1 else paths
        return arrow_dataset.dataset(some, format=kind, filesystem=filesystem, partitioning="hive")
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"`paths` must be readable as {format}, got {paths}: {error}") from None


def _format_of(path: str, filesystem: fs.FileSystem) -> str:
    """Returns the format of a file by its ending, or of a file in a folder."""
    if filesystem.get_file_info(path).type == fs.FileType.Directory:
        infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        path = next((info.path for info in infos if info.is_file and info.extension in _FORMATS), path)
    root, ending = os.path.splitext(path)
    ending = os.path.splitext(root)[1] if ending in _COMPRESSED else ending
    if ending[1:] not in _FORMATS:
        expected = f"one of {sorted({*_FORMATS.values()})} for {path}"
        raise ValueError(f"`format` must be {expected}, got None; `from_table` takes what pandas reads of other files.")
    return _FORMATS[ending[1:]]


def _matches(filesystem: fs.FileSystem, pattern: str) -> list[str]:
    """Returns the files of a file system that match a pattern."""
    if not _PATTERN.search(pattern):
        return [pattern]
    folder = pattern[: _PATTERN.search(pattern).start()].rpartition("/")[0]  # type: ignore[union-attr]
    infos = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    matches = sorted(info.path for info in infos if info.is_file and fnmatch.fnmatchcase(info.path, pattern))
    if not matches:
        raise ValueError(f"`paths` must match files, got {pattern!r}, which matches none.")
    return matches


def _tables(source: _Source) -> Iterator[pa.Table]:
    """Yields the checked rows of the files in their order."""
    files, types, roles, stack = source
    is_empty = True
    options: dict[str, Any] = {"columns": roles.columns, "batch_size": _ROWS_AT_ONCE, "batch_readahead": _AHEAD}
    if files.format.default_extname == "parquet":
        from pyarrow import dataset as arrow_dataset

        # By default, whole row groups are read ahead.
        scan = arrow_dataset.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        options["fragment_scan_options"] = scan
    is_csv = files.format.default_extname == "csv"
    for fragment in files.get_fragments():
        names = set(fragment.physical_schema.names)
        schema = pa.schema({name: pa.string() if is_csv and name in names else kind for name, kind in types.items()})
        first_row = 0
        try:
            for batch in fragment.to_batches(schema=schema, **options):
                if not len(batch):
                    continue
                where = functools.partial(_where, fragment.path, first_row)
                table = pa.Table.from_batches([batch])
                table = csv_types.converted(table, types, where) if is_csv else table
                yield checks.checked(table, roles, stack=stack, where=where, part=True)
                first_row += len(batch)
                is_empty = False
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"{fragment.path}: {error}") from None
    if is_empty:
        raise ValueError(f"`paths` must have at least one row, got none in {files.files}.")


def _where(path: str, first_row: int, name: str) -> Where:
    return Where(f"{path}: column {name!r}", first_row)


def _streamed(source: _Source) -> Iterator[pa.Table]:
    """Yields the checked rows, whose queries must be together."""
    seen: set[Any] = set()
    last = None
    for table in _tables(source):
        ids = table[source.roles.query].combine_chunks()
        starts = np.flatnonzero(np.diff(ids.dictionary_encode().indices.to_numpy(), prepend=-1))
        for query in ids.take(pa.array(starts)).to_pylist():
            if query in seen and query != last:
                raise _NotTogetherError(query, table.nbytes / len(table))
            last = query
            seen.add(query)
        yield table


def _sorted(source: _Source) -> Iterator[pa.Table]:
    """Yields the checked rows by query, sorted in memory."""
    lists = Lists.of_columns(pa.concat_tables(_tables(source)).combine_chunks(), source.roles)
    for rows in np.array_split(lists.rows, lists.source.nbytes // BATCH_BYTES + 1):
        yield lists.source.take(pa.array(rows))


def _free_memory() -> int:
    """Returns the bytes of memory that programs can get without swapping."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
