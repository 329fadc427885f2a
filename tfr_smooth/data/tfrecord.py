"""Reads TF-Ranking's records as a `tf.data.Dataset` of padded query batches, without Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data import elwc, shards
from tfr_smooth.data.record_batches import BatchOptions, Streamed
from tfr_smooth.data.text_files import FilePattern, expand_paths

# Parsing dominates the time.
_PARALLEL = 2
# AutoGraph has nothing to convert in these functions, and takes long to find that out.
_plain = tf.autograph.experimental.do_not_convert


def read_tfrecord(
    file_pattern: FilePattern,
    *,
    batch_size: int,
    schema: elwc.ElwcSchema = elwc.ElwcSchema(),  # noqa: B008 (frozen)
    num_features: int | None = None,
    input_context: tf.distribute.InputContext | None = None,
    list_size: int | None = None,
    shuffle_buffer: int = 0,
    seed: int | None = None,
    num_epochs: int | None = 1,
    first_epoch: int = 0,
    drop_remainder: bool = False,
    return_ids: bool = False,
    group_by_length: bool = False,
) -> tf.data.Dataset:
    """Reads TFRecord files of TF-Ranking's `ExampleListWithContext` into a dataset of padded query batches.

    The dataset runs without Python, so it also works in other processes, such as the workers of the `tf.data` service
    or of a parameter server.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, for files such as `letor_to_tfrecord` writes. Files that
        end in ".gz" are decompressed. Matches of a pattern are read in sorted order, a list in its own order.
      batch_size: Queries per batch, >= 1.
      schema: The feature names of the records. Labels are floats; ids are bytes and optional. Other features are
        ignored.
      num_features: Features per document, >= 1. None uses the number in the first document of the first file; required
        for a schema with "{}".
      input_context: The context from `tf.distribute.Strategy.distribute_datasets_from_function`. Each of n workers
        reads every n-th file, starting at its own index. None reads all files.
      list_size: Documents per list, >= 1; longer lists are truncated. None pads to the longest list of each batch.
      shuffle_buffer: Queries in the shuffle buffer, >= 0. 0 keeps the order of the records.
      seed: Seed of the order, >= 0, as in `read_letor`. None shuffles differently in each epoch.
      num_epochs: Number of epochs, >= 1. None repeats forever.
      first_epoch: Index of the first epoch, >= 0. Used only with `seed`.
      drop_remainder: Whether to drop the last batch of an epoch if it is not full.
      return_ids: Whether to add "query_id" and "doc_id" to the inputs; "" for records without ids.
      group_by_length: Whether to batch lists of similar length, as in `read_letor`.

    Returns:
      The same dataset that `read_letor` returns for the LETOR files of the records. It does not know its number of
      batches.

    Raises:
      ValueError: If an argument is invalid, a pattern matches no file, a file is from an interrupted conversion, or
        there are fewer files than workers.
      tf.errors.InvalidArgumentError: If iteration finds a list without documents, or a document without a finite label
        >= 0 and finite features (`path:record: expected`, with records counted from 1).
      tf.errors.DataLossError: If iteration finds a damaged file or other records.

    Memory holds `shuffle_buffer` queries and a few batches.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> files = data.write_synthetic_letor(folder, num_queries=(20, 2, 2))
      >>> _ = data.letor_to_tfrecord(files["train"], folder / "train.tfrecord", num_shards=4)
      >>> inputs, labels = next(iter(data.read_tfrecord(folder / "train.tfrecord-*", batch_size=8)))
      >>> inputs["features"].shape[2], labels.shape[0]
      (32, 8)
    """
    options = BatchOptions(
        batch_size=batch_size,
        list_size=list_size,
        shuffle_buffer=shuffle_buffer,
        seed=seed,
        num_epochs=num_epochs,
        first_epoch=first_epoch,
        drop_remainder=drop_remainder,
        return_ids=return_ids,
        group_by_length=group_by_length,
    )
    num_features = _arguments.integer_or_none("num_features", num_features, least=1)
    paths = expand_paths(file_pattern)
    shards.check_finished(paths)
    parser = _Parser(schema, num_features or _width(paths[0], schema), options)
    if input_context is not None:
        paths = _own(paths, input_context)
    files = tf.data.Dataset.from_tensor_slices((paths, [shards.compression(path) for path in paths]))
    queries = files.flat_map(_numbered_records).map(parser, num_parallel_calls=_PARALLEL, deterministic=True)
    return Streamed(queries, options).dataset()


def _own(paths: list[str], context: tf.distribute.InputContext) -> list[str]:
    """Returns the files of one worker."""
    workers = context.num_input_pipelines
    if workers > len(paths):
        raise ValueError(
            f"`file_pattern` must match a file for each of the {workers} workers, got {len(paths)}; create more with "
            f"`letor_to_tfrecord(..., num_shards={workers})`, or omit `input_context`."
        )
    return paths[context.input_pipeline_id :: workers]


def _width(path: str, schema: elwc.ElwcSchema) -> int:
    """Returns the number of features of the first document of a file."""
    if "{}" in schema.features:
        raise ValueError(f"`num_features` must be given for features named {schema.features!r}, got None.")
    for record in tf.data.TFRecordDataset(path, shards.compression(path)).take(1):
        _, _, examples = elwc.decode_lists(record[tf.newaxis])
        features = {schema.features: tf.io.RaggedFeature(tf.float32)}
        lengths = tf.io.parse_example(examples[0], features)[schema.features].row_lengths().numpy()
        if lengths.size and lengths[0]:
            return int(lengths[0])
    raise ValueError(f"{path}:1: the first record has no document with a feature {schema.features!r}")


@_plain
def _numbered_records(path: tf.Tensor, compression: tf.Tensor) -> tf.data.Dataset:
    """Returns a dataset of (path, record number, record) of a file."""
    records = tf.data.TFRecordDataset(path, compression)
    return records.enumerate(start=1).map(_plain(lambda number, record: (path, number, record)))


class _Parser:
    """Parses a record into an unpadded query."""

    def __init__(self, schema: elwc.ElwcSchema, num_features: int, options: BatchOptions) -> None:
        self._schema, self._options = schema, options
        # Single-float features may be missing and are then 0.
        one_each = "{}" in schema.features
        self._features = schema.feature_spec(num_features) if one_each else {schema.features: _floats([num_features])}

    @_plain
    def __call__(self, path: tf.Tensor, number: tf.Tensor, record: tf.Tensor) -> dict[str, tf.Tensor]:
        schema = self._schema
        _, contexts, examples = elwc.decode_lists(record[tf.newaxis])
        spec: dict[str, Any] = {**self._features, schema.label: _floats([])}
        if self._options.return_ids:
            spec[schema.doc_id] = tf.io.FixedLenFeature([], tf.string, "")
        parsed = tf.io.parse_example(examples[0, : self._options.list_size], spec)
        features = tf.concat([parsed[name] for name in self._features], axis=1)
        labels = parsed[schema.label]
        # Comparisons with NaN are false.
        good = [tf.size(labels) > 0, tf.reduce_all(tf.abs(features) < np.inf)]
        good.append(tf.reduce_all(tf.logical_and(labels >= 0.0, labels < np.inf)))
        expected = "a list must have documents, each with a finite label >= 0 and finite features"
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(good), [path, number, expected])]):
            query = {"features": tf.identity(features), "labels": labels}
        if self._options.return_ids:
            query["doc_id"] = parsed[schema.doc_id]
            context = tf.io.parse_example(contexts, {schema.query_id: tf.io.FixedLenFeature([], tf.string, "")})
            query["query_id"] = context[schema.query_id][0]
        return query


def _floats(shape: list[int]) -> tf.io.FixedLenFeature:
    """Returns the spec of numbers that are NaN if missing, so that the error reports the record."""
    return tf.io.FixedLenFeature(shape, tf.float32, np.full(shape, np.nan, np.float32))
