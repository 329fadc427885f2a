"""LETOR and SVMlight text files as `Lists`.

Lines are parsed as bytes: `float(b"...")` accepts only ASCII digits, and patterns of bytes know only ASCII whitespace,
so query ids may contain any other text.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tfr_smooth import _arguments
from tfr_smooth.data.column_values import dense_column
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading.conversion import by_size, converted
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths, numbered_lines, state_of
from tfr_smooth.data.roles import DENSE, Roles

_MAX_LABEL = 1023  # the limit for trec_eval
_BLOCK_BYTES = 1 << 18  # of lines that are parsed at once; not tuned, benchmarks/reader.py measures the speed
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_MAX_INDEX = 2**31 - 1
# A "#" inside a query id starts no comment.
_LINE = re.compile(rb"\s*([^\s:#]+(?!\S))?\s*(qid:\S*)?\s*([^#]*)#?(.*)", re.DOTALL)
_DOC_ID = re.compile(rb"\s*docid\s*=\s*(\S+)")
_ONE_PER_LINE = bytes.maketrans(b" \t\r\v\f", b"\n" * 5)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LetorFormat:
    """The format of ranking files, for `read_letor` and `read_split`.

    Args:
      query_ids: Where a line contains its query id. "qid": `qid:text` after the label. "comment": the first word of the
        comment, as in `2 1:0.5 # 934`; there are no document ids then.
      first_index: The index of the first feature: 1 or 0.
      missing: Tokens for missing values and their replacements, finite numbers: `{"NULL": 0}` reads `1:NULL`. A token
        may be a number as it is in the files, such as "-999". None allows no missing values.
      labeled: Whether to read labels. If False, all labels are 0, and a line may have any label or none.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> LetorFormat(missing={"NULL": 0}).missing
      {'NULL': 0.0}
    """

    query_ids: str = "qid"
    first_index: int = 1
    missing: Mapping[str, float] | None = None
    labeled: bool = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.choice("query_ids", self.query_ids, ("qid", "comment"))
        if isinstance(self.first_index, bool) or self.first_index not in (0, 1):
            raise ValueError(f"`first_index` must be 0 or 1, got {self.first_index!r}.")
        _arguments.boolean("labeled", self.labeled)
        missing = _arguments.instance("missing", self.missing, Mapping, optional=True)
        checked = {}
        for token, value in (missing or {}).items():
            if not isinstance(token, str) or set(token) & set(" \t\n\r\v\f#"):
                raise ValueError(f"`missing` must have tokens without whitespace or '#', got {token!r}.")
            checked[token] = _arguments.real(f"missing[{token!r}]", value, least=-_FLOAT32_MAX, most=_FLOAT32_MAX)
        object.__setattr__(self, "missing", None if missing is None else checked)


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
      file_pattern: A path, a glob pattern, or a list of these, on disk or on a file system of pyarrow
        (`s3://`, `gs://`, `hdfs://`). Files that end in `.gz`, `.bz2` or `.zst` are decompressed. Matches of a pattern
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
    settings = {"kind": "letor", "num_features": num_features, **dataclasses.asdict(format)}
    convert = functools.partial(converted, cache_dir, list(map(state_of, paths)), settings, roles)

    try:
        # The first documents usually have all features, which saves a scan for the highest index.
        return convert(lambda: _tables(paths, num_features, format))
    except _WiderError:
        width = max(block.width for block in read_blocks(paths, format))
    if width == 0:
        raise ValueError(f"`file_pattern` must match files with features, got none in {paths}.")
    return convert(lambda: _tables(paths, width, format))


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


class Head(NamedTuple):
    """One document line, with its features still as text."""

    number: int
    label: float
    query_id: bytes
    doc_id: bytes
    features: bytes


class Block(NamedTuple):
    """The documents of consecutive lines of a file.

    Args:
      heads: The documents.
      rows: int64 [values], the document of each value.
      places: int64 [values], the feature of each value, from 0.
      values: float64 [values].
    """

    heads: list[Head]
    rows: np.ndarray
    places: np.ndarray
    values: np.ndarray

    @property
    def width(self) -> int:
        """The number of features up to the highest one."""
        return int(self.places.max(initial=-1)) + 1


def read_blocks(paths: Sequence[str], format: LetorFormat, num_features: int | None = None) -> Iterator[Block]:
    """Yields the documents of ranking files in file order.

    Args:
      paths: The files in reading order.
      format: The format of the files.
      num_features: The number of features; a higher index in a file is an error. None allows any.

    Raises:
      ValueError: If the input is malformed (`path:line: problem`).

    Linear time in the size of the files. Memory holds 256 kB of text, and the query ids.
    """
    seen: set[bytes] = set()
    for path in paths:
        lines = by_size(numbered_lines(path), _BLOCK_BYTES, lambda line: len(line[1]))
        parsed = (_parse(path, format, num_features, part) for part in lines)  # noqa: B023
        blocks = (block for block in parsed if block.heads)
        last = None
        for block in blocks:
            for head in block.heads:
                if head.query_id != last:
                    last = head.query_id
                    if last in seen:
                        expected = "its lines must be contiguous in one file"
                        raise ValueError(f"{path}:{head.number}: duplicate query {_shown(last)}: {expected}")
                    seen.add(last)
            yield block
        if last is None:
            raise ValueError(f"{path}: the file has no documents")


def _parse(path: str, format: LetorFormat, num_features: int | None, lines: Iterable[tuple[int, bytes]]) -> Block:
    """Parses lines; the error is that of the first bad one."""
    heads: list[Head] = []
    try:
        for number, line in lines:
            head = parse_head(line, number, format)
            if head is not None:
                heads.append(head)
        block = _parse_features(heads, format)
        if num_features is not None and block.width > num_features:
            raise ValueError(f"feature index exceeds num_features={num_features}")
    except ValueError as error:
        problems = ((head.number, _problem(head.features, format, num_features)) for head in heads)
        number, problem = next(filter(operator.itemgetter(1), problems), (number, str(error)))
        raise ValueError(f"{path}:{number}: {problem}") from None
    return block


def parse_head(line: bytes, number: int, format: LetorFormat) -> Head | None:
    """Parses a line except for its features.

    Args:
      line: `label qid:text index:value ... # comment`, with or without a line end.
      number: The line number.
      format: The format of the line.

    Returns:
      The head, or None for a blank line or a line with only a comment.

    Raises:
      ValueError: If the line is malformed.
    """
    label, query, features, comment = _LINE.fullmatch(line).groups()  # type: ignore[union-attr]
    if not (label or query or features):
        return None
    value = _parse_label(label or line.split(None, 1)[0]) if format.labeled else 0.0
    by_comment = format.query_ids == "comment"
    if query is not None and by_comment:
        raise ValueError(f"unexpected query id {_shown(query)} with `query_ids='comment'`")
    query_id = b"".join(comment.split(None, 1)[:1]) if by_comment else (query or b"")[4:]
    if not query_id and by_comment:
        raise ValueError("no query id: expected '# <text>' after the features with `query_ids='comment'`")
    if not query_id:
        words = line.split(None, 2)[label is not None :]
        got = _shown(words[0]) if words else "the end of the line"
        hint = "; `LetorFormat(query_ids='comment')` reads the first word after '#'" if b"#" in line else ""
        raise ValueError(f"no query id: expected 'qid:<text>' after the label, got {got}{hint}")
    try:
        query_id.decode()
    except UnicodeDecodeError:
        raise ValueError(f"query id {query_id!r} is not UTF-8 text") from None
    match = None if by_comment else _DOC_ID.match(comment)
    return Head(number, value, query_id, _document_id(match[1]) if match else b"", features)


def _document_id(text: bytes) -> bytes:
    """Returns the text in UTF-8; other comments are taken as Latin-1, in which all bytes are characters."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1").encode()
    return text


