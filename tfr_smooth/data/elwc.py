"""TF-Ranking's records, `ExampleListWithContext` in TFRecord files: LETOR text to them and back.

The message holds one query: `repeated tf.train.Example examples = 1; tf.train.Example context = 2`. It is declared here
with `bytes` for the inner messages, which is the same on the wire, so that no other package need be installed.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from tfr_smooth import _arguments, _files
from tfr_smooth.data import shards
from tfr_smooth.data.letor import scan_letor
from tfr_smooth.data.letor_parser import Query, read_queries
from tfr_smooth.data.text_files import FilePattern, expand_paths

# What is told of a long conversion: (queries done, queries in all, or None where that is not known).
Progress = Callable[[int, "int | None"], None]


@dataclasses.dataclass(frozen=True)
class ElwcSchema:
    """The names of things in a record.

    Attributes:
      features: The name of one feature that holds all floats. With "{}" in it, one feature of one float for each index
        from 1 on: TF-Ranking's example data have "custom_features_{}". They take five times the space and twice the
        time to read.
      label: The label of a document, one float (when read, one integer will do).
      query_id: The query's id, bytes (when read, one integer will do), in the context.
      doc_id: The document's id, bytes; only of documents that have one.

    Raises:
      ValueError: If a name is empty or two are the same.

    Example:
      >>> ElwcSchema().feature_spec(num_features=46)["features"].shape
      [46]
    """

    features: str = "features"
    label: str = "utility"
    query_id: str = "query_id"
    doc_id: str = "doc_id"

    def __post_init__(self) -> None:
        """Checks the names."""
        names = list(dataclasses.asdict(self).values())
        for field, name in dataclasses.asdict(self).items():
            if not isinstance(name, str) or not name or names.count(name) > 1:
                raise ValueError(f"`{field}` must be a name that no other has, got {name!r}.")
        if self.features.count("{}") > 1:
            raise ValueError(f"`features` must hold '{{}}' at most once, got {self.features!r}.")

    def feature_spec(self, num_features: int) -> dict[str, tf.io.FixedLenFeature]:
        """Returns the feature spec of a document, as `tf.io.parse_example` and TF-Ranking take it."""
        if "{}" not in self.features:
            return {self.features: tf.io.FixedLenFeature([num_features], tf.float32, [0.0] * num_features)}
        scalar = tf.io.FixedLenFeature([1], tf.float32, [0.0])
        return {self.features.format(index): scalar for index in range(1, num_features + 1)}

    def index_of(self, name: str) -> int | None:
        """Returns the index that a feature's name tells, from 1 on; None for other features."""
        match = re.fullmatch(re.escape(self.features).replace(r"\{\}", "([1-9][0-9]{0,8})"), name)
        return int(match[1]) if match and match.groups() else None


def file_descriptor_set() -> descriptor_pb2.FileDescriptorSet:
    """Returns the declaration of the message."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="tfr_smooth/elwc.proto", package="tfr_smooth", syntax="proto3")
    declared = file.message_type.add(name="ExampleListWithContext")
    field = descriptor_pb2.FieldDescriptorProto
    declared.field.add(name="examples", number=1, type=field.TYPE_BYTES, label=field.LABEL_REPEATED)
    declared.field.add(name="context", number=2, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    return files


@functools.lru_cache(maxsize=1)
def _message_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in file_descriptor_set().file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tfr_smooth.ExampleListWithContext"))


def decode_lists(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Takes serialized records apart, by an op that every TensorFlow binary has.

    Args:
      serialized: [batch], of `ExampleListWithContext`.

    Returns:
      The number of examples [batch], and the still serialized contexts [batch] and examples [batch, list].
    """
    sizes, (contexts, examples) = tf.io.decode_proto(
        serialized,
        message_type="tfr_smooth.ExampleListWithContext",
        field_names=["context", "examples"],
        output_types=[tf.string, tf.string],
        descriptor_source=b"bytes://" + file_descriptor_set().SerializeToString(),
    )
    return sizes[:, 1], tf.reshape(contexts, [-1]), examples


def encode_query(query: Query, schema: ElwcSchema = ElwcSchema()) -> bytes:
    """Returns a query as a serialized `ExampleListWithContext`.

    Args:
      query: The query, its documents in order.
      schema: The names of things.

    Returns:
      The record.
    """
    if "{}" in schema.features:
        names = [schema.features.format(index) for index in range(1, query.features.shape[1] + 1)]
        columns: Iterator[list[Any]] = ([[value] for value in row] for row in query.features.tolist())
    else:
        names = [schema.features]
        columns = ([row] for row in query.features.tolist())
    examples = []
    for row, label, doc_id in zip(columns, query.labels.tolist(), query.doc_ids, strict=True):
        features = {name: _floats(values) for name, values in zip(names, row, strict=True)}
        features[schema.label] = _floats([label])
        if doc_id:
            features[schema.doc_id] = _bytes(doc_id)
        examples.append(_example(features))
    return _message_class()(
        examples=examples, context=_example({schema.query_id: _bytes(query.query_id)})
    ).SerializeToString()


