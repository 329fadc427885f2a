"""Collections of texts, with the candidates of BM25."""

import math

import numpy as np
import pandas as pd
import pytest

from experiments import text_collections

DOCS = "doc_id\ttitle\ttext\nd1\tWings\tOn the lift.\nd2\t\tOn heat.\nd3\t\t\n"
QUERIES = 'query_id\ttext\nq1\t"lift of wings\nq2\tzebra\n'
QRELS = "q1 0 d1 1\nq1 0 d2 4\nq2 0 d3 -1\n"


def read(tmp_path, qrels=QRELS, **kwargs):
    contents = {"docs.tsv": DOCS, "queries.tsv": QUERIES, "qrels.txt": qrels}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return text_collections.read_collection(*(tmp_path / name for name in contents), **kwargs)


def rows(table):
    return {(row.query_id, row.doc_id, row.label) for row in table.itertuples()}


def test_files_become_a_table_of_candidates_and_relevant_documents(tmp_path):
    table = read(tmp_path)
    assert rows(table) == {("q1", "d1", 1), ("q1", "d2", 4)}
    texts = table.set_index("doc_id")
    assert texts.loc["d1", ["query", "text"]].tolist() == ['"lift of wings', "Wings On the lift."]
    # "lift" and, by its stem, "wings" are in d1; d2 shares no term with the query.
    assert texts.loc["d1", "score"] > 0.0 and np.isnan(texts.loc["d2", "score"])


def test_grades_become_gains_sources_are_no_candidates_and_wrong_judgments_are_refused(tmp_path):
    assert rows(read(tmp_path, gains={1: 0, 4: 1}, source_grade=-1)) == {("q1", "d2", 1), ("q1", "d1", 0)}
    assert rows(read(tmp_path, source_grade=1)) == {("q1", "d2", 4)}
    for qrels, message in (
        ("q9 0 d1 1\n", "qrels.txt: query_id 'q9' is not in the file of texts"),
        ("q2 0 d1 3\n", r"qrels.txt: grade 3 has no gain, got gains \{1: 1\}"),
    ):
        with pytest.raises(ValueError, match=message):
            read(tmp_path, qrels, gains={1: 1})


def test_scores_are_those_of_the_formula():
    """Robertson and Walker 1994, with the idf of Lucene, which bm25s computes."""
    documents = pd.Series({"d1": "lift lift heat", "d2": "lift", "d3": "heat heat heat heat"})
    queries = pd.Series({"none": "zebra", "q": "lift"})
    best = text_collections.best_documents(queries, documents, topn=5)
    idf, mean = math.log(1.0 + (3 - 2 + 0.5) / (2 + 0.5)), 8 / 3
    d1, d2 = (idf * n / (n + 1.5 * (0.25 + 0.75 * length / mean)) for n, length in ((2, 3), (1, 1)))
    scores, names = zip(*sorted([(d1, "d1"), (d2, "d2")], reverse=True), strict=True)
    assert best["query_id"].tolist() == ["q", "q"] and best["doc_id"].tolist() == list(names)
    np.testing.assert_allclose(best["score"], scores, rtol=1e-5)
    # The scores of given pairs, in their order; 0 without a common term.
    pairs = queries.rename("query").rename_axis("query_id").reset_index()
    pairs = pairs.merge(documents.rename("text").rename_axis("doc_id").reset_index(), how="cross").iloc[::-1]
    found = text_collections.add_scores(pairs).set_index(["query_id", "doc_id"])["score"]
    assert (found["none"] == 0.0).all() and found["q", "d3"] == 0.0
    np.testing.assert_allclose([found["q", name] for name in names], scores, rtol=1e-5)
