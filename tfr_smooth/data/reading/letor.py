"""LETOR and SVMlight text files as `Lists`, and back."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth import _arguments, _files
from tfr_smooth.data.column_values import ColumnValues, dense_column
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading.conversion import converted, whole_queries
from tfr_smooth.data.reading.letor_parser import QUERY_MIN, LetorFormat, read_blocks, sizes_files
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths, state_of
from tfr_smooth.data.roles import DENSE, Roles

_MAX_LABEL = 1023  # the limit for trec_eval
_ROWS_AT_ONCE = 2**14


def read_letor(
    file_pattern: FilePattern,
    *,
    num_features: int | None = None,
    format: LetorFormat | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Lists:
    r"""Returns the lists of LETOR or SVMlight text files.

    A line of a file is `label qid:text index:value ... # comment`, and the lines of a query are contiguous. Labels
    are numbers >= 0. Feature indices start at 1, in any order; features that a line omits are 0. The text after
    `qid:` may be any text without whitespace. Blank lines and lines that start with `#` are skipped. Lines may have
    Windows line ends, and a file may start with a UTF-8 byte order mark. The document id is X in a comment
    `#docid = X`, and "" if there is none. `format` describes other formats.

    The files are parsed once, into a file of the cache folder that later calls in any process map into memory. So
    the lists may be larger than memory.

    Args:
      file_pattern: A path, a glob pattern, or a list of these, on disk or on a file system of `tf.io.gfile`
        (`gs://`, `hdfs://`, ...). Files that end in `.gz`, `.bz2` or `.zst` are decompressed. Matches of a pattern
        are read in sorted order, a list in its own order.
      num_features: Width of the feature matrix, >= 1; a higher index in a file is an error. None uses the highest
        index in the files.
      format: The format of the files. None uses the defaults of `LetorFormat`.
      cache_dir: The cache folder, created if missing. Its files are written again when a source has changed (its
        size or modification time), and when they are damaged. None uses `$XDG_CACHE_HOME/tfr_smooth/lists`, by
        default `~/.cache/tfr_smooth/lists`.

    Returns:
      The lists. The features are one column, "features".

    Raises:
      ValueError: If an argument is invalid, a pattern matches no file, or the input is malformed
        (`path:line: problem`): a label or value that is not a finite float32 number, a negative label, no query id,
        an index that is below 1, repeated in a line or greater than `num_features`, a query whose lines are not
        contiguous or are in two files, a file without documents or features, damaged compressed data, or a query
        id that is not UTF-8.

    Time is linear in the size of the files. Memory holds about 64 MB of features, and the query ids.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
      >>> _ = path.write_text("1 qid:a 1:0.5 2:2 #docid = d7\n0 qid:a 2:1\n0 qid:b 1:0.1\n")
      >>> lists = data.read_letor(path, cache_dir=path.parent)
      >>> lists.summary()[:4], lists.values("features").tolist()
      ((2, 3, 2, 2), [[0.5, 2.0], [0.0, 1.0], [0.10000000149011612, 0.0]])
    """
    format = LetorFormat() if format is None else _arguments.instance("format", format, LetorFormat)
    num_features = _arguments.integer_or_none("num_features", num_features, least=1)
    paths = expand_paths(file_pattern)
    label = ("label",) if format.labeled else ()
    roles = Roles(query="query_id", labels=label, document_id="document_id", features=(DENSE,))
    sources = [*paths, *filter(None, sizes_files(paths, format))]
    options = dataclasses.asdict(dataclasses.replace(format, group_sizes=None))
    settings = {"kind": "letor", "num_features": num_features, **options}
    convert = functools.partial(converted, cache_dir, list(map(state_of, sources)), settings, roles)

    def tables(width: int | None) -> Iterator[pa.Table]:
        blocks = _tables(paths, width, format)
        by_query = QUERY_MIN in (format.missing or {}).values()
        return map(_with_minima, whole_queries(blocks, roles.query)) if by_query else blocks

    try:
        # The first documents usually have all features, which saves a scan for the highest index.
        return convert(lambda: tables(num_features))
    except _WiderError:
        width = max(block.width for block in read_blocks(paths, format))
    if width == 0:
        raise ValueError(f"`file_pattern` must match files with features, got none in {paths}.")
    return convert(lambda: tables(width))


def read_split(
    files: Mapping[str, FilePattern],
    *,
    num_features: int | None = None,
    format: LetorFormat | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> dict[str, Lists]:
    r"""Reads training, validation and test files, and refuses what would otherwise fail hours later.

    Args:
      files: The files of "train", "valid" and "test", each as for `read_letor`.
      num_features: The width of the feature matrix, >= 1. None uses that of the training files.
      format: The format of the files. None uses the defaults of `LetorFormat`.
      cache_dir: The cache folder, as for `read_letor`.

    Returns:
      The lists of each part, with the same number of features.

    Raises:
      ValueError: If files or rows of a part are malformed, a part has more features than the matrix, all training or
        all validation labels are 0, or validation or test labels are fractions or exceed 1023, which trec_eval does not
        support. The message names the part.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "a").write_text("1 qid:1 2:1\n"), (folder / "b").write_text("1 qid:1 1:1\n")
      >>> parts = read_split({"train": folder / "a", "valid": folder / "a", "test": folder / "b"}, cache_dir=folder)
      >>> {part: (len(lists), lists.num_features) for part, lists in parts.items()}
      {'train': (1, 2), 'valid': (1, 2), 'test': (1, 2)}
    """
    width, parts = num_features, {}
    for part, pattern in files.items():
        try:
            parts[part] = read_letor(pattern, num_features=width, format=format, cache_dir=cache_dir)
        except ValueError as error:
            hint = ", the width of the training files" if num_features is None and "exceeds" in str(error) else ""
            raise ValueError(f"{part}: {error}{hint}") from None
        width = width or parts["train"].num_features
        summary = parts[part].summary()
        if part != "test" and summary.highest_label == 0:
            raise ValueError(f"`{part}` must have a label above 0, got 0 for all {summary.documents} documents.")
        if part != "train" and not (summary.whole_labels and summary.highest_label <= _MAX_LABEL):
            kind = f"labels up to {summary.highest_label:g}" if summary.whole_labels else "fractional labels"
            expected = f"labels that are whole numbers from 0 to {_MAX_LABEL}, for trec_eval"
            raise ValueError(f"`{part}` must have {expected}, got {kind}.")
    return parts


class _WiderError(Exception):
    """A document has more features than those before."""


def _tables(paths: list[str], width: int | None, format: LetorFormat) -> Iterator[pa.Table]:
    """Yields the documents of files; without a width, with that of the first ones."""
    for block in read_blocks(paths, format, width):
        heads, width = block.heads, width or block.width
        if width == 0 or block.width > width:
            raise _WiderError
        matrix = np.zeros([len(heads), width], np.float32)
        matrix[block.rows, block.places] = block.values
        columns: dict[str, Any] = {"query_id": _text([head.query_id for head in heads])}
        if format.labeled:
            columns["label"] = pa.array([head.label for head in heads], pa.float32())
        columns["document_id"] = _text([head.doc_id for head in heads])
        yield pa.table({**columns, DENSE: dense_column(matrix)})


def _text(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.binary()).cast(pa.string())


def _with_minima(batch: pa.RecordBatch) -> pa.Table:
    """Returns whole queries with the minimum of the query, or 0, in place of NaN."""
    codes = batch["query_id"].dictionary_encode().indices.to_numpy()
    features = ColumnValues(pa.chunked_array([batch[DENSE]]))(np.arange(len(batch)))
    absent, starts = np.isnan(features), np.flatnonzero(np.diff(codes, prepend=-1))
    lowest = np.minimum.reduceat(np.where(absent, np.inf, features), starts)
    filled = np.where(absent, np.where(np.isfinite(lowest), lowest, 0.0)[codes], features)
    return pa.table({**dict(zip(batch.schema.names, batch.columns, strict=True)), DENSE: dense_column(filled)})


def write_letor(lists: Lists, path: str | os.PathLike[str]) -> None:
    r"""Writes the documents as a LETOR text file, which `read_letor` reads as the same lists.

    Args:
      lists: The lists.
      path: The file to write, atomically; compressed if its name ends in ".gz", ".bz2" or ".zst". Floats have as
        many digits as float32 needs.

    Raises:
      ValueError: If the features are not one column "features", there are several labels, or an id has whitespace.

    Time is linear in the number of values. Memory holds 16,384 documents.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
      >>> data.write_letor(data.from_arrays([[0.1, 2], [0.2, 0]], [1, 0], ["a", "a"]), path)
      >>> path.read_text()
      '1 qid:a 1:0.1 2:2\n0 qid:a 1:0.2 2:0\n'
    """
    if lists.roles.features != (DENSE,) or len(lists.roles.labels) > 1:
        expected = f"one column {DENSE!r} and at most one label"
        raise ValueError(f"`write_letor` must have {expected}, got the columns {lists.roles.columns}.")
    ids = [str(query_id) for query_id in lists.query_ids.to_pylist()]
    with _files.replacing(path) as temporary, pa.output_stream(os.fspath(temporary), buffer_size=1 << 16) as file:
        for line in _lines(lists, ids):
            file.write(line)


def _lines(lists: Lists, ids: list[str]) -> Iterator[bytes]:
    features, queries = lists.column(DENSE), np.repeat(np.arange(len(lists)), lists.lengths)
    label = lists.column(lists.roles.labels[0]) if lists.roles.labels else None
    document = None if lists.roles.document_id is None else lists.column(lists.roles.document_id)
    rows = lists.rows
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        labels = np.zeros(len(part), np.float32) if label is None else label(part)
        names = [b""] * len(part) if document is None else document(part)
        for query, value, row, name in zip(queries[start:], labels, features(part), names, strict=False):
            words = [number_text(value), f"qid:{_word(ids[query])}"]
            words += [f"{index}:{number_text(number)}" for index, number in enumerate(row, 1)]
            comment = f" #docid = {_word(name.decode())}" if name else ""
            yield f"{' '.join(words)}{comment}\n".encode()


def _word(text: str) -> str:
    if text.split() != [text]:
        raise ValueError(f"`write_letor` must have ids without whitespace, got {text!r}.")
    return text


def number_text(number: np.float32) -> str:
    """Returns the shortest text with the same float32 value; integers have no decimal point."""
    text = str(number)
    if abs(float(text)) > float(np.finfo(np.float32).max):  # The shortest text of the largest float32 exceeds it.
        return repr(float(number))
    return text[:-2] if text.endswith(".0") and text != "-0.0" else text
