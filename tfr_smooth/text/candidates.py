"""Candidate retrieval: the documents to rerank, by BM25."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tfr_smooth import _arguments, _extras


def bm25(
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    *,
    candidates: Mapping[str, Iterable[str]] | None = None,
    topn: int = 100,
    k1: float = 1.5,
    b: float = 0.75,
) -> dict[str, dict[str, float]]:
    """Retrieves the best documents of each query by BM25, or scores given ones, using the package bm25s.

    Texts are indexed with Snowball's English stemmer and without English stop words.

    Args:
      queries: The texts of the queries by their ids.
      documents: The texts of the documents by their ids.
      candidates: For each query id, the doc ids to score. None retrieves documents.
      topn: Maximum number of retrieved documents per query, >= 1. Only documents that share a term with the query are
        retrieved.
      k1: BM25's saturation of the term frequency, > 0.
      b: BM25's length normalization, in (0, 1).

    Returns:
      The run: for each query id, a dict of doc id to score. Retrieved documents are sorted, best first and ties by
      decreasing id as in trec_eval; there is none for a query that shares no term with any document. Candidates keep
      their order, and have a score of 0 without a common term.

    Raises:
      ValueError: If an argument is out of its range.
      ImportError: If the extra `tfr_smooth[text]` is not installed.

    Example:
      >>> from tfr_smooth import text
      >>> run = text.bm25({"q1": "wing lift", "q2": "sound"}, {"d1": "the lift of wings", "d2": "heat"})
      >>> {query: list(documents) for query, documents in run.items()}
      {'q1': ['d1'], 'q2': []}
    """
    topn = _arguments.integer("topn", topn, least=1)
    k1, b = _arguments.real("k1", k1, above=0.0), _arguments.real("b", b, above=0.0, below=1.0)
    with _extras.needed("bm25s and PyStemmer", extra="text", by="`bm25`"):
        import bm25s
        import Stemmer
    stemmer = Stemmer.Stemmer("english")

    def terms(texts: Iterable[str]) -> list[list[str]]:
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)

    index = bm25s.BM25(k1=k1, b=b)
    index.index(terms(documents.values()), show_progress=False)
    run: dict[str, dict[str, float]] = {}
    for query_id, words in zip(queries, terms(queries.values()), strict=True):
        found = index.get_scores(words).tolist() if words else np.zeros(len(documents)).tolist()
        scores = dict(zip(documents, found, strict=True))
        if candidates is not None:
            run[query_id] = {doc_id: scores[doc_id] for doc_id in candidates[query_id]}
            continue
        some = [(score, doc_id) for doc_id, score in scores.items() if score > 0.0]
        run[query_id] = {doc_id: score for score, doc_id in sorted(some, reverse=True)[:topn]}
    return run
