"""JSON lines, one object per line, as Arrow tables."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from tfr_smooth.data.column_values import value_type
from tfr_smooth.data.reading.value_types import LARGE, check_utf8

_BLOCK_BYTES = 8 << 20  # that are parsed at once
_ROW = re.compile(r",? in row (\d+)")  # in Arrow's messages


def types(files: Any, encoding: str) -> dict[str, pa.DataType]:
    """Returns the types of the columns of all files that hold the values of each. All texts are text, also dates.

    Args:
      files: A dataset of Arrow.
      encoding: The encoding of the files.

    Raises:
      ValueError: If a line is no object, or a column has values of several types (`path:line: problem`).
    """
    known: dict[str, pa.DataType] = {}
    for path in files.files:
        for line, table in _tables(files.filesystem, path, None, encoding):
            for field in table.schema:
                field = field.with_type(_of_text(field.type))
                known[field.name] = _common(f"{path}:{line}", field, known.get(field.name, field.type))
    return known


def tables(files: Any, path: str, known: Mapping[str, pa.DataType], encoding: str) -> Iterator[pa.Table]:
    """Yields the rows of a file.

    Args:
      files: A dataset of Arrow.
      path: One of its files.
      known: The columns to read and their types.
      encoding: The encoding of the file.

    Raises:
      ValueError: If a line is no object of these types (`path:line: problem`).
    """
    for _, table in _tables(files.filesystem, path, pa.schema(known), encoding):
        yield table.select([*known])


def _of_text(kind: pa.DataType) -> pa.DataType:
    """Returns the type of text for dates, which Arrow infers from text."""
    if value_type(kind) == "set":
        return pa.list_(_of_text(kind.value_type))
    return pa.string() if value_type(kind) == "date" else kind


def _common(place: str, field: pa.Field, before: pa.DataType) -> pa.DataType:
    """Returns the type that holds values of two types."""
    try:
        both = [pa.schema([field]), pa.schema([(field.name, before)])]
        return pa.unify_schemas(both, promote_options="permissive").field(field.name).type
    except pa.ArrowTypeError:
        expected = f"column {field.name!r} must have values of one type"
        raise ValueError(f"{place}: {expected}, got {field.type} in the rows from here on, {before} before") from None


def _tables(filesystem: Any, path: str, schema: pa.Schema | None, encoding: str) -> Iterator[tuple[int, pa.Table]]:
    """Yields rows with the number of their first line, counted from 1."""
    with io.BufferedReader(filesystem.open_input_stream(path)) as file:
        for first, content in _blocks(file, encoding):
            rows = content.lstrip()
            if not rows:
                continue
            first, content = first + content[: -len(rows)].count(b"\n"), rows
            check_utf8(content, path, first)
            try:
                yield first, _inferred(content) if schema is None else _parsed(content, schema)
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


def _parsed(content: bytes, schema: pa.Schema | None) -> pa.Table:
    """Returns the columns of a schema, or all with the types that Arrow infers."""
    once = json.ReadOptions(use_threads=False, block_size=len(content) + 1)
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if schema else "infer")
    return json.read_json(io.BytesIO(content), read_options=once, parse_options=options)


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
