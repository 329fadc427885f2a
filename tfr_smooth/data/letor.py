"""`read_letor`: LETOR / SVMlight ranking files as a `tf.data.Dataset` of padded query batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.batches import Batching, InMemory, OnDisk, Source, Streamed
from tfr_smooth.data.dense_text import read_dense
from tfr_smooth.data.epochs import BatchOptions
from tfr_smooth.data.letor_format import LetorFormat
from tfr_smooth.data.letor_lines import PLAIN
from tfr_smooth.data.letor_parser import LetorSummary, Query, read_queries, summary_of, width_of_first_row
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
    query_ids: str = "qid",
    group_sizes: FilePattern | None = None,
    first_index: int = 1,
    missing: Mapping[str, float | str] | None = None,
    labeled: bool = True,
) -> tf.data.Dataset:
    r"""Reads ranking files into batches of queries.

    A line of a file is `label qid:text index:value ... # comment`, and the lines of a query follow one another. Labels
    are numbers >= 0. Feature indexes start at 1, in any order; features that a line leaves out are 0. The text after
    `qid:` may be anything without whitespace. Blank lines and lines that start with `#` hold no document. Lines may end
    as on Windows, and a file may start with the mark of UTF-8. Queries longer than `list_size` are cut to their first
    `list_size` documents in file order; nothing else is left out. The last five arguments are for files that are
    written in another way.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, on disk or where `tf.io.gfile` reads (`gs://`,
        `hdfs://`, ...); names that end in `.gz`, `.bz2` or `.zst` are unpacked. The matches of a pattern are read in
        sorted order, a list in its own order.
      batch_size: Queries in a batch, at least 1.
      num_features: Width of the feature matrix, at least 1; a higher index in a file is an error.
        None scans all files first for the highest index (as `scan_letor` does, whose
        `num_features` may be given here).
      list_size: Documents in each list, at least 1; None pads to the longest list of each batch.
      shuffle_buffer: 0 keeps the file order; otherwise the number of queries, at least 1, among
        which the next one is drawn. For a uniform order take at least the number of queries.
      seed: Seed of the order, at least 0. The order of epoch e is a function of (`seed`, e)
        alone, so a dataset that starts at `first_epoch=e` goes on as an undisturbed one would.
        Each new pass over the dataset starts again at `first_epoch`: with `num_epochs=1`,
        `model.fit(dataset, epochs=5)` shows one order five times (take `num_epochs=None` with
        `steps_per_epoch`, or a new dataset for each epoch). None shuffles anew at every epoch and
        every pass, and then `tf.random.set_seed` decides.
      num_epochs: How often the files are read, at least 1; None repeats for ever. Batches never
        span epochs.
      first_epoch: Number of the first epoch, at least 0; matters only with `seed`.
      drop_remainder: Whether to leave out a last batch of an epoch that is not full.
      return_ids: Whether to add the ids "query_id" and "doc_id". The latter is X of a comment
        `#docid = X`, and "" where there is none.
      cache: Whether batches come from memory. The files are parsed once, at this call, and the dataset needs no Python
        then: it can be sent to other processes, such as the workers of a parameter server.
      cache_dir: A folder for a binary copy of the files, made at this call unless it is there from an earlier one, in
        any process, and made again when a file has changed (its size or time). Without `cache` batches come from that
        file, which may be larger than memory; with `cache` it is read into memory, by each process that iterates the
        dataset.
      group_by_length: Whether a batch holds lists of similar length, so that little of it is padding. Of 50 batches'
        worth of queries, in their shuffled order, those of similar length come together (to a tenth, with chance in it,
        so that batches differ from epoch to epoch), and the batches in an order of chance: each epoch still holds every
        query once, in batches of the same size.
      query_ids: Where the query of a line stands: "qid" is `qid:text` after the label; "comment" is the first word of
        the comment, as in `2 1:0.5 # 934`, and there are no document ids then.
      group_sizes: For lines without `qid:text`: files with the number of documents of each query in turn, a number a
        line, as LightGBM and XGBoost have it. A path, a pattern or a list, one for each file. None takes `FILE.query`
        or `FILE.group` beside a FILE whose first line has no `qid:text`. The query ids are "0", "1" and so on.
      first_index: The index of the first feature: 1, or 0.
      missing: What stands for a missing value, and what it becomes: a number, or "query_min", the least value of the
        feature in the query (0 if it has none there). `{"NULL": "query_min"}` reads `1:NULL`.
      labeled: False reads documents without labels, which get 0: a line may have a label, of whatever kind, or none.

    `cache` and `cache_dir` change no batch and no order.

    Returns:
      A dataset of `(inputs, labels)`, labels float32 [batch, list] with -1 for padding, where
      `inputs` is a dict of
        "features": float32 [batch, list, num_features], 0 for padding;
        "mask": bool [batch, list], False for padding;
        "query_id": string [batch], only with `return_ids`;
        "doc_id": string [batch, list], "" for padding, only with `return_ids`.

    Raises:
      ValueError: A bad argument, a pattern that matches no file, or bad input that the first scan
        meets, as `path:line: what is wrong`.
      tf.errors.InvalidArgumentError: While iterating: bad input, with `path:line: what is wrong`
        in its message. That is a label or value that is no finite float32 number, a negative
        label, no query id, an index below 1, twice in a line or over `num_features`, a query that
        comes back after its lines ended (in another file too), a file without a document, damaged
        compressed data, or text that is not UTF-8.

    Without a cache files are streamed: memory holds the query being read, `shuffle_buffer` queries, a few batches (with
    `group_by_length` 50 more), and the ids of the queries seen. Time is linear in the size of the files. The dataset
    knows its number of batches where the files were read at this call, for a cache or the highest index. Under
    `tf.distribute`, every worker reads all files and keeps its share of the data.

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
    format = LetorFormat(
        query_ids=query_ids, group_sizes=group_sizes, first_index=first_index, missing=missing, labeled=labeled
    )
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
    source, count = _source(paths, format, num_features, options.batching, cache, cache_dir)
    return options.dataset(source, count)


