"""Reading collections, and the candidates of BM25."""

import math

import numpy as np
import pytest

from tfr_smooth import text

DOCS = "doc_id\ttitle\ttext\nd1\tWings\tOn the lift.\nd2\t\tOn heat.\nd3\t\t\n"
QUERIES = "query_id\ttext\nq1\tlift of wings\nq2\tzebra\n"
QRELS = "q1 0 d1 1\nq1 0 d2 4\nq2 0 d3 -1\n"


def read(tmp_path, docs=DOCS, queries=QUERIES, qrels=QRELS, **kwargs):
    for name, content in (("docs.tsv", docs), ("queries.tsv", queries), ("qrels.txt", qrels)):
        (tmp_path / name).write_text(content)
    return text.read_collection(tmp_path / "docs.tsv", tmp_path / "queries.tsv", tmp_path / "qrels.txt", **kwargs)


def rows(table):
    return [(row.query_id, row.doc_id, row.label) for row in table.itertuples()]


def test_files_become_a_table_of_candidates_and_relevant_documents(tmp_path):
    table = read(tmp_path)
    assert sorted(rows(table)) == [("q1", "d1", 1), ("q1", "d2", 4)]
    texts = table.set_index("doc_id")
    assert texts.loc["d1", ["query", "text"]].tolist() == ["lift of wings", "Wings On the lift."]
    # "lift" and, by its stem, "wings" are in d1; d2 shares no term with the query.
    assert texts.loc["d1", "score"] > 0.0 and np.isnan(texts.loc["d2", "score"])
    plain = read(tmp_path, docs="doc_id\ttext\nd1\twing\nd2\tb\nd3\tc\n")
    assert plain.set_index("doc_id").loc["d1", "text"] == "wing"


def test_grades_become_gains_and_sources_are_no_candidates(tmp_path):
    assert rows(read(tmp_path, gains={1: 0, 4: 1}, source_grade=-1)) == [("q1", "d2", 1), ("q1", "d1", 0)]
    assert rows(read(tmp_path, source_grade=1)) == [("q1", "d2", 4)]


def test_candidates_of_a_run_are_ranked_as_in_trec_eval(tmp_path):
    (tmp_path / "run").write_text("q2 Q0 d1 1 0.5 x\nq2 Q0 d2 2 0.5 x\nq2 Q0 d3 3 0.1 x\nq1 Q0 d1 1 2 x\n")
    found = read(tmp_path, run=tmp_path / "run", topn=2)
    assert rows(found)[-2:] == [("q2", "d2", 0), ("q2", "d1", 0)]  # a tie
    (tmp_path / "run").write_text("q2 Q0 d9 1 0.5 x\n")
    with pytest.raises(ValueError, match="run:1: document 'd9' is not in .*docs.tsv"):
        read(tmp_path, run=tmp_path / "run")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"docs": "id\ttext\nd1\ta\n"}, "docs.tsv:1: expected the header .* got 'id\\\\ttext'"),
        ({"docs": DOCS + "d4\tno text\n"}, "docs.tsv:5: expected 3 columns separated by tabs, got 2"),
        ({"docs": DOCS + "d1\t\tagain\n"}, "docs.tsv:5: duplicate id 'd1'"),
        ({"docs": DOCS + "\t\tnameless\n"}, "docs.tsv:5: the id is empty"),
        ({"queries": QUERIES + "q3\t \n"}, "queries.tsv:4: query 'q3' is empty"),
        ({"qrels": QRELS + "q9 0 d1 1\n"}, "qrels.txt:4: query 'q9' is not in .*queries.tsv"),
        ({"qrels": QRELS + "q2 0 d9 1\n"}, "qrels.txt:4: document 'd9' is not in .*docs.tsv"),
        ({"qrels": QRELS + "q2 0 d1 3\n", "gains": {1: 1, 4: 0, -1: 0}}, "qrels.txt:4: grade 3 has no gain"),
        ({"qrels": QRELS + "q2 0 d1\n"}, "qrels.txt:4: expected the 4 fields"),
    ],
)
def test_errors_name_file_and_line(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, **changed)


TEXTS = {"d1": "lift lift heat", "d2": "lift", "d3": "heat heat heat heat"}


def test_bm25_is_truncated_at_the_depth_and_breaks_ties_by_the_id():
    copies = {name: "lift" for name in ("a", "c", "b")}
    assert list(text.bm25({"q": "lift", "none": "zebra"}, copies)["q"]) == ["c", "b", "a"]
    assert list(text.bm25({"q": "lift"}, copies, topn=2)["q"]) == ["c", "b"]


def test_bm25_scores_candidates_in_their_order():
    whole = text.bm25({"q": "lift", "none": "zebra"}, TEXTS)
    assert whole["none"] == {}
    run = text.bm25({"q": "lift", "none": "zebra"}, TEXTS, candidates={"q": ["d3", "d1"], "none": ["d2"]})
    assert list(run["q"]) == ["d3", "d1"] and run == {"q": {"d3": 0.0, "d1": whole["q"]["d1"]}, "none": {"d2": 0.0}}


def test_bm25_matches_the_formula():
    """Robertson and Walker 1994, with the idf of Lucene, which bm25s computes."""
    run = text.bm25({"q": "lift"}, TEXTS, k1=1.2, b=0.5)
    idf = math.log(1.0 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = 8 / 3
    expected = {
        name: idf * count / (count + 1.2 * (0.5 + 0.5 * length / mean))
        for name, count, length in (("d1", 2, 3), ("d2", 1, 1))
    }
    assert run["q"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("name", "value"), [("topn", 0), ("k1", 0.0), ("b", 1.0)])
def test_bad_arguments_of_bm25_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        text.bm25({"q": "lift"}, TEXTS, **{name: value})
