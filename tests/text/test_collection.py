"""Reading collections, and the candidates of BM25."""

import pytest

from tfr_smooth import text

DOCS = "doc_id\ttitle\ttext\nd1\tWings\tOn the lift.\nd2\t\tOn heat.\nd3\t\t\n"
QUERIES = "query_id\ttext\nq1\tlift of wings\nq2\tzebra\n"
QRELS = "q1 0 d1 1\nq1 0 d2 4\nq2 0 d3 -1\n"


def read(tmp_path, docs=DOCS, queries=QUERIES, qrels=QRELS, **kwargs):
    for name, content in (("docs.tsv", docs), ("queries.tsv", queries), ("qrels.txt", qrels)):
        (tmp_path / name).write_text(content)
    return text.read_collection(tmp_path / "docs.tsv", tmp_path / "queries.tsv", tmp_path / "qrels.txt", **kwargs)


def test_files_with_or_without_titles_are_read(tmp_path):
    assert read(tmp_path, docs="doc_id\ttext\nd1\ta\nd2\tb\nd3\tc\n").documents["d2"] == ("", "b")
    collection = read(tmp_path)
    assert collection.documents["d1"] == ("Wings", "On the lift.")
    assert collection.queries == {"q1": "lift of wings", "q2": "zebra"}
    assert collection.labels == {"q1": {"d1": 1, "d2": 4}, "q2": {"d3": 0}}
    assert collection.sources == {}


def test_grades_become_gains_and_sources(tmp_path):
    collection = read(tmp_path, gains={1: 4, 4: 1}, source_grade=-1)
    assert collection.labels == {"q1": {"d1": 4, "d2": 1}, "q2": {}}
    assert collection.sources == {"q2": {"d3"}}


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


def test_bm25_ranks_only_documents_that_share_terms(tmp_path):
    run = text.bm25(read(tmp_path))
    assert list(run["q1"]) == ["d1"] and run["q1"]["d1"] > 0.0  # "lift" and, by its stem, "wings"
    assert run["q2"] == {}


def test_bm25_excludes_sources_and_is_truncated_at_the_depth(collection):
    whole = text.bm25(collection, depth=1000)
    first, second, *_ = whole["q0"]
    sources = collection._replace(sources={"q0": frozenset({first})})
    assert list(text.bm25(sources, depth=1)["q0"]) == [second]
    assert text.bm25(collection, depth=3)["q1"] == dict(list(whole["q1"].items())[:3])


def test_bm25_scores_candidates_in_their_order(collection):
    whole = text.bm25(collection, depth=1000)
    none = next(name for name in collection.documents if name not in whole["q1"])
    candidates = {query: [none, *sorted(run)] for query, run in whole.items() if none not in run}
    run = text.bm25(collection, candidates={**dict.fromkeys(collection.queries, []), **candidates})
    assert list(run["q1"]) == candidates["q1"]
    assert run["q1"] == {none: 0.0, **whole["q1"]}


def test_bm25_matches_the_formula():
    """Robertson and Walker 1994, with the idf of Lucene, which bm25s computes."""
    import math

    texts = {"d1": "lift lift heat", "d2": "lift", "d3": "heat heat heat heat"}
    documents = {name: text.Document("", content) for name, content in texts.items()}
    run = text.bm25(text.Collection(documents, {"q": "lift"}, {}, {}), k1=1.2, b=0.5)
    idf = math.log(1.0 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = 8 / 3
    expected = {
        name: idf * count / (count + 1.2 * (0.5 + 0.5 * length / mean))
        for name, count, length in (("d1", 2, 3), ("d2", 1, 1))
    }
    assert run["q"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("name", "value"), [("depth", 0), ("k1", 0.0), ("b", 1.0)])
def test_bad_arguments_of_bm25_are_refused(collection, name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        text.bm25(collection, **{name: value})


def test_titles_become_queries(tmp_path):
    titles = text.title_queries(read(tmp_path))
    assert titles.queries == {"d1": "Wings"} and titles.labels == {"d1": {"d1": 1}}
    assert titles.documents["d1"].content == "On the lift." and len(titles.documents) == 3
