"""Converts between LETOR text and TF-Ranking's records, `ExampleListWithContext` in TFRecord files.

The message stores one query: `repeated tf.train.Example examples = 1; tf.train.Example context = 2`. It is declared
here with `bytes` for the inner messages, which is the same on the wire, so no other package is required.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from tfr_smooth import _arguments, _files
from tfr_smooth.data import shards
from tfr_smooth.data.letor import compressed, number_text
from tfr_smooth.data.letor_parser import Query, read_queries, summary_of
from tfr_smooth.data.text_files import FilePattern, expand_paths

# Progress callback of a conversion: (finished queries, total queries or None if unknown).
Progress = Callable[[int, "int | None"], None]


@dataclasses.dataclass(frozen=True)
class ElwcSchema:
    """The feature names of a record.

    Args:
      features: The name of one feature that stores all floats of a document. A name with "{}" stands for one feature
        with one float per index, from 1 on: TF-Ranking's example data have "custom_features_{}". Such records take 5x
        the space and 2x the time to read.
      label: The label of a document: one float. `tfrecord_to_letor` also accepts one integer.
      query_id: The query id in the context: bytes. `tfrecord_to_letor` also accepts one integer.
      doc_id: The document id: bytes. Documents without an id lack this feature.

    Raises:
      ValueError: If a name is empty, two names are equal, or `features` contains "{}" twice.

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
                raise ValueError(f"`{field}` must be a unique, non-empty name, got {name!r}.")
        if self.features.count("{}") > 1:
            raise ValueError(f"`features` must contain '{{}}' at most once, got {self.features!r}.")

    def feature_spec(self, num_features: int) -> dict[str, tf.io.FixedLenFeature]:
        """Returns the feature spec of a document for `tf.io.parse_example` and TF-Ranking.

        Args:
          num_features: The number of features, >= 1.

        Returns:
          Feature name to `tf.io.FixedLenFeature`, without the label and the ids. Missing features are 0.
        """
        if "{}" not in self.features:
            return {self.features: tf.io.FixedLenFeature([num_features], tf.float32, [0.0] * num_features)}
        scalar = tf.io.FixedLenFeature([1], tf.float32, [0.0])
        return {self.features.format(index): scalar for index in range(1, num_features + 1)}

    def index_of(self, name: str) -> int | None:
        """Returns the index in a feature's name.

        Args:
          name: The name of a feature.

        Returns:
          The index, >= 1, for a name that matches `features` with "{}"; None for other names.
        """
        match = re.fullmatch(re.escape(self.features).replace(r"\{\}", "([1-9][0-9]{0,8})"), name)
        return int(match[1]) if match and match.groups() else None


def file_descriptor_set() -> descriptor_pb2.FileDescriptorSet:
    """Returns the declaration of `ExampleListWithContext`."""
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
        descriptor_source=b"bytes://" + file_descriptor_set().SerializeToString(),
    )
    return sizes[:, 1], tf.reshape(contexts, [-1]), examples


