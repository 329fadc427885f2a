"""Text collections with candidates of BM25, as tables with one row per query and document."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping

import bm25s
import numpy as np
import pandas as pd
import Stemmer

from tfr_smooth import evaluation

_Path = str | os.PathLike[str]


def read_texts(path: _Path) -> pd.DataFrame:
    """Reads a tab-separated file with a header, indexed by its first column."""
    return pd.read_csv(path, sep="\t", index_col=0, quoting=csv.QUOTE_NONE, keep_default_na=False, dtype=str)


def best_documents(queries: pd.Series, documents: pd.Series, *, topn: int) -> pd.DataFrame:
    """Retrieves the documents of each query that share a term with it, at most `topn`, by BM25.

    Args:
      queries: Texts, indexed by the ids of the queries.
      documents: Texts, indexed by the ids of the documents.
      topn: Maximum number of documents per query.

    Returns:
      A table with the columns "query_id", "doc_id" and "score", the best documents of each query first.
    """
    index, tokens = _index(documents)
    topn = min(topn, len(documents))
    rows, scores = index.retrieve(tokens(queries), k=topn, show_progress=False)
    names = {"query_id": np.repeat(queries.index, topn), "doc_id": documents.index[rows.ravel()]}
    return pd.DataFrame({**names, "score": scores.ravel()}).query("score > 0").reset_index(drop=True)


def add_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the table with BM25's scores of its pairs, among all documents in it."""
    documents = table.groupby("doc_id")["text"].first()
    index, tokens = _index(documents)
    scores = pd.Series(0.0, table.index)
    for (_, pairs), words in zip(
        table.groupby("query_id"), tokens(table.groupby("query_id")["query"].first()), strict=True
    ):
        if words:
            scores[pairs.index] = index.get_scores(words)[documents.index.get_indexer(pairs["doc_id"])]
    return table.assign(score=scores)


def read_collection(
    documents: _Path,
    queries: _Path,
    qrels: _Path,
    *,
    topn: int = 100,
    gains: Mapping[int, int] | None = None,
    source_grade: int | None = None,
) -> pd.DataFrame:
    """Reads a collection from tab-separated files and TREC judgments, with candidates of each query by BM25.

    Args:
      documents: Path of a file with the columns "doc_id" and "text", and optionally "title" between them.
      queries: Path of a file with the columns "query_id" and "text".
      qrels: Path of a TREC qrels file.
      topn: Maximum number of candidates per query.
      gains: Label of each grade. None uses the grades as labels, and 0 for negative grades.
      source_grade: Grade of the source documents of a query (the documents from which the query was written), which are
        no candidates. None if the collection has none.

    Returns:
      A table with the columns "query_id", "doc_id", "query", "text" (the title and the text), "label" and "score".
      Relevant documents that are no candidates have a missing score; they are for training only.

    Raises:
      ValueError: If a judged query or document is not in the files, or a grade has no gain.
    """
    parts = read_texts(documents)
    contents, asked = parts.agg(" ".join, axis=1).str.strip(), read_texts(queries)["text"]
    grades = [
        (query, name, grade) for query, judged in evaluation.read_qrels(qrels).items() for name, grade in judged.items()
    ]
    judged = pd.DataFrame(grades, columns=["query_id", "doc_id", "grade"])
    for column, texts in (("query_id", asked), ("doc_id", contents)):
        if unknown := sorted(set(judged[column]) - set(texts.index)):
            raise ValueError(f"{os.fspath(qrels)}: {column} {unknown[0]!r} is not in the file of texts")
    is_source = judged["grade"] == source_grade
    judged["label"] = judged["grade"].clip(lower=0) if gains is None else judged["grade"].map(gains)
    if len(missing := judged.loc[judged["label"].isna() & ~is_source, "grade"]):
        raise ValueError(f"{os.fspath(qrels)}: grade {missing.iloc[0]} has no gain, got gains {gains}")
    sources = pd.MultiIndex.from_frame(judged.loc[is_source, ["query_id", "doc_id"]])
    most = topn + int(judged[is_source].groupby("query_id").size().max() if len(sources) else 0)
    ranked = best_documents(asked, contents, topn=most)
    ranked = ranked[~pd.MultiIndex.from_frame(ranked[["query_id", "doc_id"]]).isin(sources)]
    ranked = ranked.groupby("query_id", sort=False).head(topn)
    table = ranked.merge(judged[~is_source], how="outer", on=["query_id", "doc_id"])
    table["label"] = table["label"].fillna(0).astype(int)
    table = table[table["score"].notna() | (table["label"] > 0)].reset_index(drop=True)
    table["query"], table["text"] = asked[table["query_id"]].to_numpy(), contents[table["doc_id"]].to_numpy()
    return table[["query_id", "doc_id", "query", "text", "label", "score"]]


def _index(documents: pd.Series) -> tuple[bm25s.BM25, Callable[[pd.Series], list[list[str]]]]:
    """Returns the index of the documents, and the function that divides texts into its terms."""
    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: pd.Series) -> list[list[str]]:
        return bm25s.tokenize(texts.tolist(), stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens(documents), show_progress=False)
    return index, tokens
