"""Paths, patterns and folders as datasets of Arrow; the types and rows of CSV and JSON lines files.

The columns of CSV files are read as text. They have the first type that holds all values without loss.
"""

from __future__ import annotations

import codecs
import contextlib
import csv as text_csv
import functools
import io
import json as std_json
import os
import re
from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, fs, json

from tfr_smooth.data.column_values import value_type, without
from tfr_smooth.data.reading.checks import Where, refuse
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths, file_system, is_folder
from tfr_smooth.data.reading.value_types import LARGE, Reading, check_utf8, known_words

if TYPE_CHECKING:
    from pyarrow import dataset as arrow_dataset  # which imports pandas if it can

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
ID = pa.large_string()  # the type of ids; other text is `pa.string()`
_SECONDS, _NANOSECONDS = pa.timestamp("s"), pa.timestamp("ns")
# The types to try where values do not have a type; then, they are text.
_NEXT: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.null(): (pa.int64(), pa.bool_(), pa.date32(), _SECONDS, _NANOSECONDS, pa.float64()),
    pa.int64(): (pa.float64(),),
    LARGE: (pa.float64(),),
    pa.date32(): (_SECONDS, _NANOSECONDS),
    _SECONDS: (_NANOSECONDS,),
}
_SAMPLED = 2**6  # texts that are converted first; not tuned
_NO_NUMBER = r"^[+-]?0[\dxX]"  # leading zeros, and hexadecimal digits, which Arrow takes for numbers
_NUMBER, _COMMA = r"^[+-]?[\d.,]+$", r"^[+-]?[\d.]*\d,\d+$"
_BLOCK_BYTES = 8 << 20  # that are parsed at once; not tuned
_ROW = re.compile(r",? in row (\d+)")  # in Arrow's messages
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DEEPEST = 500  # brackets in brackets: Arrow ends the process for some thousand


def dataset_of(source: FilePattern, format: str | None, reading: Reading) -> arrow_dataset.FileSystemDataset:
    """Opens paths, patterns and folders."""
    from pyarrow import dataset as arrow_dataset  # imports pandas if it can

    sources: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    paths = []
    for name in map(os.fspath, sources):
        filesystem, path = file_system(name)
        found = [name] if is_folder(filesystem, path) else expand_paths(name, "paths")
        paths += [file_system(match)[1] for match in found]
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
    if not head.strip():
        raise ValueError(f"{path}: expected the names of the columns, got an empty file")
    names = next(text_csv.reader([header.rstrip("\r")], delimiter=delimiter))
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path}:1: column {min(twice)!r} must have a name of its own, got it twice")
    for other in _DELIMITERS if reading.delimiter is None and delimiter not in header else ():
        if other in header:
            count = header.count(other) + 1
            raise ValueError(f"{path}: 1 column, {count} in the header by {other!r}: pass delimiter={other!r}")


def check_csv_bytes(files: Any, path: str, encoding: str) -> None:
    """Refuses a file of the dataset that ends within quotes, whose rows from there on are one value, or has NUL bytes.

    As in Arrow, a quote at the start of a value opens it, and two quotes in it are one.
    """
    delimiter = re.escape(files.format.parse_options.delimiter.encode())
    quoted = re.compile(rb"(?<![^\n\r" + delimiter + rb'])"[^"]*(?:""[^"]*)*("?)')
    is_open = 0  # or the line of the quote
    with io.BufferedReader(files.filesystem.open_input_stream(path)) as file:
        for first, content in _blocks(file, encoding):
            if (place := content.find(0)) >= 0:
                line = first + content.count(b"\n", 0, place)
                raise ValueError(f"{path}:{line}: expected text, got a NUL byte")
            # A value that is open goes on.
            for value in quoted.finditer(b'"' + content if is_open else content):
                is_open = 0 if value[1] else is_open or first + content.count(b"\n", 0, value.start())
    if is_open:
        raise ValueError(f"{path}:{is_open}: expected a quote that is closed, got one up to the end of the file")


def _first_file(path: str, filesystem: fs.FileSystem) -> str:
    """Returns a file, or a file in a folder."""
    if not is_folder(filesystem, path):
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


class WiderError(Exception):
    """Values need other types than those before; its argument is the types by column."""


def csv_types(files: arrow_dataset.FileSystemDataset, reading: Reading) -> dict[str, pa.DataType]:
    """Returns the columns of all files and folders, those of files with the first type to try; text, if it is given."""
    types = {field.name: field.type for field in files.schema}
    for fragment in files.get_fragments():
        names = fragment.physical_schema.names
        types.update((name, pa.string() if name in reading.types else pa.null()) for name in names)
    return types


