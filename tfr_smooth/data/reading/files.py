"""Parquet, Feather, CSV and JSON lines files as `Lists` and as tables."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from typing_extensions import Unpack

from tfr_smooth import _arguments
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks, conversion, file_formats
from tfr_smooth.data.reading.text_files import FilePattern
from tfr_smooth.data.reading.value_types import Reading
from tfr_smooth.data.roles import RoleNames, Roles

if TYPE_CHECKING:
    from pyarrow import dataset as arrow_dataset

# Not tuned; benchmarks/reading.py measures the speed.
_ROWS_AT_ONCE = 1 << 17
_AHEAD = 2  # batches, to need little memory
T = TypeVar("T")


class _NotTogetherError(Exception):
    """The rows of a query are not together; its arguments are its column, the query and the size of a row in bytes."""


def read_files(
    paths: FilePattern,
    *,
    query: str,
    stack: bool = False,
    format: str | None = None,
    types: Mapping[str, str] | None = None,
    nulls: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf8",
    cache_dir: str | os.PathLike[str] | None = None,
    **roles: Unpack[RoleNames],
) -> Lists:
    r"""Returns the lists of Parquet, Feather, CSV, TSV or JSON lines files with one row per document.

    The files are read once, into a file of the cache folder that later calls in any process map into memory. So the
    lists may be larger than memory, if the rows of each query are together. Otherwise, they are sorted in memory.
    A column that only some of the files have is missing in the others. In CSV files, ids of queries and documents are
    text, and so are columns with integers with leading zeros. In JSON lines, texts are text, also if they are dates.

    Args:
      paths: A path, a glob pattern, a folder with files or hive partitions (`year=2026/`), or a list of these; also
        URIs of a file system of pyarrow (`s3://`, `gs://`, `hdfs://`).
      query: The column of query ids.
      stack: Whether to store the features as one column "features".
      format: "parquet", "feather" (Arrow IPC), "csv", "tsv" or "jsonl" (JSON lines, one object per row). None takes
        that of the ending of the (first) file, such as .parquet, .pq, .feather, .arrow, .csv, .tsv, .jsonl and .json,
        possibly followed by .gz, .bz2 or .lz4.
      types: The types of columns, by name: "number", "boolean", "text", "date" as in ISO 8601 or "date:FORMAT" as of
        `strptime`, or "id" for values as they are written. Values of other types are converted if that loses nothing.
        `Ranker.types_` has those of a training. Other columns have the type of the file; in CSV files, the
        first type that has all values.
      nulls: Words that are missing values. In columns of text, only the empty one is missing by default; in other
        columns of CSV files, also the usual ones, such as NA and null.
      delimiter: What separates the columns of CSV files. None for "," or, in TSV files, a tab.
      decimal: The decimal point of numbers in CSV files, "." or ",".
      encoding: The encoding of CSV and JSON lines files.
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
        _arguments.choice("format", format, file_formats.FORMATS)
    _arguments.boolean("stack", stack)
    reading = Reading(types=types or {}, nulls=nulls, delimiter=delimiter, decimal=decimal, encoding=encoding)
    source = _opened(paths, reading, format=format, stack=stack, query=query, **roles)
    for name in reading.types:
        _arguments.choice("types", name, source.types)
    files, chosen = source.files, source.roles
    states = [[info.path, info.size, info.mtime_ns] for info in files.filesystem.get_file_info(files.files)]
    kind = [files.format.default_extname, source.is_csv and files.format.parse_options.delimiter]
    settings = {"kind": kind, "stack": stack, "reading": dataclasses.asdict(reading)}
    final = chosen.stacked() if stack else chosen

    def convert(together: bool) -> Lists:
        tables = _streamed if together else _sorted
        return conversion.converted(cache_dir, states, settings, final, lambda: tables(source))

    return _repeated(source, convert)


def read_table(paths: FilePattern, reading: Reading | None = None, ids: Sequence[str] = ()) -> pa.Table:
    """Returns the rows of files in their order, with all columns, without the checks of `read_files`.

    Args:
      paths: As for `read_files`.
      reading: How the values are written.
      ids: Columns of ids, which are text in CSV files.

    Raises:
      ValueError: If a file cannot be read (`path:line: problem`), or a value has another type.
    """
    source = _opened(paths, reading or Reading(), ids=ids)
    return _repeated(source, lambda together: pa.concat_tables(_tables(source)))


def files_of(paths: FilePattern, reading: Reading) -> list[str]:
    """Returns the files of paths, patterns and folders."""
    return file_formats.dataset_of(paths, None, reading).files


def raw_table(paths: FilePattern, reading: Reading) -> pa.Table:
    """Returns the rows of files in their order, with all columns, and the cells of CSV files as text."""
    source = _opened(paths, reading)
    if source.is_csv:
        source.types.update(dict.fromkeys(source.types, pa.string()))
    as_written = dataclasses.replace(reading, types=dict.fromkeys(source.types, "id"), nulls=())
    table = pa.concat_tables(_tables(source._replace(reading=as_written)))
    return table.replace_schema_metadata(source.files.schema.metadata)  # such as the index of pandas


class _Source(NamedTuple):
    """Files, the types of their columns, how values are written, and what is read from them."""

    files: arrow_dataset.FileSystemDataset
    types: dict[str, pa.DataType]
    reading: Reading
    roles: Any  # `Roles`, or None for all columns, unchecked
    stack: bool

    @property
    def is_csv(self) -> bool:
        """Whether the files are text with delimiters."""
        return self.files.format.default_extname == "csv"