def _parse_features(heads: list[Head], format: LetorFormat) -> Block:
    """Returns the features of documents, read as a CSV file with one pair `index:value` on each line.

    Numbers are those that Python has; an index may be hexadecimal, too.

    Raises:
      ValueError: If one is malformed; `_problem` says which.
    """
    # The first line is for files without any; it is dropped.
    text = b"1:0\n" + b"\n".join([head.features for head in heads]).translate(_ONE_PER_LINE)
    kinds = {"index": pa.int32(), "value": pa.string() if format.missing else pa.float64()}
    pairs = csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(use_threads=False, column_names=[*kinds]),
        csv.ParseOptions(delimiter=":", quote_char=False),
        csv.ConvertOptions(column_types=kinds, null_values=[]),
    )
    values, is_token = pairs["value"], np.False_
    if format.missing:
        numbers = list(map(repr, format.missing.values()))
        tokens = pc.index_in(values, pa.array([*format.missing]))
        values = pc.coalesce(pc.take(pa.array(numbers), tokens), values).cast(pa.float64())
        is_token = tokens.is_valid().to_numpy()[1:]
    known = values.to_numpy()[1:]
    places = pairs["index"].to_numpy()[1:] - np.int64(format.first_index)
    rows = np.repeat(np.arange(len(heads)), [head.features.count(b":") for head in heads])
    block = Block(heads, rows, places, known)
    flat = rows * block.width + places
    if (places < 0).any() or not (is_token | (np.abs(known) <= _FLOAT32_MAX)).all():  # which is False for NaN
        raise ValueError("an index or a value is out of range")
    if not (np.diff(flat) > 0).all() and len(np.unique(flat)) < len(flat):
        raise ValueError("duplicate feature index")
    return block


