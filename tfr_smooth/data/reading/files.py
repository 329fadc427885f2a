"""Parquet, Feather, CSV and JSON lines files as `Lists` and as tables."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv, fs
from typing_extensions import Unpack

from tfr_smooth import _arguments
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks, csv_types, json_lines
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.reading.conversion import BATCH_BYTES, converted, whole_queries
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths
from tfr_smooth.data.roles import RoleNames, Roles

if TYPE_CHECKING:
    from pyarrow import dataset as arrow_dataset

# By the ending of a file.
_FORMATS = {
    "pq": "parquet",
    "arrow": "feather",
    "ipc": "feather",
    "json": "jsonl",
    **{name: name for name in ("parquet", "feather", "csv", "tsv", "jsonl")},
}
_COMPRESSED = (".gz", ".bz2", ".lz4")  # that the datasets of Arrow detect
_ROWS_AT_ONCE = 1 << 17
_AHEAD = 2  # batches, to need little memory
_PATTERN = re.compile(r"[*?\[]")
# Arrow's messages about a row of a CSV file, with its line, and the path if the first block was read.
_CSV_ERROR = re.compile(
    r"(?:CSV input source '(?P<path>.*)': Invalid: )?CSV parse error: Row #(?P<line>\d+): (?P<why>.*)"
)


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
    r"""Returns the lists of Parquet, Feather, CSV, TSV or JSON lines files with one row per document.

    The files are read once, into a file of the cache folder that later calls in any process map into memory. So the
    lists may be larger than memory, if the rows of each query are together. Otherwise, they are sorted in memory.
    A column that only some of the files have is missing in the others. In CSV files, ids of queries and documents are
    text, and so are columns with integers of more than 64 bits or leading zeros.

    Args:
      paths: A path, a glob pattern, a folder with files or hive partitions (`year=2026/`), or a list of these; also
        URIs of a file system of pyarrow (`s3://`, `gs://`, `hdfs://`).
      query: The column of query ids.
      stack: Whether to store the features as one column "features".
      format: "parquet", "feather" (Arrow IPC), "csv", "tsv" or "jsonl" (JSON lines, one object per row). None takes
        that of the ending of the (first) file, such as .parquet, .pq, .feather, .arrow, .csv, .tsv, .jsonl and .json,
        possibly followed by .gz, .bz2 or .lz4.
      cache_dir: The cache folder, as for `read_letor`.
      **roles: The columns of other roles, as for `from_table`.

    Returns:
      The lists.

    Raises:
      ValueError: If an argument or value is invalid (`path: column, row`), a line is not CSV or JSON (`path:line:
        problem`), or the rows of a query are not together and too many to sort.

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
    types = _types(files)
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


def read_table(paths: FilePattern) -> pa.Table:
    """Returns the rows of files in their order, with all columns, without the checks of `read_files`.

    Args:
      paths: As for `read_files`.

    Raises:
      ValueError: If a file cannot be read (`path:line: problem`).
    """
    files = _dataset(paths, None)
    types = _types(files)
    while True:
        try:
            return pa.concat_tables(_parts(files, types, [*types], lambda table, where: table))
        except csv_types.WiderError as error:
            types.update(error.args[0])


def files_of(paths: FilePattern) -> list[str]:
    """Returns the files of paths, patterns and folders."""
    return _dataset(paths, None).files


def raw_tables(paths: FilePattern) -> Iterator[pa.Table]:
    """Yields the rows of files in their order, with all columns, and the cells of CSV files as text."""
    files = _dataset(paths, None)
    types = _types(files)
    if files.format.default_extname == "csv":
        types = dict.fromkeys(types, pa.string())
    metadata = files.schema.metadata  # such as the index of pandas
    return _parts(files, types, [*types], lambda table, where: table.replace_schema_metadata(metadata))


