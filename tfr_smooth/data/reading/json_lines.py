"""JSON lines, one object per line, as Arrow tables."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import json

from tfr_smooth.data.reading.conversion import by_size

_BLOCK_BYTES = 8 << 20  # that are parsed at once
_ROW = re.compile(r",? in row (\d+)")  # in Arrow's messages
_LONG = re.compile(rb":\s*-?\d{19}")  # an integer that may need more than 64 bits


def types(files: Any) -> dict[str, pa.DataType]:
    """Returns the types of the columns of all files that hold the values of each.

    Args:
      files: A dataset of Arrow.

    Raises:
      ValueError: If a line is no object, or a column has values of several types (`path:line: problem`).
    """
    known: dict[str, pa.DataType] = {}
    for path in files.files:
        for line, table in _tables(files.filesystem, path, None):
            for field in table.schema:
                known[field.name] = _common(f"{path}:{line}", field, known.get(field.name, field.type))
    return known


def tables(files: Any, path: str, known: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
    """Yields the rows of a file.

    Args:
      files: A dataset of Arrow.
      path: One of its files.
      known: The columns to read and their types.

    Raises:
      ValueError: If a line is no object of these types (`path:line: problem`).
    """
    for _, table in _tables(files.filesystem, path, pa.schema(known)):
        yield table.select([*known])


def _common(place: str, field: pa.Field, before: pa.DataType) -> pa.DataType:
    """Returns the type that holds values of two types."""
    kinds = {before, field.type}
    if len(kinds) == 2 and pa.string() in kinds and any(map(pa.types.is_timestamp, kinds)):
        return pa.string()  # text that looks like dates for many rows
    try:
        both = [pa.schema([field]), pa.schema([(field.name, before)])]
        return pa.unify_schemas(both, promote_options="permissive").field(field.name).type
    except pa.ArrowTypeError:
        expected = f"column {field.name!r} must have values of one type"
        raise ValueError(f"{place}: {expected}, got {field.type} in the rows from here on, {before} before") from None


def _tables(filesystem: Any, path: str, schema: pa.Schema | None) -> Iterator[tuple[int, pa.Table]]:
    """Yields rows with the number of their first line, counted from 1."""
    with io.BufferedReader(filesystem.open_input_stream(path)) as file:
        for block in by_size(enumerate(file, start=1), _BLOCK_BYTES, lambda line: len(line[1])):
            content = b"".join(line for _, line in block).removeprefix(codecs.BOM_UTF8)
            if not content.strip():
                continue
            try:
                yield block[0][0], _inferred(content) if schema is None else _parsed(content, schema)
            except pa.ArrowInvalid as error:
                lines = [number for number, line in block if line.strip()]
                row = _ROW.search(str(error))
                place = lines[min(int(row[1]), len(lines) - 1)] if row else lines[0]
                raise ValueError(f"{path}:{place}: {_ROW.sub('', str(error))}") from None


def _parsed(content: bytes, schema: pa.Schema | None) -> pa.Table:
    """Returns the columns of a schema, or all with the types that Arrow infers."""
    once = json.ReadOptions(use_threads=False, block_size=len(content) + 1)
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if schema else "infer")
    return json.read_json(io.BytesIO(content), read_options=once, parse_options=options)


def _inferred(content: bytes) -> pa.Table:
    """Returns all columns. Arrow takes integers beyond 64 bits for numbers with a fraction, which lose digits."""
    table = _parsed(content, None)
    if _LONG.search(content):
        for place, field in enumerate(table.schema):
            if pa.types.is_floating(field.type):
                with contextlib.suppress(pa.ArrowInvalid):  # a value has a fraction
                    exact = _parsed(content, pa.schema([(field.name, pa.decimal128(38, 0))]))
                    table = table.set_column(place, field.name, exact[field.name])
    return table
