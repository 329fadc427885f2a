"""TF-Ranking's records as `Lists`, and back: `ExampleListWithContext` or `SequenceExample` in TFRecord files.

An `ExampleListWithContext` (ELWC) stores one query: `repeated tf.train.Example examples = 1; tf.train.Example context =
2`. It is declared here with `bytes` for the inner messages, which is the same on the wire, so no other package is
required.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
from typing_extensions import Unpack

from tfr_smooth import _arguments, _files
from tfr_smooth.data.column_values import NESTED, TEXTS, ColumnValues, value_type, without
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks, conversion
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths, state_of
from tfr_smooth.data.roles import DENSE, RoleNames, Roles

KINDS = ("elwc", "sequence_example")
_RECORD = "record"  # the query id of records without one
# Not tuned.
_INFERRED_FROM = 1000  # documents
_BYTES_AT_ONCE = 4 << 20  # of records to parse in one call
_QUERIES_AT_ONCE = 256  # to write
_VALUE_LISTS = {
    "bytes_list": (tf.string, tf.train.BytesList),
    "int64_list": (tf.int64, tf.train.Int64List),
    "float_list": (tf.float32, tf.train.FloatList),
}
_PROBLEMS = (ValueError, message.DecodeError, tf.errors.OpError)  # of a record
# Names of functions in TensorFlow's messages.
_NODE = re.compile(r"\{\{.*?\}\} ?| ?\[Op:\w+\].*", re.DOTALL)


class _Feature(NamedTuple):
    """How the values of a feature become a column.

    Args:
      dtype: Their type.
      size: The number of values of each document. None for any number.
      is_scalar: Whether the one value is a number or text, not a vector.
      default: The value where there is none. None for a missing value.
      required: Whether a document without values is an error.
    """

    dtype: tf.DType
    size: int | None = None
    is_scalar: bool = False
    default: Any = None
    required: bool = False


@functools.lru_cache(maxsize=1)
def elwc_message() -> tuple[bytes, Any]:
    """Returns the descriptor of an `ExampleListWithContext` for ops, and its class, with serialized examples."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="tfr_smooth/elwc.proto", package="tfr_smooth", syntax="proto3")
    declared = file.message_type.add(name="ExampleListWithContext")
    declared.field.add(name="examples", number=1, type=field.TYPE_BYTES, label=field.LABEL_REPEATED)
    declared.field.add(name="context", number=2, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    elwc_class = message_factory.GetMessageClass(pool.FindMessageTypeByName("tfr_smooth.ExampleListWithContext"))
    return b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), elwc_class