def _floats(values: Iterable[float]) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _bytes(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _example(features: dict[str, tf.train.Feature]) -> bytes:
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def letor_to_tfrecord(
    source: FilePattern,
    target: str | os.PathLike[str],
    *,
    schema: ElwcSchema = ElwcSchema(),
    num_features: int | None = None,
    num_shards: int = 1,
    progress: Progress | None = None,
) -> list[Path]:
    r"""Converts LETOR files to TFRecord files of TF-Ranking's `ExampleListWithContext`, a record a query.

    Kept are the order of queries and documents, query ids, the document ids of comments, labels and features as float32
    (all of them, also those that are 0 or that a line leaves out). Not kept is the rest of the comments.

    Interrupted, it goes on after the last finished file when it is called again with the same arguments; until then
    `read_tfrecord` refuses the files that are there. Existing files are replaced, each atomically.

    Args:
      source: A path, a glob pattern, or a list of these, as for `read_letor`.
      target: The file to write; packed if its name ends in ".gz". With several shards `train.tfrecord-00000-of-00003`
        and so on, which `train.tfrecord-*` matches, or `train.tfrecord-00000-of-00003.gz`.
      schema: The names of things in the records.
      num_features: Floats of every document, at least 1; a higher index in a file is an error. None for the highest
        index in the files. Give it for files that belong together.
      num_shards: Number of files, at least 1: each holds successive whole queries, of about the same number, so that
        reading them in sorted order gives the order of the source.
      progress: Called with (queries done, queries in all).

    Returns:
      The paths of the files.

    Raises:
      ValueError: A bad argument, bad input (`path:line: what is wrong`), or files of another number of shards.

    Two passes over the source; memory for one query and the ids of all.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> text, records = folder / "train.txt", folder / "train.tfrecord"
      >>> _ = text.write_text("1 qid:a 1:0.5 2:2 #docid = d7\n0 qid:a 2:1\n0 qid:b 1:0.1\n")
      >>> [path.name for path in letor_to_tfrecord(text, records)]
      ['train.tfrecord']
      >>> tfrecord_to_letor(records, text)
      >>> print(text.read_text(), end="")
      1 qid:a 1:0.5 2:2 #docid = d7
      0 qid:a 1:0 2:1
      0 qid:b 1:0.1 2:0
    """
    _arguments.integer("num_shards", num_shards, least=1)
    if num_features is not None:
        _arguments.integer("num_features", num_features, least=1)
    summary = scan_letor(source)
    width = num_features or summary.num_features
    if width == 0:
        raise ValueError(f"`source` must hold features, got none in {list(summary.paths)}.")
    if num_shards > summary.queries:
        raise ValueError(f"`num_shards` must be at most the number of queries, {summary.queries}, got {num_shards}.")
    paths = shards.shard_paths(Path(target), num_shards)
    state = shards.Unfinished(
        Path(target), summary.paths, {**dataclasses.asdict(schema), "width": width, "shards": num_shards}
    )

    queries = read_queries(summary.paths, width)
    done = 0
    for shard, path in enumerate(paths):
        end = summary.queries * (shard + 1) // num_shards
        if shard < state.finished:
            for _ in range(end - done):
                next(queries)
            done = end
            continue
        with (
            _files.replacing(path) as temporary,
            tf.io.TFRecordWriter(os.fspath(temporary), shards.compression(path)) as writer,
        ):
            while done < end:
                writer.write(encode_query(next(queries), schema))
                done += 1
                if progress is not None:
                    progress(done, summary.queries)
            # Before the first file is replaced: from then on they do not belong together.
            state.finish(shard)
        state.finish(shard + 1)
    state.remove()
    return paths


def tfrecord_to_letor(
    source: FilePattern,
    target: str | os.PathLike[str],
    *,
    schema: ElwcSchema = ElwcSchema(),
    drop_others: bool = False,
    progress: Progress | None = None,
) -> None:
    """Converts TFRecord files of `ExampleListWithContext` to one LETOR file.

    Kept are what `letor_to_tfrecord` keeps: floats are written with as many digits as float32 needs. A feature that a
    document has not is left out of its line, and so becomes 0. A query without an id gets "record-N".

    Args:
      source: A path, a glob pattern, or a list of these; the matches of a pattern are read in sorted order, and names
        that end in ".gz" are unpacked.
      target: The file to write, atomically; packed if its name ends in ".gz".
      schema: The names of things in the records.
      drop_others: Whether features that the schema does not name may be lost; otherwise they are an error.
      progress: Called with (queries done, None).

    Raises:
      ValueError: A bad argument, or a record that LETOR text cannot hold, as `path:record: what is wrong`, records
        counted from 1: damaged, without documents, with a label or a feature that is missing, negative, no finite
        float32 or not a single number, with an id that has whitespace in it, or with the id of an earlier query.

    One pass; memory for one query and the ids of all. `letor_to_tfrecord` has an example.
    """
    _arguments.boolean("drop_others", drop_others)

    def chunks() -> Iterator[bytes]:
        for done, lines in enumerate(_read_records(expand_paths(source), schema, drop_others), start=1):
            yield lines
            if progress is not None:
                progress(done, None)

    packed = os.fspath(target).endswith(".gz")
    _files.write_bytes(target, _gzip(chunks()) if packed else chunks())


def _gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(wbits=31)
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


def _read_records(paths: list[str], schema: ElwcSchema, drop_others: bool) -> Iterator[bytes]:
    """Yields the lines of each record."""
    seen: set[bytes] = set()
    total = 0
    for path in paths:
        number = 0
        try:
            dataset = tf.data.TFRecordDataset(path, shards.compression(path))
            for number, record in enumerate(dataset.as_numpy_iterator(), start=1):  # noqa: B007
                total += 1
                query_id, lines = _to_lines(record, schema, drop_others, b"record-%d" % total)
                if query_id in seen:
                    raise ValueError(f"query {query_id.decode()!r} was there before")
                seen.add(query_id)
                yield lines
        except tf.errors.DataLossError as error:
            raise ValueError(f"{path}:{number + 1}: {error.message}") from None
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from None
        if number == 0:
            raise ValueError(f"{path}:1: the file ends without a record")


def _to_lines(record: bytes, schema: ElwcSchema, drop_others: bool, default_id: bytes) -> tuple[bytes, bytes]:
    """Returns (query id, the lines of the query)."""
    try:
        query = _message_class().FromString(record)
        context = tf.train.Example.FromString(query.context).features.feature
        documents = [tf.train.Example.FromString(example).features.feature for example in query.examples]
    except message.DecodeError:
        raise ValueError("no ExampleListWithContext") from None
    if not documents:
        raise ValueError("a list without documents")
    others = set(context) - {schema.query_id}
    query_id = _identifier(context, schema.query_id) or default_id
    lines = []
    for document in documents:
        values: dict[int, np.float32] = {}
        for name in document:
            index = schema.index_of(name)
            if name == schema.features:
                values |= enumerate(_numbers(document[name], name), start=1)
            elif index is not None:
                (values[index],) = _numbers(document[name], name, one=True)
            elif name not in (schema.label, schema.doc_id):
                others.add(name)
        if schema.label not in document:
            raise ValueError(f"no label {schema.label!r}")
        (label,) = _numbers(document[schema.label], schema.label, one=True)
        if label < 0:
            raise ValueError(f"label {_text(label)} is negative, which would mean padding")
        words = [_text(label), f"qid:{query_id.decode()}", *(f"{i}:{_text(values[i])}" for i in sorted(values))]
        doc_id = _identifier(document, schema.doc_id)
        lines.append(" ".join(words) + (f" #docid = {doc_id.decode()}\n" if doc_id else "\n"))
    if others and not drop_others:
        raise ValueError(f"features that would be lost: {', '.join(map(repr, sorted(others)))}")
    return query_id, "".join(lines).encode()


def _numbers(feature: tf.train.Feature, name: str, one: bool = False) -> list[np.float32]:
    """The values of a feature, checked."""
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind in ("float_list", "int64_list") else []
    if not values or (one and len(values) > 1):
        raise ValueError(f"feature {name!r} must hold {'one number' if one else 'numbers'}, got {len(values)}")
    numbers = np.array(values, np.float32)
    if not np.isfinite(numbers).all() or (kind == "int64_list" and [int(n) for n in numbers] != list(values)):
        raise ValueError(f"feature {name!r} must hold finite float32 numbers, got {list(values)}")
    return list(numbers)


def _text(number: np.float32) -> str:
    """The shortest text that is the same float32; integers without a point."""
    text = str(number)
    if abs(float(text)) > float(np.finfo(np.float32).max):  # The largest one's shortest text is beyond it.
        return repr(float(number))
    return text[:-2] if text.endswith(".0") and text != "-0.0" else text


def _identifier(features: Any, name: str) -> bytes:
    """An id as LETOR can hold it, b"" where there is none."""
    if name not in features:
        return b""
    kind = features[name].WhichOneof("kind")
    values = getattr(features[name], kind).value if kind in ("bytes_list", "int64_list") else []
    if len(values) != 1:
        raise ValueError(f"{name!r} must hold one text or integer, got {len(values)}")
    text = values[0] if isinstance(values[0], bytes) else str(values[0]).encode()
    try:
        text.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name!r} must be UTF-8 text, got {text!r}") from None
    if text.split() != [text] and text:
        raise ValueError(f"{name!r} must be without whitespace, got {text.decode()!r}")
    return text
