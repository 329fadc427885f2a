"""Reads LETOR and SVMlight ranking files as a `tf.data.Dataset` of padded query batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.batches import BatchOptions, InMemory, OnDisk, Streamed
from tfr_smooth.data.letor_format import PLAIN, LetorFormat
from tfr_smooth.data.letor_lines import sizes_files
from tfr_smooth.data.letor_parser import WORKERS, LetorSummary, Query, read_queries, summary_of
from tfr_smooth.data.query_cache import QueryCache, cached_queries
from tfr_smooth.data.text_files import FilePattern, expand_paths


def read_letor(
    file_pattern: FilePattern,
    *,
    batch_size: int,
    num_features: int | None = None,
    list_size: int | None = None,
    shuffle_buffer: int = 0,
    seed: int | None = None,
    num_epochs: int | None = 1,
    first_epoch: int = 0,
    drop_remainder: bool = False,
    return_ids: bool = False,
    cache: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    group_by_length: bool = False,
    format: LetorFormat | None = None,
) -> tf.data.Dataset:
    r"""Reads LETOR files into a dataset of padded query batches.

    A line of a file is `label qid:text index:value ... # comment`, and the lines of a query are contiguous. Labels are
    numbers >= 0. Feature indices start at 1, in any order; features that a line omits are 0. The text after `qid:` may
    be any text without whitespace. Blank lines and lines that start with `#` are skipped. Lines may have Windows line
    ends, and a file may start with a UTF-8 byte order mark. Queries longer than `list_size` are truncated to their
    first `list_size` documents in file order; nothing else is left out. `format` describes other formats.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, on disk or on a file system of `tf.io.gfile` (`gs://`,
        `hdfs://`, ...). Files that end in `.gz`, `.bz2` or `.zst` are decompressed. Matches of a pattern are read in
        sorted order, a list in its own order.
      batch_size: Queries per batch, >= 1.
      num_features: Width of the feature matrix, >= 1; a higher index in a file is an error. None first scans all files
        for the highest index, as `scan_letor` does; to avoid the scan, pass the `num_features` of an earlier
        `scan_letor`.
      list_size: Documents per list, >= 1. None pads to the longest list of each batch.
      shuffle_buffer: Queries in the shuffle buffer, >= 0. 0 keeps the file order. For a uniform order, use at least the
        number of queries.
      seed: Seed of the order, >= 0. The order of epoch e depends only on (`seed`, e), so a dataset with `first_epoch=e`
        resumes exactly where an uninterrupted one would be. Each new pass over the dataset restarts at `first_epoch`:
        with `num_epochs=1`, `model.fit(dataset, epochs=5)` uses the same order five times (use `num_epochs=None` with
        `steps_per_epoch`, or a new dataset for each epoch). None shuffles differently in each epoch and each pass,
        depending on `tf.random.set_seed`.
      num_epochs: Number of epochs, >= 1. None repeats forever. Batches never span epochs.
      first_epoch: Index of the first epoch, >= 0. Used only with `seed`.
      drop_remainder: Whether to drop the last batch of an epoch if it is not full.
      return_ids: Whether to add "query_id" and "doc_id" to the inputs. The document id is X in a comment `#docid = X`,
        and "" if there is none.
      cache: Whether to keep the data in memory. The files are parsed once, in this call, and the dataset then runs
        without Python: it can be sent to other processes, such as the workers of a parameter server.
      cache_dir: A directory for a binary copy of the files. It is created in this call, reused by later calls in any
        process, and created again when a file has changed (its size or modification time). Without `cache`, batches are
        read from that copy, which may be larger than memory. With `cache`, each process that iterates the dataset loads
        the copy into memory. None creates no copy.
      group_by_length: Whether to batch lists of similar length to reduce padding. Queries are sorted by length within
        pools of 50 batches. With `shuffle_buffer`, lengths get up to 10% noise, so that batches differ from epoch to
        epoch, and the batches of a pool are shuffled. Each epoch still contains every query once, in batches of the
        same size.
      format: The format of the files. None uses the defaults of `LetorFormat`.

    `cache` and `cache_dir` do not change the batches or their order.

    Returns:
      A dataset of `(inputs, labels)`, labels float32 [batch, list] with -1 for padding, where
      `inputs` is a dict of
        "features": float32 [batch, list, num_features], 0 for padding;
        "mask": bool [batch, list], False for padding;
        "query_id": string [batch], only with `return_ids`;
        "doc_id": string [batch, list], "" for padding, only with `return_ids`.

    Raises:
      ValueError: If an argument is invalid, a pattern matches no file, or the first scan finds malformed input
        (`path:line: problem`).
      tf.errors.InvalidArgumentError: If iteration finds malformed input (`path:line: problem`): a label or value that
        is not a finite float32 number, a negative label, no query id, an index that is below 1, repeated in a line or
        greater than `num_features`, a query whose lines are not contiguous or are in two files, a file without
        documents, damaged compressed data, or text that is not UTF-8.

    Without a cache, files are streamed: memory holds the current query, `shuffle_buffer` queries, a few batches (50
    more with `group_by_length`), and the ids of the queries read so far. Time is linear in the size of the files. The
    dataset knows its number of batches if this call read the files, for a cache or for the highest index. Under
    `tf.distribute`, every worker reads all files and keeps its shard of the data.

    Example:
      >>> import os, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "train.txt")
      ...     with open(path, "w") as file:
      ...         _ = file.write("1 qid:a 1:0.5 2:2 #docid = d7\n0 qid:a 2:1\n0 qid:b 1:0.1\n")
      ...     dataset = read_letor(path, batch_size=2, num_features=2)
      ...     inputs, labels = next(iter(dataset))
      >>> inputs["features"].shape, inputs["mask"].numpy().tolist(), labels.numpy().tolist()
      (TensorShape([2, 2, 2]), [[True, True], [True, False]], [[1.0, 0.0], [0.0, -1.0]])
    """
    format = PLAIN if format is None else _arguments.instance("format", format, LetorFormat)
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
    _arguments.boolean("cache", cache)
    paths = expand_paths(file_pattern)
    if cache or cache_dir is not None:
        queries = load_queries(cache_dir, paths, num_features, format)
        return (InMemory if cache else OnDisk)(queries, options).dataset()
    count = None
    if num_features is None:
        summary = _summary(paths, format)
        count, num_features = summary.queries, summary.num_features
    return Streamed(_query_dataset(paths, format, num_features, options), options, count).dataset()


def scan_letor(
    file_pattern: FilePattern,
    *,
    format: LetorFormat | None = None,
) -> LetorSummary:
    r"""Reads LETOR files once, validates every line and returns a summary.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, as for `read_letor`.
      format: The format of the files. None uses the defaults of `LetorFormat`.

    Returns:
      A `LetorSummary`.

    Raises:
      ValueError: If an argument is invalid, a pattern matches no file, or the input is malformed
        (`path:line: problem`).

    One pass over the files, as slow as one epoch of `read_letor`. Memory holds a few queries, and the ids and sizes of
    those read so far.

    Example:
      >>> import os, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "train.txt")
      ...     with open(path, "w") as file:
      ...         _ = file.write("1 qid:a 1:0.5 3:2\n0 qid:a 2:1\n0 qid:b 1:0.1\n")
      ...     summary = scan_letor(path)
      >>> summary.queries, summary.documents, summary.num_features, summary.longest_list
      (2, 3, 3, 2)
    """
    format = PLAIN if format is None else _arguments.instance("format", format, LetorFormat)
    return summary_of(expand_paths(file_pattern), format)


def _summary(paths: list[str], format: LetorFormat) -> LetorSummary:
    """Returns the summary of files, which must have features."""
    summary = summary_of(paths, format)
    if summary.num_features == 0:
        raise ValueError(f"`file_pattern` must match files with features, got none in {paths}.")
    return summary


def load_queries(
    cache_dir: str | os.PathLike[str] | None,
    paths: list[str],
    num_features: int | None,
    format: LetorFormat = PLAIN,
) -> QueryCache:
    """Returns the queries of files, in memory or from a cache directory. See `read_letor` for the arguments."""

    def cached(width: int | None) -> QueryCache:
        def parse() -> tuple[int, Iterator[Query]]:
            queries = read_queries(paths, width, format=format, workers=WORKERS)
            first = next(queries)
            if first.features.shape[1] == 0:
                raise ValueError("no features in the first document")
            return first.features.shape[1], itertools.chain([first], queries)

        if cache_dir is None:
            return QueryCache.in_memory(*parse())
        sources = [*paths, *filter(None, sizes_files(paths, format))]
        return cached_queries(cache_dir, sources, {"num_features": num_features, **format.settings()}, parse)

    try:
        # The first document usually has all features, which saves a scan for the highest index.
        return cached(num_features)
    except ValueError:
        if num_features is not None:
            raise
        return cached(_summary(paths, format).num_features)


def _query_dataset(paths: list[str], format: LetorFormat, num_features: int, options: BatchOptions) -> tf.data.Dataset:
    """Returns a dataset with one unpadded query per element."""
    signature = {
        "features": tf.TensorSpec([None, num_features], tf.float32),
        "labels": tf.TensorSpec([None], tf.float32),
    }
    if options.return_ids:
        signature["query_id"] = tf.TensorSpec([], tf.string)
        signature["doc_id"] = tf.TensorSpec([None], tf.string)

    def generate() -> Iterator[dict[str, Any]]:
        for query in read_queries(paths, num_features, options.list_size, format=format, workers=WORKERS):
            element: dict[str, Any] = {"features": query.features, "labels": query.labels}
            if options.return_ids:
                element["query_id"] = query.query_id
                element["doc_id"] = np.array(query.doc_ids, dtype=object)
            yield element

    return tf.data.Dataset.from_generator(generate, output_signature=signature)
