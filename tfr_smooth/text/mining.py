"""Hard negatives for training: documents that a retriever ranks high and that nobody has judged."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.reading import checks
from tfr_smooth.text import text_lists
from tfr_smooth.text.text_ranker import TextRanker

_QUERIES = 64  # queries searched at once; not tuned: a limit of memory


def mine_negatives(
    retriever: TextRanker | str,
    X: Any,
    documents: Any = (),
    *,
    negatives: int = 10,
    range_min: int = 0,
    relative_margin: float | None = None,
    query: str = "query",
    text: str = "text",
    label: str = "label",
    query_id: str | None = None,
) -> Any:
    r"""Adds hard negatives to a training set: the unjudged documents that an exact search ranks highest for a query.

    Of the ranking of a query without its documents in the table, the first `range_min` are skipped, as they may be
    relevant, and the next `negatives` get label 0 (Karpukhin et al., "Dense Passage Retrieval", EMNLP 2020, with BM25;
    Xiong et al., "Approximate Nearest Neighbor Negative Contrastive Learning", ICLR 2021, with the model in training).

    Args:
      retriever: A fitted `TextRanker` with `architecture="single"`, or "bm25", which requires bm25s.
      X: The training set, as for `TextRanker.fit`.
      documents: Texts to search, besides those of the table: a list, a column or an array.
      negatives: The most documents to add per query, >= 1.
      range_min: Unjudged documents to skip, from the best on, >= 0.
      relative_margin: In [0, 1): leaves documents out, as perhaps relevant, whose score is larger than that of a
        relevant document of the query minus relative_margin times its absolute value. None leaves none out.
      query: As for `TextRanker.fit`.
      text: As for `TextRanker.fit`.
      label: As for `TextRanker.fit`.
      query_id: As for `TextRanker.fit`.

    Returns:
      A pandas DataFrame for `TextRanker.fit` with the columns of queries, texts and labels: for each query that has a
      relevant document, its rows in `X` and the mined documents, best first.

    Raises:
      ValueError: If an argument or the data is invalid.
      ImportError: If bm25s is not installed.

    Time O(queries * documents * width) and the encoding of the texts, memory O(documents * width).

    Example:
      >>> from tfr_smooth import text
      >>> table = {"query": ["lift", "heat"], "text": ["lift of a wing", "heat of a wing"], "label": [1, 1]}
      >>> more = ["lift of a tail", "drag", "heat and lift of a jet"]
      >>> text.mine_negatives("bm25", table, more, negatives=1)["text"].tolist()
      ['lift of a wing', 'lift of a tail', 'heat of a wing', 'heat and lift of a jet']
    """
    _arguments.integer("negatives", negatives, least=1)
    _arguments.integer("range_min", range_min, least=0)
    if relative_margin is not None:
        _arguments.real("relative_margin", relative_margin, least=0.0, below=1.0)
    columns = {"query": query, "text": text, "label": label, "query_id": query_id}
    lists = text_lists.lists_of(X, columns, labeled=True)
    queries, texts = ([each.decode() for each in column] for column in text_lists.texts_of(lists))
    corpus = list(dict.fromkeys([*texts, *text_lists.text_values("`documents`", documents)]))
    number = {each: place for place, each in enumerate(corpus)}
    scores_of = _scorer(retriever, corpus)
    judged, is_good = np.array([number[each] for each in texts]), lists.values(lists.roles.labels[0]) > 0.0
    rows: list[int] = []  # of the table, in the order of the result
    added: list[str | None] = []  # the mined text in the place of the row's
    queried = [(start, end) for start, end in itertools.pairwise(lists.starts) if is_good[start:end].any()]
    for first in range(0, len(queried), _QUERIES):
        some = queried[first : first + _QUERIES]
        for (start, end), scores in zip(some, scores_of([queries[start] for start, _ in some]), strict=True):
            known = judged[start:end]
            least, most = scores[known[is_good[start:end]]].min(), np.inf
            if relative_margin is not None:
                most = least * (1.0 - relative_margin * np.sign(least))
            scores[known] = -np.inf
            best = np.argsort(-scores, kind="stable")[range_min : len(corpus)]
            mined = best[(scores[best] <= most) & np.isfinite(scores[best])][:negatives]
            rows += [*lists.rows[start:end], *[lists.rows[start]] * len(mined)]
            added += [*[None] * len(known), *(corpus[place] for place in mined)]
    names = list(dict.fromkeys(filter(None, columns.values())))
    table = checks.as_arrow(text_lists.table_of(X, columns)).select(names).to_pandas().iloc[rows].reset_index(drop=True)
    is_mined = np.array([each is not None for each in added], bool)
    table[text] = [old if new is None else new for old, new in zip(table[text], added, strict=True)]
    table[label] = table[label].where(~is_mined, 0)
    return table


def _scorer(retriever: TextRanker | str, corpus: list[str]) -> Callable[[list[str]], np.ndarray]:
    """Returns a function of queries: the scores of all documents, [queries, documents], -inf for no candidates."""
    if isinstance(retriever, TextRanker):
        vectors = retriever.encode(corpus)
        return lambda queries: retriever.encode(queries, role="query") @ vectors.T
    _arguments.choice("retriever", retriever, ("bm25",))
    with _arguments.needed("bm25s", extra="text", by="`mine_negatives` with 'bm25'"):
        import bm25s
    options: dict[str, Any] = {"stopwords": "en", "return_ids": False, "show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(corpus, **options), show_progress=False)

    def scores_of(queries: list[str]) -> np.ndarray:
        words = bm25s.tokenize(queries, **options)
        scores = np.stack([index.get_scores(some) if some else np.zeros(len(corpus), np.float32) for some in words])
        return np.where(scores > 0.0, scores, -np.inf)

    return scores_of
