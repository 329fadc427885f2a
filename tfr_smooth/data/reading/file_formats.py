"""Paths, patterns, folders and file systems as datasets of Arrow, by the format of the files."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv, fs

from tfr_smooth.data.reading.text_files import FilePattern, expand_paths, file_system
from tfr_smooth.data.reading.value_types import Reading, check_utf8

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
FORMATS = sorted({*_FORMATS.values()})
_COMPRESSED = (".gz", ".bz2", ".lz4")  # that the datasets of Arrow detect
_DELIMITERS = (";", "\t", "|")
_HEAD_BYTES = 1 << 16  # of a CSV file, whose encoding is checked before Arrow reads the names
# Arrow's messages about a row of a CSV file, with its line, and the path if the first block was read.
_CSV_ERROR = re.compile(
    r"(?:CSV input source '(?P<path>.*)': Invalid: )?CSV parse error: Row #(?P<line>\d+): (?P<why>.*)"
)
_CSV_UTF8 = re.compile(r"In CSV column #(?P<number>\d+): .*invalid UTF8")


def dataset_of(source: FilePattern, format: str | None, reading: Reading) -> arrow_dataset.FileSystemDataset:
    """Opens paths, patterns and folders."""
    from pyarrow import dataset as arrow_dataset  # imports pandas if it can

    sources: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    paths = []
    for name in map(os.fspath, sources):
        filesystem, path = file_system(name)
        is_folder = filesystem.get_file_info(path).type == fs.FileType.Directory
        paths += [path] if is_folder else [file_system(match)[1] for match in expand_paths(name, "paths")]
    format = format or _format_of(paths[0], filesystem)
    kind: Any = {"jsonl": "json"}.get(format, format)
    if format in ("csv", "tsv"):
        delimiter = reading.delimiter or ("," if format == "csv" else "\t")
        options = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        encoding = csv.ReadOptions(encoding=reading.encoding)
        kind = arrow_dataset.CsvFileFormat(parse_options=options, read_options=encoding)
        with filesystem.open_input_stream(_first_file(paths[0], filesystem)) as file:
            _check_head(paths[0], file.read(_HEAD_BYTES), delimiter, reading)
    try:
        some = paths[0] if len(paths) == 1 else paths
        schema = pa.schema([]) if kind == "json" else None  # Without one, Arrow would parse the first file.
        return arrow_dataset.dataset(some, schema, format=kind, filesystem=filesystem, partitioning="hive")
    except (pa.ArrowInvalid, OSError) as error:
        what = f"`paths` must be readable as {format}, got {paths}"
        raise ValueError(described(error, what, paths[0])) from None


def described(error: Exception, what: str, path: str) -> str:
    """Returns the message of an error of Arrow: `path:line: problem` for a row of a CSV file."""
    if invalid := _CSV_UTF8.search(str(error)):
        return f"{path}: column {invalid['number']}: bytes that are not UTF-8: pass the encoding, such as 'cp1252'"
    row = _CSV_ERROR.search(str(error))
    return f"{row['path'] or path}:{row['line']}: {row['why']}" if row else f"{what}: {error}"


def _check_head(path: str, head: bytes, delimiter: str, reading: Reading) -> None:
    """Refuses the first bytes of a CSV file that has another encoding, or one column whose name has a delimiter."""
    if csv.ReadOptions().encoding == reading.encoding:
        check_utf8(head.rpartition(b"\n")[0], path)
    header = head.partition(b"\n")[0].decode(reading.encoding, "replace")
    for other in _DELIMITERS if reading.delimiter is None and delimiter not in header else ():
        if other in header:
            count = header.count(other) + 1
            raise ValueError(f"{path}: 1 column, {count} in the header by {other!r}: pass delimiter={other!r}")


def _first_file(path: str, filesystem: fs.FileSystem) -> str:
    """Returns a file, or a file in a folder."""
    if filesystem.get_file_info(path).type != fs.FileType.Directory:
        return path
    infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    return next((info.path for info in infos if info.is_file and info.extension in _FORMATS), path)


def _format_of(path: str, filesystem: fs.FileSystem) -> str:
    """Returns the format of a file by its ending, or of a file in a folder."""
    path = _first_file(path, filesystem)
    root, ending = os.path.splitext(path)
    ending = os.path.splitext(root)[1] if ending in _COMPRESSED else ending
    if ending[1:] not in _FORMATS:
        others = "`read_letor` reads LETOR text, and `from_table` takes what pandas reads of other files"
        raise ValueError(f"`format` must be one of {FORMATS} for {path}, got None; {others}.")
    return _FORMATS[ending[1:]]