def csv_converted(
    table: pa.Table, types: dict[str, pa.DataType], reading: Reading, where: Callable[[str], Where]
) -> pa.Table:
    """Returns a table of text in the given types.

    Args:
      table: The table. Columns of another type than text are left as they are.
      types: The types by column.
      reading: How the values are written.
      where: Describes a column by its name, for messages.

    Raises:
      WiderError: If values do not have the type of their column.
      ValueError: If a column has numbers with decimal commas.
    """
    columns, wider = {}, {}
    for name, texts in zip(table.column_names, table.columns, strict=True):
        columns[name] = _of_text(texts, types[name], reading) if pa.types.is_string(texts.type) else texts
        if columns[name] is None:
            wider[name] = _wider(texts, types[name], reading)
        elif pa.types.is_string(types[name]) and name not in reading.types and reading.decimal == ".":
            _check_commas(where(name), texts)
    if wider:
        raise WiderError(wider)
    return pa.table(columns)


def _wider(texts: Any, kind: pa.DataType, reading: Reading) -> pa.DataType:
    """Returns the next type that holds the values; float64 only if it has all digits of integers."""
    known = known_words(texts, reading.nulls)
    whole, large = (pc.match_substring_regex(known, pattern) for pattern in (r"^[+-]?\d{1,75}$", r"^[+-]?\d{17,}$"))
    if pc.any(large).as_py() and pc.all(whole).as_py() and kind not in (pa.float64(), LARGE):
        return next((kind for kind in (pa.int64(), LARGE) if _of_text(texts, kind, reading) is not None), pa.string())
    parts = (texts[:_SAMPLED], texts)  # Arrow looks at all values, also after one that it cannot convert.
    others = _NEXT.get(kind, ())
    fits = (other for other in others if all(_of_text(part, other, reading) is not None for part in parts))
    return next(fits, pa.string())


def _of_text(texts: Any, kind: pa.DataType, reading: Reading) -> Any:
    """Returns the values of texts; None if they do not have this type, or if it would lose digits."""
    if pa.types.is_string(kind):
        return texts
    if kind == ID:
        trimmed = pc.utf8_trim_whitespace(texts)
        return without(trimmed, pc.equal(trimmed, ""))
    known = known_words(texts, reading.nulls, reading.decimal if kind == pa.float64() else ".")
    if kind in (pa.int64(), pa.float64(), LARGE) and pc.any(pc.match_substring_regex(known, _NO_NUMBER)).as_py():
        return None
    try:
        return known.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # Nothing can be cast to the type of missing values.
        return pa.nulls(len(known)) if kind == pa.null() and known.null_count == len(known) else None


def _check_commas(where: Where, texts: Any) -> None:
    """Refuses a column of numbers some of which have decimal commas."""
    known = known_words(texts)
    row = pc.index(pc.match_substring_regex(known, _COMMA), True).as_py()
    has_points = pc.any(pc.match_substring_regex(known, r",\d+\.")).as_py()  # commas separate thousands
    if row >= 0 and not has_points and pc.all(pc.match_substring_regex(known, _NUMBER)).as_py():
        hint = "numbers with decimal points (pass decimal=',' if these are decimals, or the type 'text' in `types`)"
        refuse(where, hint, texts[row], row)


def json_types(files: Any, reading: Reading) -> dict[str, pa.DataType]:
    """Returns the types of the columns of all files that hold the values of each. All texts are text, also dates.

    Args:
      files: A dataset of Arrow.
      reading: How values are written; values of several types are text in a column of which it knows the type.

    Raises:
      ValueError: If a line is no object, or a column has values of several types (`path:line: problem`).
    """
    known: dict[str, pa.DataType] = {}
    for path in files.files:
        for line, table in json_blocks(files.filesystem, path, None, reading):
            for field in table.schema:
                field = field.with_type(_text_for_dates(field.type))
                try:
                    known[field.name] = _common(f"{path}:{line}", field, known.get(field.name, field.type))
                except ValueError:
                    if field.name not in reading.types:
                        raise
                    known[field.name] = pa.string()
    return known


def _text_for_dates(kind: pa.DataType) -> pa.DataType:
    """Returns the type of text for dates, which Arrow infers from text."""
    if value_type(kind) == "set":
        return pa.list_(_text_for_dates(kind.value_type))
    return pa.string() if value_type(kind) == "date" else kind


