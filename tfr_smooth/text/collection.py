"""The reader of text collections, as tables with one row per query and candidate document."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tfr_smooth import _arguments, _extras, evaluation
from tfr_smooth.data.reading.text_files import numbered_lines
from tfr_smooth.text.candidates import bm25

_Path = str | os.PathLike[str]
_COLUMNS = ("query_id", "doc_id", "query", "text", "label", "score")


def read_collection(
    documents: _Path,
    queries: _Path,
    qrels: _Path,
    *,
    run: _Path | None = None,
    topn: int = 100,
    gains: Mapping[int, int] | None = None,
    source_grade: int | None = None,
) -> Any:
    r"""Reads a collection from tab-separated files and TREC judgments, with candidates of each query.

    Args:
      documents: Path of a UTF-8 file with the header `doc_id<TAB>title<TAB>text` or `doc_id<TAB>text` and one document
        per line.
      queries: Path of a UTF-8 file with the header `query_id<TAB>text` and one query per line.
      qrels: Path of a TREC qrels file with the lines `query_id 0 doc_id grade`.
      run: Path of a TREC run with the candidates. None retrieves them by `bm25`.
      topn: The most candidates per query, >= 1.
      gains: Label of each grade, such as {1: 4, 2: 3, 3: 2, 4: 1} for a collection whose best grade is 1. None uses the
        grades as labels, and 0 for negative grades.
      source_grade: Grade of the source documents of a query (the documents from which the query was written), which are
        no candidates. None if the collection has none.

    Returns:
      A pandas DataFrame with the columns "query_id", "doc_id", "query", "text" (the title and the text), "label" and
      "score" (of the run). Relevant documents that are no candidates have a missing score; they are for training only.

    Raises:
      ValueError: Bad input, as `path:line: what is wrong`: an unknown header, a wrong number of columns, an empty or
        duplicate id, an empty query, a judgment or candidate of an unknown query or document, or a grade without a
        gain.
      ImportError: If the extra `tfr_smooth[text]` is not installed.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import text
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "docs.tsv").write_text("doc_id\ttitle\ttext\nd1\tWings\tOn lift.\nd2\t\tOn heat.\n")
      >>> _ = (folder / "queries.tsv").write_text("query_id\ttext\nq1\tlift of wings\n")
      >>> _ = (folder / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 3\n")
      >>> table = text.read_collection(folder / "docs.tsv", folder / "queries.tsv", folder / "qrels.txt")
      >>> table[["doc_id", "text", "label"]].values.tolist(), table["score"].isna().tolist()
      ([['d1', 'Wings On lift.', 1], ['d2', 'On heat.', 3]], [False, True])
    """
    with _extras.needed("pandas", extra="text", by="`read_collection`"):
        import pandas as pd
    topn = _arguments.integer("topn", topn, least=1)
    contents: dict[str, str] = {}
    for _, (doc_id, *texts) in _rows(documents, ("doc_id\ttitle\ttext", "doc_id\ttext")):
        contents[doc_id] = " ".join(texts).strip()
    asked: dict[str, str] = {}
    for place, (query_id, text) in _rows(queries, ("query_id\ttext",)):
        if not text.strip():
            raise ValueError(f"{place}: query {query_id!r} is empty")
        asked[query_id] = text
    known = (queries, asked), (documents, contents)
    labels: dict[str, dict[str, int]] = {query_id: {} for query_id in asked}
    sources: dict[str, set[str]] = {query_id: set() for query_id in asked}
    for query_id, judged in evaluation.read_qrels(qrels).items():
        for doc_id, grade in judged.items():
            _check_known(qrels, (query_id, doc_id), *known)
            if grade == source_grade:
                sources[query_id].add(doc_id)
            elif gains is not None and grade not in gains:
                place = _place(qrels, query_id, doc_id)
                raise ValueError(f"{place}: grade {grade} has no gain: `gains` has the grades {sorted(gains)}")
            else:
                labels[query_id][doc_id] = max(0, grade) if gains is None else gains[grade]
    if run is None:
        most = topn + max(map(len, sources.values()), default=0)
        found = bm25(asked, contents, topn=most)
    else:
        found = evaluation.read_run(run)
        for query_id, doc_id in ((query_id, doc_id) for query_id, scores in found.items() for doc_id in scores):
            _check_known(run, (query_id, doc_id), *known)
    rows = []
    for query_id, query in asked.items():
        apart, scores = sources[query_id], found.get(query_id, {})
        # Break ties as trec_eval does.
        ranked = sorted(((score, doc_id) for doc_id, score in scores.items() if doc_id not in apart), reverse=True)
        best: dict[str, float | None] = {doc_id: score for score, doc_id in ranked[:topn]}
        judged = labels[query_id]
        for doc_id, score in {**{doc_id: None for doc_id, label in judged.items() if label}, **best}.items():
            rows.append((query_id, doc_id, query, contents[doc_id], judged.get(doc_id, 0), score))
    return pd.DataFrame(rows, columns=[*_COLUMNS]).astype({"score": float})


def _rows(path: _Path, headers: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yields `path:line` and the columns of each line after the header."""
    lines = ((f"{os.fspath(path)}:{number}", line) for number, line in numbered_lines(os.fspath(path)))
    rows = ((place, line.decode().rstrip("\r\n").split("\t")) for place, line in lines)
    place, header = next(rows, (f"{os.fspath(path)}:1", [""]))
    if "\t".join(header) not in headers:
        expected = " or ".join(map(repr, headers))
        raise ValueError(f"{place}: expected the header {expected}, got {chr(9).join(header)[:80]!r}")
    seen: set[str] = set()
    for place, row in rows:
        if row == [""]:
            continue
        if len(row) != len(header):
            raise ValueError(f"{place}: expected {len(header)} columns separated by tabs, got {len(row)}")
        if not row[0] or row[0] in seen:
            raise ValueError(f"{place}: " + (f"duplicate id {row[0]!r}" if row[0] else "the id is empty"))
        seen.add(row[0])
        yield place, row


def _check_known(path: _Path, ids: tuple[str, str], *known: tuple[_Path, Mapping[str, str]]) -> None:
    """Checks that a query and a document of TREC's file are in the files of queries and documents."""
    for kind, name, (source, texts) in zip(("query", "document"), ids, known, strict=True):
        if name not in texts:
            raise ValueError(f"{_place(path, *ids)}: {kind} {name!r} is not in {os.fspath(source)}")


def _place(path: _Path, query_id: str, doc_id: str) -> str:
    """Returns `path:line` of the first line about a query and a document."""
    for number, line in numbered_lines(os.fspath(path)):
        found = [field.decode() for field in line.split()]
        if found and (found[0], found[2]) == (query_id, doc_id):
            return f"{os.fspath(path)}:{number}"
    raise AssertionError(f"no line of {query_id} and {doc_id}")