def encode_query(query: Query, schema: ElwcSchema = ElwcSchema()) -> bytes:
    """Returns a query as a serialized `ExampleListWithContext`.

    Args:
      query: The query, with its documents in order.
      schema: The feature names.

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
    r"""Converts LETOR files to TFRecord files of TF-Ranking's `ExampleListWithContext`, one record per query.

    The records keep the order of queries and documents, query ids, document ids from comments, labels, and features as
    float32 (all of them, including zeros and features that a line omits). Other text in comments is lost.

    After an interruption, a call with the same arguments resumes after the last finished file. Until then,
    `read_tfrecord` rejects the incomplete set of files. Existing files are replaced, each atomically.

    Args:
      source: A path, a glob pattern, or a list of these, as for `read_letor`.
      target: The output file, compressed if its name ends in ".gz". Multiple shards are named
        `train.tfrecord-00000-of-00003` and so on, which `train.tfrecord-*` matches, or
        `train.tfrecord-00000-of-00003.gz`.
      schema: The feature names of the records.
      num_features: Features per document, >= 1; a higher index in a file is an error. None uses the highest index in
        the files. Set it for files that belong together, such as training and test files.
      num_shards: Number of files, >= 1 and at most the number of queries. Each file stores about the same number of
        consecutive queries, so reading the files in sorted order preserves the order of the source.
      progress: Called with (finished queries, total queries). None reports no progress.

    Returns:
      The paths of the files.

    Raises:
      ValueError: If an argument is invalid, the input is malformed (`path:line: problem`), or shards of a different
        number of shards exist.

    Two passes over the source. Memory holds one query and the ids of all queries.

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
    summary = summary_of(expand_paths(source, "source"))
    width = num_features or summary.num_features
    if width == 0:
        raise ValueError(f"`source` must contain features, got none in {list(summary.paths)}.")
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
            # Recorded before the file is replaced: from then on the set of files is inconsistent.
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
    r"""Converts TFRecord files of `ExampleListWithContext` to one LETOR file.

    The file keeps what `letor_to_tfrecord` keeps. Floats are written with as many digits as float32 needs. A feature
    that a document lacks is omitted from its line and so reads as 0. A query without an id gets the id "record-N".

    Args:
      source: A path, a glob pattern, or a list of these. Matches of a pattern are read in sorted order. Files that end
        in ".gz" are decompressed.
      target: The output file, written atomically; compressed if its name ends in ".gz".
      schema: The feature names of the records.
      drop_others: Whether to drop features that the schema does not name. If False, they are an error.
      progress: Called with (finished queries, None). None reports no progress.

    Raises:
      ValueError: If an argument is invalid, or a record cannot be written as LETOR text (`path:record: problem`, with
        records counted from 1): a damaged record; a list without documents; a label or feature that is missing,
        negative, not a finite float32 or not a single number; an id with whitespace; or the id of an earlier query.

    One pass. Memory holds one query and the ids of all queries.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> text, records = folder / "train.txt", folder / "train.tfrecord"
      >>> _ = text.write_text("1 qid:a 1:0.5 2:2\n")
      >>> _ = letor_to_tfrecord(text, records)
      >>> tfrecord_to_letor(records, folder / "copy.txt")
      >>> (folder / "copy.txt").read_text() == text.read_text()
      True
    """
    _arguments.boolean("drop_others", drop_others)

    def chunks() -> Iterator[bytes]:
        for done, lines in enumerate(_read_records(expand_paths(source), schema, drop_others), start=1):
            yield lines
            if progress is not None:
                progress(done, None)

    packed = os.fspath(target).endswith(".gz")
    _files.write_bytes(target, compressed(chunks()) if packed else chunks())


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
                    raise ValueError(f"duplicate query {query_id.decode()!r}")
                seen.add(query_id)
                yield lines
        except tf.errors.DataLossError as error:
            raise ValueError(f"{path}:{number + 1}: {error.message}") from None
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from None
        if number == 0:
            raise ValueError(f"{path}:1: the file has no records")


def _to_lines(record: bytes, schema: ElwcSchema, drop_others: bool, default_id: bytes) -> tuple[bytes, bytes]:
    """Returns (query id, the lines of the query)."""
    try:
        query = _message_class().FromString(record)
        context = tf.train.Example.FromString(query.context).features.feature
        documents = [tf.train.Example.FromString(example).features.feature for example in query.examples]
    except message.DecodeError:
        raise ValueError("not an ExampleListWithContext") from None
    if not documents:
        raise ValueError("the list has no documents")
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
            raise ValueError(f"missing label {schema.label!r}")
        (label,) = _numbers(document[schema.label], schema.label, one=True)
        if label < 0:
            raise ValueError(f"label {number_text(label)} is negative, which marks padding")
        words = [
            number_text(label),
            f"qid:{query_id.decode()}",
            *(f"{i}:{number_text(values[i])}" for i in sorted(values)),
        ]
        doc_id = _identifier(document, schema.doc_id)
        lines.append(" ".join(words) + (f" #docid = {doc_id.decode()}\n" if doc_id else "\n"))
    if others and not drop_others:
        raise ValueError(
            f"features not in the schema: {', '.join(map(repr, sorted(others)))} (`drop_others` drops them)"
        )
    return query_id, "".join(lines).encode()


def _numbers(feature: tf.train.Feature, name: str, one: bool = False) -> list[np.float32]:
    """Returns the checked values of a feature."""
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind in ("float_list", "int64_list") else []
    if not values or (one and len(values) > 1):
        expected = "one number" if one else "numbers"
        raise ValueError(f"feature {name!r} must contain {expected}, got {len(values)}")
    numbers = np.array(values, np.float32)
    if not np.isfinite(numbers).all() or (kind == "int64_list" and [int(n) for n in numbers] != list(values)):
        raise ValueError(f"feature {name!r} must contain finite float32 numbers, got {list(values)}")
    return list(numbers)


def _identifier(features: Any, name: str) -> bytes:
    """Returns an id as LETOR text can store it; b"" if the feature is missing."""
    if name not in features:
        return b""
    kind = features[name].WhichOneof("kind")
    values = getattr(features[name], kind).value if kind in ("bytes_list", "int64_list") else []
    if len(values) != 1:
        raise ValueError(f"{name!r} must contain one string or integer, got {len(values)}")
    text = values[0] if isinstance(values[0], bytes) else str(values[0]).encode()
    try:
        text.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name!r} must be UTF-8 text, got {text!r}") from None
    if text.split() != [text] and text:
        raise ValueError(f"{name!r} must not contain whitespace, got {text.decode()!r}")
    return text