def _common(place: str, field: pa.Field, before: pa.DataType) -> pa.DataType:
    """Returns the type that holds values of two types."""
    try:
        both = [pa.schema([field]), pa.schema([(field.name, before)])]
        return pa.unify_schemas(both, promote_options="permissive").field(field.name).type
    except pa.ArrowTypeError:
        expected = f"column {field.name!r} must have values of one type"
        raise ValueError(f"{place}: {expected}, got {field.type} in the rows from here on, {before} before") from None


def json_blocks(
    filesystem: Any, path: str, schema: pa.Schema | None, reading: Reading
) -> Iterator[tuple[int, pa.Table]]:
    """Yields the rows of a JSON Lines file, with the number of their first line, counted from 1.

    Raises:
      ValueError: If a line is no object of the types of the schema (`path:line: problem`).
    """
    with io.BufferedReader(filesystem.open_input_stream(path)) as file:
        for first, content in _blocks(file, reading.encoding):
            rows = content.lstrip()
            if not rows:
                continue
            first, content = first + content[: -len(rows)].count(b"\n"), rows
            check_utf8(content, path, first)
            _check_depth(content, path, first)
            parsed = _inferred if schema is None else functools.partial(_parsed, schema=schema)
            texts = reading.types if schema is None else {field.name for field in schema if field.type == pa.string()}
            try:
                try:
                    table = parsed(content)
                except pa.ArrowInvalid:
                    table = parsed(_with_texts(content, texts))
                yield first, table
            except pa.ArrowInvalid as error:
                lines = [number for number, line in enumerate(content.splitlines(), first) if line.strip()]
                row = _ROW.search(str(error))
                place = lines[min(int(row[1]), len(lines) - 1)] if row else lines[0]
                why = _ROW.sub("", str(error)).replace("Column() changed from object to", "expected an object, got an")
                raise ValueError(f"{path}:{place}: {why}") from None


def _blocks(file: io.BufferedReader, encoding: str) -> Iterator[tuple[int, bytes]]:
    """Yields blocks of whole lines in UTF-8, and the number of their first line."""
    number, is_utf8 = 1, codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    source: Any = file if is_utf8 else io.TextIOWrapper(file, encoding, newline="")
    while block := source.read(_BLOCK_BYTES):
        block += source.readline()
        content = (block if is_utf8 else block.encode()).removeprefix(codecs.BOM_UTF8 if number == 1 else b"")
        yield number, content
        number += content.count(b"\n")


def _check_depth(content: bytes, path: str, first: int) -> None:
    """Checks that brackets are not nested deeper than Arrow can read; those in texts count, too."""

    def depth(part: bytes) -> int:
        brackets = np.frombuffer(part.translate(None, _NO_BRACKETS), np.uint8)
        return int(np.cumsum(np.where(np.isin(brackets, [*b"[{"]), 1, -1)).max(initial=0))

    if depth(content) > _DEEPEST:
        for number, line in enumerate(content.splitlines(), first):
            if depth(line) > _DEEPEST:
                got = f"more than {_DEEPEST} nested brackets"
                raise ValueError(f"{path}:{number}: expected values and lists, got {got}")


def _parsed(content: bytes, schema: pa.Schema | None) -> pa.Table:
    """Returns the columns of a schema, or all with the types that Arrow infers."""
    once = json.ReadOptions(use_threads=False, block_size=len(content) + 1)
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if schema else "infer")
    return json.read_json(io.BytesIO(content), read_options=once, parse_options=options)


def _with_texts(content: bytes, names: Container[str]) -> bytes:
    """Returns JSON lines with the values of some columns as text, or the same if a line is no object."""
    with contextlib.suppress(ValueError, AttributeError):
        rows = [std_json.loads(line) for line in content.splitlines() if line.strip()]
        for row in rows:
            for name, value in row.items():
                if name in names and isinstance(value, (bool, int, float)):
                    row[name] = std_json.dumps(value)
        return "\n".join(map(std_json.dumps, rows)).encode()
    return content


def _inferred(content: bytes) -> pa.Table:
    """Returns all columns. Arrow takes integers beyond 64 bits for numbers with a fraction, which lose digits."""
    table = _parsed(content, None)
    for place, field in enumerate(table.schema):
        is_list = value_type(field.type) == "set"
        if pa.types.is_floating(field.type.value_type if is_list else field.type):
            numbers = pc.list_flatten(table[place]) if is_list else table[place]
            if (pc.max(pc.abs(numbers)).as_py() or 0.0) >= 2.0**63:
                with contextlib.suppress(pa.ArrowInvalid):  # a value has a fraction
                    exact = _parsed(content, pa.schema([(field.name, pa.list_(LARGE) if is_list else LARGE)]))
                    table = table.set_column(place, field.name, exact[field.name])
    return table