def by_queries(
    paths: FilePattern, function: Callable[[pa.Table], pa.Table], *, query: str, features: Sequence[str] | None
) -> pa.Table:
    """Returns what a function gives for the rows of files, in their order.

    The rows are read in parts of whole queries, or all at once if those of a query are not together.

    Args:
      paths: As for `read_files`.
      function: Takes checked rows, with the query and the features, and returns as many.
      query: The column of query ids.
      features: The feature columns, or None for all.

    Raises:
      ValueError: As for `read_files`.
    """
    files = _dataset(paths, None)
    types = _types(files)
    roles = Roles.of(list(filter(None, types)), query=query, label=None, features=features)
    if files.format.default_extname == "csv":
        types[query] = csv_types.ID
    together = True
    while True:
        source = _Source(files, types, roles, False)
        try:
            if not together:
                return function(pa.concat_tables(_tables(source)))
            parts = whole_queries(_streamed(source), query)
            return pa.concat_tables(function(pa.Table.from_batches([part])) for part in parts)
        except csv_types.WiderError as error:
            types.update(error.args[0])
        except _NotTogetherError as error:
            _check_memory(files, query, *error.args)
            together = False


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
    """Returns the types of the columns of all files that hold the values of each; in CSV files, the first to try."""
    if files.format.default_extname == "csv":
        return csv_types.initial(files)
    if files.format.default_extname == "json":
        return json_lines.types(files)
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
    kind: Any = {"jsonl": "json"}.get(format, format)
    if format in ("csv", "tsv"):
        options = csv.ParseOptions(delimiter="," if format == "csv" else "\t", newlines_in_values=True)
        kind = arrow_dataset.CsvFileFormat(parse_options=options)
    try:
        some = paths[0] if len(paths) == 1 else paths
        schema = pa.schema([]) if kind == "json" else None  # Without one, Arrow would parse the first file.
        return arrow_dataset.dataset(some, schema, format=kind, filesystem=filesystem, partitioning="hive")
    except (pa.ArrowInvalid, OSError) as error:
        what = f"`paths` must be readable as {format}, got {paths}"
        raise ValueError(_described(error, what, paths[0])) from None


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
    check = functools.partial(checks.checked, roles=roles, stack=stack, part=True)
    return _parts(files, types, roles.columns, check)


def _parts(
    files: arrow_dataset.FileSystemDataset,
    types: dict[str, pa.DataType],
    columns: Sequence[str],
    check: Callable[..., pa.Table],
) -> Iterator[pa.Table]:
    """Yields what `check` returns for the rows of the files in their order, and for what names their columns."""
    is_empty = True
    options: dict[str, Any] = {"columns": columns, "batch_size": _ROWS_AT_ONCE, "batch_readahead": _AHEAD}
    if files.format.default_extname == "parquet":
        from pyarrow import dataset as arrow_dataset

        # By default, whole row groups are read ahead.
        scan = arrow_dataset.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        options["fragment_scan_options"] = scan
    is_csv, is_json = (files.format.default_extname == name for name in ("csv", "json"))
    for fragment in files.get_fragments():
        first_row = 0
        try:
            if is_json:
                tables = json_lines.tables(files, fragment.path, {name: types[name] for name in columns})
            else:
                names = set(fragment.physical_schema.names)
                kinds = {name: pa.string() if is_csv and name in names else kind for name, kind in types.items()}
                batches = fragment.to_batches(schema=pa.schema(kinds), **options)
                tables = (pa.Table.from_batches([batch]) for batch in batches if len(batch))
            for table in tables:
                where = functools.partial(_where, fragment.path, first_row)
                yield check(csv_types.converted(table, types, where) if is_csv else table, where=where)
                first_row += len(table)
                is_empty = False
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(_described(error, fragment.path, fragment.path)) from None
    if is_empty:
        raise ValueError(f"`paths` must have at least one row, got none in {files.files}.")


def _described(error: Exception, what: str, path: str) -> str:
    """Returns the message of an error of Arrow: `path:line: problem` for a row of a CSV file."""
    row = _CSV_ERROR.search(str(error))
    return f"{row['path'] or path}:{row['line']}: {row['why']}" if row else f"{what}: {error}"


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