def _opened(
    paths: FilePattern,
    reading: Reading,
    *,
    format: str | None = None,
    stack: bool = False,
    ids: Sequence[str | None] = (),
    **roles: Any,
) -> _Source:
    """Opens files, with the columns of roles if they are given; `ids` are columns of ids."""
    files, chosen = file_formats.dataset_of(paths, format, reading), None
    types = _types(files, reading)
    if roles:
        chosen = Roles.of(list(filter(None, types)), **roles)  # CSV files of pandas have row labels named "".
        ids = (chosen.query, chosen.document_id)
    source = _Source(files, types, reading, chosen, stack)
    if source.is_csv:
        types.update((name, file_formats.ID) for name in ids if name in types)
    return source


def _repeated(source: _Source, read: Callable[[bool], T]) -> T:
    """Returns what a function reads, which is told whether the rows of a query are together; widens types for it."""
    together = True
    while True:
        try:
            return read(together)
        except file_formats.WiderError as error:
            source.types.update(error.args[0])
        except _NotTogetherError as error:
            _check_memory(source.files, *error.args)
            together = False


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


def _types(files: arrow_dataset.FileSystemDataset, reading: Reading) -> dict[str, pa.DataType]:
    """Returns the types of the columns of all files that hold the values of each; in CSV files, the first to try."""
    if files.format.default_extname == "csv":
        return file_formats.csv_types(files, reading)
    if files.format.default_extname == "json":
        return file_formats.json_types(files, reading)
    schema = files.schema
    for fragment in files.get_fragments():
        try:
            schema = pa.unify_schemas([schema, fragment.physical_schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise ValueError(f"{fragment.path}: the types must be those of {files.files[0]}: {error}") from None
    return {field.name: field.type for field in schema}


def _tables(source: _Source) -> Iterator[pa.Table]:
    """Yields the rows of the files in their order, checked if they have roles."""
    files, types, reading, roles, stack = source
    columns = [*types] if roles is None else roles.columns
    is_empty = True
    options: dict[str, Any] = {"columns": columns, "batch_size": _ROWS_AT_ONCE, "batch_readahead": _AHEAD}
    if files.format.default_extname == "parquet":
        from pyarrow import dataset as arrow_dataset

        # By default, whole row groups are read ahead.
        scan = arrow_dataset.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        options["fragment_scan_options"] = scan
    for fragment in files.get_fragments():
        first_row, size = 0, files.filesystem.get_file_info(fragment.path).size
        try:
            if files.format.default_extname == "json":
                schema = pa.schema({name: types[name] for name in columns})
                blocks = file_formats.json_blocks(files.filesystem, fragment.path, schema, reading)
                tables = (table.select(columns) for _, table in blocks)
            else:
                names = set(fragment.physical_schema.names)
                kinds = {name: pa.string() if source.is_csv and name in names else kind for name, kind in types.items()}
                batches = fragment.to_batches(schema=pa.schema(kinds), **options)
                tables = (pa.Table.from_batches([batch]) for batch in batches if len(batch))
            for table in tables:
                where = functools.partial(_where, fragment.path, first_row)
                table = file_formats.csv_converted(table, types, reading, where) if source.is_csv else table
                table = reading.typed(table, where)
                yield table if roles is None else checks.checked(table, roles, stack=stack, where=where, part=True)
                first_row += len(table)
                is_empty = False
            if source.is_csv:
                file_formats.check_csv_bytes(files, fragment.path, reading.encoding)
            if size and (left := files.filesystem.get_file_info(fragment.path).size or 0) < size:
                raise ValueError(f"{fragment.path}: has become shorter while it was read: {left} bytes of {size}")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            if source.is_csv:
                file_formats.check_csv_bytes(files, fragment.path, reading.encoding)
            raise ValueError(file_formats.described(error, fragment.path, fragment.path)) from None
    if is_empty:
        raise ValueError(f"`paths` must have at least one row, got none in {files.files}.")


def _where(path: str, first_row: int, name: str) -> checks.Where:
    return checks.Where(f"{path}: column {name!r}", first_row)


def _streamed(source: _Source) -> Iterator[pa.Table]:
    """Yields the checked rows, whose queries must be together."""
    seen: set[Any] = set()
    last = None
    for table in _tables(source):
        ids = table[source.roles.query].combine_chunks()
        starts = np.flatnonzero(np.diff(ids.dictionary_encode().indices.to_numpy(), prepend=-1))
        for query in ids.take(pa.array(starts)).to_pylist():
            if query in seen and query != last:
                raise _NotTogetherError(source.roles.query, query, table.nbytes / len(table))
            last = query
            seen.add(query)
        yield table


def _sorted(source: _Source) -> Iterator[pa.Table]:
    """Yields the checked rows by query, sorted in memory."""
    lists = Lists.of_columns(pa.concat_tables(_tables(source)).combine_chunks(), source.roles)
    for rows in np.array_split(lists.rows, lists.source.nbytes // conversion.BATCH_BYTES + 1):
        yield lists.source.take(pa.array(rows))


def _free_memory() -> int:
    """Returns the bytes of memory that programs can get without swapping."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
