"""JSON lines, one object per line, as Arrow tables."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator, Mapping
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
    handling = "ignore" if schema else "infer"
    with io.BufferedReader(filesystem.open_input_stream(path)) as file:
        for block in by_size(enumerate(file, start=1), _BLOCK_BYTES, lambda line: len(line[1])):
            content = b"".join(line for _, line in block).removeprefix(codecs.BOM_UTF8)
            if not content.strip():
                continue
            once = json.ReadOptions(use_threads=False, block_size=len(content) + 1)

            def parse(schema: pa.Schema | None, content: bytes = content, once: json.ReadOptions = once) -> pa.Table:
                options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=handling)
                return json.read_json(io.BytesIO(content), read_options=once, parse_options=options)

            try:
                table = parse(schema)
                if schema is None and _LONG.search(content):
                    table = parse(_exact(parse, table.schema))
                yield block[0][0], table
            except pa.ArrowInvalid as error:
                lines = [number for number, line in block if line.strip()]
                row = _ROW.search(str(error))
                place = lines[min(int(row[1]), len(lines) - 1)] if row else lines[0]
                raise ValueError(f"{path}:{place}: {_ROW.sub('', str(error))}") from None


def _exact(parse: Callable[[pa.Schema], pa.Table], schema: pa.Schema) -> pa.Schema:
    """Returns the columns that are integers but become numbers with a fraction, with a type that holds them."""
    integers = []
    for field in schema:
        exact = pa.field(field.name, pa.decimal128(38, 0))
        try:
            if pa.types.is_floating(field.type) and parse(pa.schema([exact])):
                integers.append(exact)
        except pa.ArrowInvalid:
            continue  # a value has a fraction
    return pa.schema(integers)
