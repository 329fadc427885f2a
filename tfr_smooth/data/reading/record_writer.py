"""`Lists` as TF-Ranking's records: TFRecord files of `ExampleListWithContext`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments, _files
from tfr_smooth.data import column_values
from tfr_smooth.data.column_values import ColumnValues
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading.records import VALUE_LISTS, compression, elwc_message

_QUERIES_AT_ONCE = 256


def write_records(lists: Lists, path: str | os.PathLike[str], *, context_features: Sequence[str] = ()) -> Path:
    """Writes the documents as a TFRecord file of TF-Ranking's `ExampleListWithContext`, one record per query.

    Each column is a feature of its name: numbers are floats or integers, text is bytes, dates are seconds since
    1970-01-01 UTC. Missing values have no feature. The query is in the context. `read_records` reads the file as the
    same lists. For several files, write each [shard][tfr_smooth.data.Lists.shard] of the lists to one.

    Args:
      lists: The lists.
      path: The file to write; compressed if its name ends in ".gz".
      context_features: Columns with one value per query to write to the context, too.

    Returns:
      The path of the file, which is replaced when all is written.

    Raises:
      ValueError: If an argument is invalid, a column of the context has several values in a query, or a set has a
        missing value.

    Time is linear in the number of values. Memory holds 256 queries.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.tfrecord"
      >>> lists = data.from_table({"q": [7, 7, 8], "label": [1, 0, 2], "x": [0.5, None, 2]}, query="q", label="label")
      >>> data.write_records(lists, path).name
      'train.tfrecord'
      >>> data.read_records(path, query="q", label="label", cache_dir=path.parent).values("x").tolist()
      [0.5, nan, 2.0]
    """
    for name in context_features:
        _arguments.name("context_features", name, lists.roles.columns)
    target = Path(path)
    with _files.replacing(target) as temporary, tf.io.TFRecordWriter(os.fspath(temporary), compression(target)) as file:
        for first in range(0, len(lists), _QUERIES_AT_ONCE):
            part = lists.take(np.arange(first, min(first + _QUERIES_AT_ONCE, len(lists))))
            for record in _serialized(part, [lists.roles.query, *context_features]):
                file.write(record)
    return target


def _serialized(lists: Lists, context: list[str]) -> Iterator[bytes]:
    """Yields the record of each query."""
    others = {name: _encoded(name, lists.table[name]) for name in lists.roles.columns}
    shared = {name: others.pop(name) for name in dict.fromkeys(context)}
    for query, (start, end) in zip(lists.query_ids, itertools.pairwise(lists.starts.tolist()), strict=True):
        for name, rows in shared.items():
            if any(value != rows[start] for value in rows[start + 1 : end]):
                raise ValueError(f"column {name!r} must have one value in query {query.as_py()!r}.")
        documents = [_example(others, row) for row in range(start, end)]
        yield elwc_message()[1](examples=documents, context=_example(shared, start)).SerializeToString()


def _example(features: Mapping[str, list[tf.train.Feature | None]], row: int) -> bytes:
    known = {name: rows[row] for name, rows in features.items() if rows[row] is not None}
    return tf.train.Example(features=tf.train.Features(feature=known)).SerializeToString(deterministic=True)


def _encoded(name: str, column: pa.ChunkedArray) -> list[tf.train.Feature | None]:
    """Returns the feature of each row; None for missing values."""
    kind = column.type
    is_vector, is_set = pa.types.is_fixed_size_list(kind), column_values.is_set(kind)
    values = kind.value_type if is_vector or is_set else kind
    if column_values.is_text(values):
        encoding, plain = "bytes_list", pa.binary()
    elif is_vector or pa.types.is_floating(values):
        encoding, plain = "float_list", pa.float64()
    else:
        encoding, plain = "int64_list", pa.int64()
    if column_values.is_date(kind):
        column = column.cast(pa.timestamp("s"), safe=False)
    if is_vector:
        rows = ColumnValues(column)(np.arange(len(column))).tolist()
    else:
        rows = column.cast(pa.list_(plain) if is_set else plain).to_pylist()
    if not (is_vector or is_set):  # NaN is a missing value, too.
        rows = [None if row is None or row != row else [row] for row in rows]
    if any(row is not None and None in row for row in rows):
        raise ValueError(f"column {name!r} must have sets without missing values.")
    message = VALUE_LISTS[encoding][1]
    return [None if row is None else tf.train.Feature(**{encoding: message(value=row)}) for row in rows]