def decode_lists(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Decodes serialized records with an op that every TensorFlow binary includes.

    Args:
      serialized: [batch], serialized `ExampleListWithContext`.

    Returns:
      The number of examples [batch], and the contexts [batch] and examples [batch, list], still serialized.
    """
    sizes, (contexts, examples) = tf.io.decode_proto(
        serialized,
        message_type="tfr_smooth.ExampleListWithContext",
        field_names=["context", "examples"],
        output_types=[tf.string, tf.string],
        descriptor_source=elwc_message()[0],
    )
    return sizes[:, 1], tf.reshape(contexts, [-1]), examples


def read_records(
    file_pattern: FilePattern,
    *,
    query: str | None,
    stack: bool = False,
    example_features: Mapping[str, Any] | None = None,
    context_features: Mapping[str, Any] | None = None,
    kind: str = "elwc",
    cache_dir: str | os.PathLike[str] | None = None,
    **roles: Unpack[RoleNames],
) -> Lists:
    r"""Returns the lists of TFRecord files with one query per record, as TF-Ranking reads them.

    Each feature of the documents is a column. Each feature of the context is, too: its value is repeated for all
    documents of the list. The files are read once, into a file of the cache folder, as by `read_letor`.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, as for `read_letor`. Files that end in `.gz` are
        decompressed.
      query: The feature of the context with query ids, text or an integer, each in one record. None uses the
        number of the record.
      stack: Whether to store the features as one column "features".
      example_features: The specs of the documents' features: `tf.io.FixedLenFeature` of shape [] for a number or
        text and [n] for a vector, `tf.io.VarLenFeature` or `tf.io.RaggedFeature` for sets. A document without a
        value is an error if the spec has no default. Labels and so on may be omitted. None takes all features of
        the first 1,000 documents (in whole records), with their types and sizes; numbers and text may be missing.
      context_features: The same for the context.
      kind: "elwc" (`ExampleListWithContext`) or "sequence_example" (`tf.train.SequenceExample`, with one step per
        document).
      cache_dir: The cache folder, as for `read_letor`.
      **roles: The features of other roles, as for `from_table`. Numbers in names sort as numbers.

    Returns:
      The lists.

    Raises:
      ValueError: If an argument is invalid, or a record is (`path:record N: problem`, counted from 1): damaged, not
        of this kind, without documents, or with other types or sizes, values that are not allowed, or the query of
        an earlier record.

    Time is linear in the size of the files. Memory holds about 64 MB of columns, and the query ids.

    Example:
      >>> import pathlib, tempfile
      >>> import tensorflow as tf
      >>> from tfr_smooth import data
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> table = {"qid": [7, 7, 8], "label": [1, 0, 2], "price": [0.5, None, 0.9], "tags": [["a", "b"], [], ["c"]]}
      >>> path = data.write_records(data.from_table(table, query="qid", label="label"), folder / "r")
      >>> specs = {"price": tf.io.FixedLenFeature([], tf.float32, -1.0), "tags": tf.io.RaggedFeature(tf.string)}
      >>> lists = data.read_records(path, query="qid", label="label", example_features=specs, cache_dir=folder)
      >>> lists.lengths.tolist(), lists.values("price").tolist(), lists.values("tags").tolist()
      ([2, 1], [0.5, -1.0, 0.8999999761581421], [[b'a', b'b'], [b'', b''], [b'c', b'']])
    """
    _arguments.choice("kind", kind, KINDS)
    _arguments.boolean("stack", stack)
    paths = expand_paths(file_pattern)
    label = roles.get("label")
    labels = [label] if isinstance(label, str) else list(label or ())
    taken = {query, *labels, *(roles.get(role) for role in ("weight", "propensity", "position", "document_id"))}
    context, examples = _inferred(kind, paths[0])
    context = _chosen("context_features", context_features, context, taken)
    examples = _chosen("example_features", example_features, examples, taken)
    names = [*([_RECORD] if query is None else []), *context, *examples]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"`example_features` must not share names with the context or {_RECORD!r}, got {twice}.")
    query = _RECORD if query is None else _arguments.choice("query", query, context)
    chosen = Roles.of(names, query=query, **roles)
    scalars = set(chosen.columns) - (set() if stack else set(chosen.features))

    def used(features: dict[str, _Feature]) -> dict[str, _Feature]:
        return {
            name: feature._replace(is_scalar=feature.size == 1) if name in scalars else feature
            for name, feature in features.items()
            if name in chosen.columns
        }

    context, examples = used(context), used(examples)
    settings = {"kind": kind, "stack": stack, "specs": repr((context, examples))}
    reader = _Reader(kind, context, examples, chosen, stack)
    final = chosen.stacked() if stack else chosen
    return conversion.converted(cache_dir, list(map(state_of, paths)), settings, final, lambda: reader.tables(paths))


def _chosen(
    argument: str, specs: Mapping[str, Any] | None, inferred: dict[str, _Feature], taken: set[Any]
) -> dict[str, _Feature]:
    """Returns the features of specs of `tf.io`, and those with another role; without specs, all."""
    if specs is None:
        return inferred
    features = {name: feature for name, feature in inferred.items() if name in taken}
    for name, spec in specs.items():
        ragged = isinstance(spec, tf.io.RaggedFeature) and not spec.partitions and spec.value_key in (None, name)
        if ragged or isinstance(spec, tf.io.VarLenFeature):
            features[name] = _Feature(tf.as_dtype(spec.dtype))
            continue
        shape = tf.TensorShape(spec.shape) if isinstance(spec, tf.io.FixedLenFeature) else tf.TensorShape(None)
        if shape.rank not in (0, 1) or not shape.num_elements():
            expected = "FixedLenFeature of shape [] or [n], VarLenFeature or RaggedFeature without partitions"
            raise ValueError(f"`{argument}` must contain {expected}, got {name!r}: {spec!r}.")
        dtype, default = tf.as_dtype(spec.dtype), spec.default_value
        features[name] = _Feature(dtype, shape.num_elements(), shape.rank == 0, default, required=default is None)
    return features


def _inferred(kind: str, path: str) -> tuple[dict[str, _Feature], dict[str, _Feature]]:
    """Returns the features of the contexts and of the documents in the first records of a file."""
    contexts: list[Mapping[str, tf.train.Feature]] = []
    documents: list[Mapping[str, tf.train.Feature]] = []
    for number, record in enumerate(_read(path), 1):
        try:
            context, *examples = _decoded(kind, record)
        except _PROBLEMS as error:
            raise ValueError(f"{path}:record {number}: {_message(error, kind)}") from None
        contexts.append(context)
        documents += examples
        if len(documents) >= _INFERRED_FROM:
            break
    if not contexts:
        raise ValueError(f"{path}: must have at least one record, got none.")
    return _features(contexts), _features(documents)


def _serialized_examples(kind: str, record: bytes) -> tuple[bytes, list[bytes]]:
    """Returns the context of a record and its documents, each as a serialized `tf.train.Example`."""
    if kind == "elwc":
        elwc = elwc_message()[1].FromString(record)
        return elwc.context, [*elwc.examples]
    sequence = tf.train.SequenceExample.FromString(record)
    steps = {name: values.feature for name, values in sequence.feature_lists.feature_list.items() if values.feature}
    sizes = sorted({len(values) for values in steps.values()})
    if len(sizes) > 1:
        name = next(name for name, values in steps.items() if len(values) == sizes[0])
        raise ValueError(f"feature {name!r} must have {sizes[-1]} documents, got {sizes[0]}.")
    documents = (dict(zip(steps, values, strict=True)) for values in zip(*steps.values(), strict=True))
    examples = [tf.train.Features(feature=features) for features in (sequence.context.feature, *documents)]
    context, *others = (tf.train.Example(features=features).SerializeToString() for features in examples)
    return context, others


def _decoded(kind: str, record: bytes) -> list[Mapping[str, tf.train.Feature]]:
    """Returns the features of the context and of each document."""
    context, documents = _serialized_examples(kind, record)
    return [tf.train.Example.FromString(example).features.feature for example in (context, *documents)]


def _features(examples: Sequence[Mapping[str, Any]]) -> dict[str, _Feature]:
    """Returns the types and sizes of the features of examples, by name; numbers in names count as numbers."""
    kinds: dict[str, str] = {}
    sizes: dict[str, set[int]] = {}
    for example in examples:
        for name, feature in example.items():
            kind = feature.WhichOneof("kind")
            if kind is not None:
                kinds.setdefault(name, kind)
                sizes.setdefault(name, set()).add(len(getattr(feature, kind).value))
    features = {}
    for name in sorted(kinds, key=lambda name: [int(e) if e.isdecimal() else e for e in re.split(r"(\d+)", name)]):
        dtype, (size, *others) = _VALUE_LISTS[kinds[name]][0], sorted(sizes[name] - {0}) or (0,)
        is_set = others or size == 0 or (size > 1 and dtype == tf.string)
        # Vectors have no missing values.
        features[name] = _Feature(dtype) if is_set else _Feature(dtype, size, size == 1, required=size > 1)
    return features


def _compression(path: str | os.PathLike[str]) -> str:
    """Returns TensorFlow's name of the compression of a file, by its ending."""
    return "GZIP" if os.fspath(path).endswith(".gz") else ""


def _read(path: str) -> Iterator[bytes]:
    """Yields the records of a file."""
    number = 0
    try:
        for record in tf.data.TFRecordDataset(path, _compression(path)).as_numpy_iterator():
            number += 1
            yield record
    except tf.errors.DataLossError as error:
        raise ValueError(f"{path}:record {number + 1}: {_message(error)}") from None


def _message(error: Exception, kind: str = "") -> str:
    if isinstance(error, message.DecodeError):
        return f"must be a record of the kind {kind!r}."
    return _NODE.sub("", error.message) if isinstance(error, tf.errors.OpError) else str(error)


class _Reader(NamedTuple):
    """Parses records into columns."""

    kind: str
    context: dict[str, _Feature]
    examples: dict[str, _Feature]
    roles: Roles
    stack: bool

    def tables(self, paths: Sequence[str]) -> Iterator[pa.Table]:
        """Yields the documents of records."""
        seen: set[Any] = set()
        total = 0
        for path in paths:
            number = 1
            for records in conversion.by_size(_read(path), _BYTES_AT_ONCE, len):
                try:
                    table, sizes = self._table(records, total)
                except _PROBLEMS:
                    for place, record in enumerate(records, number):
                        try:
                            _decoded(self.kind, record)
                            self._table([record], 0)
                        except _PROBLEMS as error:
                            raise ValueError(f"{path}:record {place}: {_message(error, self.kind)}") from None
                    raise
                ids = table[self.roles.query].take(pa.array(np.cumsum(sizes) - sizes)).to_pylist()
                for place, query in enumerate(ids, number):
                    if query in seen:
                        raise ValueError(f"{path}:record {place}: query {query!r} must be in one record only.")
                    seen.add(query)
                number += len(records)
                total += len(records)
                yield table
            if number == 1:
                raise ValueError(f"{path}: must have at least one record, got none.")

    def _table(self, records: list[bytes], before: int) -> tuple[pa.Table, np.ndarray]:
        """Returns the checked columns of records, and their numbers of documents."""
        parts = [_serialized_examples(self.kind, record) for record in records]
        sizes = np.array([len(documents) for _, documents in parts])
        contexts = _parsed([context for context, _ in parts], self.context)
        documents = _parsed([document for _, documents in parts for document in documents], self.examples)
        if not sizes.all():
            raise ValueError("the list must have at least one document, got none.")
        parents = np.repeat(np.arange(len(records)), sizes)
        columns = {name: _column(name, self.examples[name], *values) for name, values in documents.items()}
        for name, values in contexts.items():
            columns[name] = _column(name, self.context[name], *values).take(pa.array(parents))
        if self.roles.query not in self.context:
            columns[_RECORD] = pa.array(before + 1 + parents)
        where = lambda name: checks.Where(f"feature {name!r}")  # noqa: E731
        return checks.checked(pa.table(columns), self.roles, stack=self.stack, where=where, part=True), sizes


def _parsed(examples: list[bytes], features: Mapping[str, _Feature]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns all values of each feature of serialized examples, and their number in each example."""
    specs = {name: tf.io.RaggedFeature(feature.dtype) for name, feature in features.items()}
    parsed = tf.io.parse_example(tf.constant(examples, tf.string), specs) if specs else {}
    return {name: (values.flat_values.numpy(), values.row_lengths().numpy()) for name, values in parsed.items()}


def _column(name: str, feature: _Feature, values: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Returns the column of a feature."""
    is_text = feature.dtype == tf.string
    kind = pa.string() if is_text else pa.from_numpy_dtype(feature.dtype.as_numpy_dtype)
    if feature.size is not None:
        wrong = (lengths != feature.size) & (feature.required | (lengths != 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"feature {name!r} must have {feature.size} values, got {lengths[row]} in row {row}.")
        missing = lengths == 0
        fill = feature.default if feature.default is not None else b"" if is_text else 0
        matrix = np.full([len(lengths), feature.size], fill, object if is_text else values.dtype)
        matrix[~missing] = values.reshape(-1, feature.size)
        if name == DENSE and not feature.is_scalar and not is_text and not np.isfinite(matrix).all():
            row, place = np.argwhere(~np.isfinite(matrix))[0]
            raise ValueError(f"feature {name!r} must be finite numbers, got {matrix[row, place]} in row {row}.")
        values, lengths = matrix.reshape(-1), np.full(len(lengths), feature.size)
    try:
        flat = pa.array(values, pa.binary()).cast(kind) if is_text else pa.array(values, kind)
    except pa.ArrowInvalid:
        raise ValueError(f"feature {name!r} must be UTF-8 text.") from None
    if feature.is_scalar:
        return without(flat, pa.array(missing & (feature.default is None)))
    if feature.size is None or is_text:
        return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), flat)
    return pa.FixedSizeListArray.from_arrays(flat, feature.size)


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
        _arguments.choice("context_features", name, lists.roles.columns)
    target = Path(path)
    with (
        _files.replacing(target) as temporary,
        tf.io.TFRecordWriter(os.fspath(temporary), _compression(target)) as file,
    ):
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
    given = value_type(column.type)
    is_vector, is_set = given == "vector", given == "set"
    values = column.type.value_type if given in NESTED else column.type
    if value_type(values) in TEXTS:
        encoding, plain = "bytes_list", pa.binary()
    elif is_vector or pa.types.is_floating(values):
        encoding, plain = "float_list", pa.float64()
    else:
        encoding, plain = "int64_list", pa.int64()
    if given == "date":
        column = column.cast(pa.timestamp("s"), safe=False)
    if is_vector:
        rows = ColumnValues(column)(np.arange(len(column))).tolist()
    else:
        rows = column.cast(pa.list_(plain) if is_set else plain).to_pylist()
    if given not in NESTED:  # NaN is a missing value, too.
        rows = [None if row is None or row != row else [row] for row in rows]
    if any(row is not None and None in row for row in rows):
        raise ValueError(f"column {name!r} must have sets without missing values.")
    message = _VALUE_LISTS[encoding][1]
    return [None if row is None else tf.train.Feature(**{encoding: message(value=row)}) for row in rows]
