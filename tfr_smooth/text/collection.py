"""Text collections: documents, queries and judgments."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tfr_smooth import evaluation
from tfr_smooth.data.text_files import numbered_lines


class Document(NamedTuple):
    """A text document.

    Attributes:
      title: The title; may be empty.
      text: The text; may be empty.

    Example:
      >>> from tfr_smooth import text
      >>> text.Document("Wings", "On lift.").content
      'Wings On lift.'
    """

    title: str
    text: str

    @property
    def content(self) -> str:
        """Title and text, separated by a space."""
        return f"{self.title} {self.text}".strip()


class Collection(NamedTuple):
    """Documents, queries and judgments.

    Attributes:
      documents: Documents by doc id.
      queries: Texts by query id.
      labels: For each query id, the labels of its judged documents: a dict of doc id to an integer >= 0.
      sources: For each query id, its source documents (the documents from which the query was written), which are
        excluded from its ranking. Queries without source documents may be missing.

    Example:
      >>> from tfr_smooth import text
      >>> documents = {"d1": text.Document("Wings", "On lift."), "d2": text.Document("", "On heat.")}
      >>> collection = text.Collection(documents, {"q1": "lift of wings"}, {"q1": {"d1": 2, "d2": 0}}, {})
      >>> collection.labels["q1"]["d1"]
      2
    """

    documents: dict[str, Document]
    queries: dict[str, str]
    labels: dict[str, dict[str, int]]
    sources: dict[str, frozenset[str]]


def read_collection(
    documents: str | os.PathLike[str],
    queries: str | os.PathLike[str],
    qrels: str | os.PathLike[str],
    *,
    gains: Mapping[int, int] | None = None,
    source_grade: int | None = None,
) -> Collection:
    r"""Reads a collection from tab-separated files and TREC judgments.

    A document without title and text stays in the collection, since it may be judged; BM25 never retrieves it.

    Args:
      documents: Path of a UTF-8 file with the header `doc_id<TAB>title<TAB>text` or `doc_id<TAB>text` and one document
        per line.
      queries: Path of a UTF-8 file with the header `query_id<TAB>text` and one query per line.
      qrels: Path of a TREC qrels file with the lines `query_id 0 doc_id grade`.
      gains: Label of each grade, such as {1: 4, 2: 3, 3: 2, 4: 1} for a collection whose best grade is 1. None uses the
        grades as labels, and 0 for negative grades.
      source_grade: Grade of the source documents of a query (the documents from which the query was written). They are
        neither judged nor ranked; `Collection.sources` has them, since queries with a common source document belong in
        the same fold. None if the collection has none.

    Returns:
      The collection. Queries without judgments have no labels.

    Raises:
      ValueError: Bad input, as `path:line: what is wrong`: an unknown header, a wrong number of columns, an empty or
        duplicate id, an empty query, a judgment of an unknown query or document, or a grade without a gain.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import text
      >>> with tempfile.TemporaryDirectory() as name:
      ...     folder = pathlib.Path(name)
      ...     _ = (folder / "docs.tsv").write_text("doc_id\ttitle\ttext\nd1\tWings\tOn lift.\nd2\t\tOn heat.\n")
      ...     _ = (folder / "queries.tsv").write_text("query_id\ttext\nq1\tlift of wings\n")
      ...     _ = (folder / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 3\n")
      ...     collection = text.read_collection(
      ...         folder / "docs.tsv", folder / "queries.tsv", folder / "qrels.txt", gains={1: 2, 3: 0}
      ...     )
      >>> collection.documents["d1"].content, collection.labels
      ('Wings On lift.', {'q1': {'d1': 2, 'd2': 0}})
    """
    read_documents: dict[str, Document] = {}
    for _, (doc_id, *texts) in _rows(documents, ("doc_id\ttitle\ttext", "doc_id\ttext")):
        read_documents[doc_id] = Document(texts[0] if len(texts) == 2 else "", texts[-1])
    read_queries: dict[str, str] = {}
    for place, (query_id, text) in _rows(queries, ("query_id\ttext",)):
        if not text.strip():
            raise ValueError(f"{place}: query {query_id!r} is empty")
        read_queries[query_id] = text
    grades = evaluation.read_qrels(qrels)
    labels: dict[str, dict[str, int]] = {query_id: {} for query_id in read_queries}
    sources: dict[str, frozenset[str]] = {}
    for query_id, judged in grades.items():
        if query_id not in read_queries:
            raise ValueError(f"{_place(qrels, query_id)}: query {query_id!r} is not in {os.fspath(queries)}")
        for doc_id, grade in judged.items():
            if doc_id not in read_documents:
                place = _place(qrels, query_id, doc_id)
                raise ValueError(f"{place}: document {doc_id!r} is not in {os.fspath(documents)}")
            if grade == source_grade:
                sources[query_id] = sources.get(query_id, frozenset()) | {doc_id}
            elif gains is not None and grade not in gains:
                place = _place(qrels, query_id, doc_id)
                raise ValueError(f"{place}: grade {grade} has no gain: `gains` has the grades {sorted(gains)}")
            else:
                labels[query_id][doc_id] = max(0, grade) if gains is None else gains[grade]
    return Collection(read_documents, read_queries, labels, sources)


def _rows(path: str | os.PathLike[str], headers: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yields `path:line` and the columns of each line after the header."""
    seen: set[str] = set()
    columns = 0
    # An empty file has an empty header.
    for number, content in itertools.chain(numbered_lines(os.fspath(path)), [(1, b"")]):
        place, line = f"{os.fspath(path)}:{number}", content.decode().rstrip("\r\n")
        if not columns:
            if line not in headers:
                expected = " or ".join(repr(known) for known in headers)
                raise ValueError(f"{place}: expected the header {expected}, got {line[:80]!r}")
            columns = line.count("\t") + 1
            continue
        if not line:
            continue
        row = line.split("\t")
        if len(row) != columns:
            raise ValueError(f"{place}: expected {columns} columns separated by tabs, got {len(row)}")
        if not row[0] or row[0] in seen:
            raise ValueError(f"{place}: " + (f"duplicate id {row[0]!r}" if row[0] else "the id is empty"))
        seen.add(row[0])
        yield place, row


def _place(qrels: str | os.PathLike[str], *fields: str) -> str:
    """Returns `path:line` of the first judgment with this query, or this query and document."""
    for number, line in numbered_lines(os.fspath(qrels)):
        found = [field.decode() for field in line.split()]
        if found and (found[0], found[2])[: len(fields)] == fields:
            return f"{os.fspath(qrels)}:{number}"
    raise AssertionError(f"no judgment of {fields}")


def title_queries(collection: Collection) -> Collection:
    """Creates a collection with titles as queries, to pretrain a reranker without judgments.

    The title of each document that has both a title and a text becomes a query. Its only relevant document is this
    text. Use the other documents that `bm25` retrieves for a title as documents that are not relevant.

    Args:
      collection: The collection.

    Returns:
      The collection of the texts, without titles. The id of a query is the id of its document.

    Example:
      >>> from tfr_smooth import text
      >>> documents = {"d1": text.Document("Wings", "On lift."), "d2": text.Document("", "On heat.")}
      >>> titles = text.title_queries(text.Collection(documents, {}, {}, {}))
      >>> titles.queries, titles.labels
      ({'d1': 'Wings'}, {'d1': {'d1': 1}})
    """
    both = [doc_id for doc_id, document in collection.documents.items() if document.title and document.text]
    return Collection(
        {doc_id: Document("", document.text) for doc_id, document in collection.documents.items()},
        {doc_id: collection.documents[doc_id].title for doc_id in both},
        {doc_id: {doc_id: 1} for doc_id in both},
        {},
    )
