"""Readers and writers of TREC run and qrels files."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tfr_smooth import _files
from tfr_smooth.data.reading.text_files import numbered_lines
from tfr_smooth.evaluation.trec import ScoredQuery, check_field, checked

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def write_run(path: str | os.PathLike[str], queries: Iterable[ScoredQuery], *, tag: str = "tfr_smooth") -> None:
    r"""Writes a ranker's scores as a TREC run file.

    A line is `query_id Q0 doc_id rank score tag`, with the ranks 1, 2, ... of trec_eval: by decreasing float32 score,
    ties by decreasing id. Scores have nine digits, which preserve the float32 value.

    Args:
      path: The UTF-8 file to write, in an existing directory. An existing file is replaced atomically, and unchanged on
        an error.
      queries: The queries, as for `trec_eval`, with ids without ASCII whitespace; may be empty.
      tag: The name of the ranker, not empty and without whitespace.

    Raises:
      ValueError: If `tag` or a query is invalid.

    Memory holds one query and all query ids. Time is that of sorting each query.

    Example:
      >>> import pathlib, tempfile
      >>> import numpy as np
      >>> query = ScoredQuery("q1", ["a", "b"], np.array([0, 1]), np.array([0.5, 2.0]))
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "run.txt"
      ...     write_run(path, [query], tag="mine")
      ...     path.read_text()
      'q1 Q0 b 1 2 mine\nq1 Q0 a 2 0.5 mine\n'
    """
    check_field("tag", tag)

    def lines() -> Iterator[str]:
        for query in checked(queries, in_file=True):
            ranked = sorted(zip(query.scores.tolist(), query.doc_ids, strict=True), reverse=True)
            for rank, (score, doc_id) in enumerate(ranked, 1):
                yield f"{query.query_id} Q0 {doc_id} {rank} {score:.9g} {tag}\n"

    _files.write_text(path, lines())


def write_qrels(path: str | os.PathLike[str], queries: Iterable[ScoredQuery]) -> None:
    r"""Writes the labels of queries as a TREC qrels file.

    A line is `query_id 0 doc_id label`, in the order of the documents.

    Args:
      path: The UTF-8 file to write, in an existing directory. An existing file is replaced atomically, and unchanged on
        an error.
      queries: The queries, as for `trec_eval`, with ids without ASCII whitespace; may be empty.

    Raises:
      ValueError: If a query is invalid.

    Linear time. Memory holds one query and all query ids.

    Example:
      >>> import pathlib, tempfile
      >>> import numpy as np
      >>> query = ScoredQuery("q1", ["a", "b"], np.array([0, 1]), np.array([0.5, 2.0]))
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "qrels.txt"
      ...     write_qrels(path, [query])
      ...     path.read_text()
      'q1 0 a 0\nq1 0 b 1\n'
    """

    def lines() -> Iterator[str]:
        for query in checked(queries, in_file=True):
            for doc_id, label in zip(query.doc_ids, query.labels.tolist(), strict=True):
                yield f"{query.query_id} 0 {doc_id} {label}\n"

    _files.write_text(path, lines())


def read_run(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Reads a TREC run file; ranks and tags are ignored, as in trec_eval.

    Args:
      path: A UTF-8 file with lines `query_id Q0 doc_id rank score tag`, in any order; blank lines are skipped. A file
        that ends in `.gz`, `.bz2` or `.zst` is decompressed.

    Returns:
      Query id to document id to score, a finite number, in file order.

    Raises:
      ValueError: If the file is malformed (`path:line: problem`).

    Linear time and memory.

    Example:
      >>> import pathlib, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "run.txt"
      ...     _ = path.write_text("q1 Q0 b 1 2.5 mine")
      ...     read_run(path)
      {'q1': {'b': 2.5}}
    """
    run: dict[str, dict[str, float]] = {}
    for place, (query_id, _, doc_id, _, text, _) in _fields(path, "query_id Q0 doc_id rank score tag"):
        if _NUMBER.fullmatch(text) is None or not math.isfinite(float(text)):
            raise ValueError(f"{place}: score {text!r} is not a finite number")
        _add(run.setdefault(query_id, {}), doc_id, float(text), place, query_id)
    return run


def read_qrels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Reads a TREC qrels file; the second field is ignored, as in trec_eval.

    Args:
      path: A UTF-8 file with lines `query_id 0 doc_id label`, in any order, as for `read_run`.

    Returns:
      Query id to document id to label, an integer of any sign, in file order.

    Raises:
      ValueError: If the file is malformed (`path:line: problem`).

    Linear time and memory.

    Example:
      >>> import pathlib, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "qrels.txt"
      ...     _ = path.write_text("q1 0 b 2")
      ...     read_qrels(path)
      {'q1': {'b': 2}}
    """
    qrels: dict[str, dict[str, int]] = {}
    for place, (query_id, _, doc_id, text) in _fields(path, "query_id 0 doc_id label"):
        if re.fullmatch(r"[+-]?[0-9]{1,9}", text) is None:
            raise ValueError(f"{place}: label {text!r} is not an integer of at most nine digits")
        _add(qrels.setdefault(query_id, {}), doc_id, int(text), place, query_id)
    return qrels


def _fields(path: str | os.PathLike[str], names: str) -> Iterator[tuple[str, list[str]]]:
    """Yields `path:line` and the fields of each line."""
    count = len(names.split())
    # Bytes split only at ASCII whitespace: ids may contain other whitespace.
    for number, line in numbered_lines(os.fspath(path)):
        place = f"{os.fspath(path)}:{number}"
        fields = line.split()
        if not fields:
            continue
        if len(fields) != count:
            raise ValueError(f"{place}: expected the {count} fields '{names}', got {len(fields)}")
        try:
            yield place, [field.decode() for field in fields]
        except UnicodeDecodeError as error:
            raise ValueError(f"{place}: not UTF-8 text: {error.reason}") from None


def _add(documents: dict[str, Any], doc_id: str, value: float, place: str, query_id: str) -> None:
    if doc_id in documents:
        raise ValueError(f"{place}: duplicate document {doc_id!r} in query {query_id!r}")
    documents[doc_id] = value