def scan_letor(
    file_pattern: FilePattern,
    *,
    query_ids: str = "qid",
    group_sizes: FilePattern | None = None,
    first_index: int = 1,
    missing: Mapping[str, float | str] | None = None,
    labeled: bool = True,
) -> LetorSummary:
    r"""Reads ranking files once and counts what they hold; checks every line on the way.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, as for `read_letor`.
      query_ids: As for `read_letor`, like all that follow.
      group_sizes: See `read_letor`.
      first_index: See `read_letor`.
      missing: See `read_letor`.
      labeled: See `read_letor`.

    Returns:
      A `LetorSummary`.

    Raises:
      ValueError: A bad argument, a pattern that matches no file, or bad input (`path:line: what is wrong`).

    One pass over the files, as slow as one epoch of `read_letor`; memory for a few queries and for the query ids seen.

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
    format = LetorFormat(
        query_ids=query_ids, group_sizes=group_sizes, first_index=first_index, missing=missing, labeled=labeled
    )
    return summary_of(expand_paths(file_pattern), format, read_dense=read_dense, workers=_workers())


def _source(
    paths: list[str],
    format: LetorFormat,
    num_features: int | None,
    batching: Batching,
    in_memory: bool,
    cache_dir: str | os.PathLike[str] | None,
) -> tuple[Source, int | None]:
    """Where the batches come from, and the number of queries if it is known."""
    if cache_dir is not None or in_memory:
        cache = load_queries(cache_dir, paths, num_features, format)
        return (InMemory if in_memory else OnDisk)(cache, batching), len(cache)
    count = None
    if num_features is None:
        summary = _summary(paths, format)
        count, num_features = summary.queries, summary.num_features
    queries = _query_dataset(paths, format, num_features, batching.list_size, batching.return_ids)
    return Streamed(queries, batching), count


def _summary(paths: list[str], format: LetorFormat) -> LetorSummary:
    """What some files hold, features among it."""
    summary = summary_of(paths, format, read_dense=read_dense, workers=_workers())
    if summary.num_features == 0:
        raise ValueError(f"`file_pattern` must match files with features, got none in {paths}.")
    return summary


def load_queries(
    cache_dir: str | os.PathLike[str] | None,
    paths: list[str],
    num_features: int | None,
    format: LetorFormat = PLAIN,
) -> QueryCache:
    """Returns the queries of some files, in memory or from their cache in a folder; `read_letor` has the arguments."""

    def cached(width: int | None) -> QueryCache:
        def parse() -> tuple[int, Iterator[Query]]:
            highest = width or _summary(paths, format).num_features
            return highest, read_queries(paths, highest, format=format, read_dense=read_dense, workers=_workers())

        if cache_dir is None:
            return QueryCache.in_memory(*parse())
        sizes_files = [name for name in format.sizes_files(paths) if name is not None]
        settings = {"num_features": num_features, **format.settings()}
        return cached_queries(cache_dir, [*paths, *sizes_files], settings, parse)

    try:
        # Mostly the first row has as many features as any: that saves reading all for the highest index.
        return cached(num_features or width_of_first_row(paths, format))
    except ValueError:
        if num_features is not None:
            raise
        return cached(None)


def _query_dataset(
    paths: list[str], format: LetorFormat, num_features: int, list_size: int | None, return_ids: bool
) -> tf.data.Dataset:
    """One element per query, not padded."""
    signature = {
        "features": tf.TensorSpec([None, num_features], tf.float32),
        "labels": tf.TensorSpec([None], tf.float32),
    }
    if return_ids:
        signature["query_id"] = tf.TensorSpec([], tf.string)
        signature["doc_id"] = tf.TensorSpec([None], tf.string)

    def generate() -> Iterator[dict[str, Any]]:
        queries = read_queries(paths, num_features, list_size, format=format, read_dense=read_dense, workers=_workers())
        for query in queries:
            element: dict[str, Any] = {"features": query.features, "labels": query.labels}
            if return_ids:
                element["query_id"] = query.query_id
                element["doc_id"] = np.array(query.doc_ids, dtype=object)
            yield element

    return tf.data.Dataset.from_generator(generate, output_signature=signature)


def _workers() -> int:
    """Threads that parse: more gain nothing, as one thread cuts the files into lines."""
    return min(os.cpu_count() or 1, 4)
