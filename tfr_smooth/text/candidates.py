"""Candidate retrieval: the documents to rerank, by BM25."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tfr_smooth import _arguments, _extras
from tfr_smooth.text.collection import Collection


def bm25(
    collection: Collection,
    *,
    candidates: Mapping[str, Iterable[str]] | None = None,
    depth: int = 100,
    k1: float = 1.5,
    b: float = 0.75,
) -> dict[str, dict[str, float]]:
    """Retrieves the best documents of each query by BM25, or scores given ones, using the package bm25s.

    Title and text are indexed together, with Snowball's English stemmer and without English stop words.

    Args:
      collection: The collection.
      candidates: For each query id, the doc ids to score. None retrieves documents.
      depth: Maximum number of retrieved documents per query, >= 1. Only documents that share a term with the query are
        retrieved.
      k1: BM25's saturation of the term frequency, > 0.
      b: BM25's length normalization, in (0, 1).

    Returns:
      The run: for each query id, a dict of doc id to score. Retrieved documents are sorted, best first; there is none
      for a query that shares no term with any document, and a query's source documents are excluded. Candidates keep
      their order, and have a score of 0 without a common term.

    Raises:
      ValueError: If an argument is out of its range.
      ImportError: If the extra `tfr_smooth[text]` is not installed.

    Example:
      >>> from tfr_smooth import text
      >>> documents = {"d1": text.Document("Wings", "the lift of wings"), "d2": text.Document("", "heat")}
      >>> collection = text.Collection(documents, {"q1": "wing lift", "q2": "sound"}, {}, {})
      >>> {query: list(run) for query, run in text.bm25(collection).items()}
      {'q1': ['d1'], 'q2': []}
    """
    depth = _arguments.integer("depth", depth, least=1)
    k1, b = _arguments.real("k1", k1, above=0.0), _arguments.real("b", b, above=0.0, below=1.0)
    with _extras.needed("bm25s and PyStemmer", extra="text", by="`bm25`"):
        import bm25s
        import Stemmer
    stemmer = Stemmer.Stemmer("english")

    def terms(texts: list[str]) -> list[list[str]]:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)

    doc_ids = list(collection.documents)
    index = bm25s.BM25(k1=k1, b=b)
    index.index(terms([document.content for document in collection.documents.values()]), show_progress=False)
    rows = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    run: dict[str, dict[str, float]] = {}
    for query_id, words in zip(collection.queries, terms(list(collection.queries.values())), strict=True):
        scores = index.get_scores(words) if words else np.zeros(len(doc_ids))
        if candidates is not None:
            run[query_id] = {doc_id: float(scores[rows[doc_id]]) for doc_id in candidates[query_id]}
            continue
        sources = collection.sources.get(query_id, frozenset())
        found = [(float(score), doc_id) for score, doc_id in zip(scores, doc_ids, strict=True) if score > 0.0]
        # Break ties as trec_eval does.
        ranked = sorted((pair for pair in found if pair[1] not in sources), reverse=True)[:depth]
        run[query_id] = {doc_id: score for score, doc_id in ranked}
    return run