def _problem(features: bytes, format: LetorFormat, num_features: int | None) -> str:
    """Returns what is wrong with the features of a document; "" if nothing is."""
    first, indices = format.first_index, set[int]()
    for piece in features.split():
        index, colon, value = piece.partition(b":")
        if not colon:
            return f"expected 'index:value', got {_shown(piece)}"
        number = int(index) if index.isdigit() and len(index) <= len(str(_MAX_INDEX)) else -1
        if not first <= number <= _MAX_INDEX:
            hint = "; `LetorFormat(first_index=0)` reads indices from 0" if number == 0 else ""
            return f"feature index {_shown(index)} is not an integer from {first} to {_MAX_INDEX}{hint}"
        if number in indices:
            return f"duplicate feature index {number}"
        indices.add(number)
        token = value.decode(errors="replace")
        if token not in (format.missing or {}) and _float32(value) is None:
            is_word = len(value) < 20 and not set(value) & set(b":0123456789")
            hint = f"; `LetorFormat(missing={{{token!r}: VALUE}})` reads it as VALUE" if is_word else ""
            return f"value of feature {number}: {_shown(value)} is not a finite float32 number{hint}"
    if num_features is not None and max(indices, default=0) - first >= num_features:
        from_0 = " (indices start at 0)" if first == 0 else ""
        return f"feature index {max(indices)} exceeds num_features={num_features}{from_0}"
    return ""


def _parse_label(text: bytes) -> float:
    label = _float32(text)
    if label is None or label < 0:
        problem = "is not a finite float32 number" if label is None else "is negative, which marks padding"
        is_other = label is not None or b":" in text
        hint = "; `LetorFormat(labeled=False)` reads documents without labels" if is_other else ""
        raise ValueError(f"label {_shown(text)} {problem}{hint}")
    return label


def _float32(text: bytes) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # The comparison is also False for NaN.
    return value if abs(value) <= _FLOAT32_MAX and b"_" not in text else None


def _shown(text: bytes) -> str:
    """Returns the text in quotes, truncated if it is long."""
    decoded = text.decode(errors="replace")
    return repr(decoded if len(decoded) <= 60 else decoded[:57] + "...")
