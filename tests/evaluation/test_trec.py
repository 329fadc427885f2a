"""`evaluation.trec`: values computed by hand and by a NumPy reference; files and their errors."""

import functools
import gzip
import math
import os
import re

import numpy as np
import pytest

from tests import helpers
from tfr_smooth import evaluation

MEASURES = ("ndcg", "ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "P_1", "P_5", "P_10", "map")


def query(query_id="q", doc_ids=("a", "b"), labels=(1, 0), scores=(2.0, 1.0)):
    return evaluation.ScoredQuery(query_id, list(doc_ids), np.array(labels), np.array(scores))


def random_queries(seed, count=40, tied=False):
    """Ragged queries, some without a relevant document, with names whose order is not that of the scores."""
    random = np.random.RandomState(seed)
    queries = []
    for q in range(count):
        size = random.randint(1, 30)
        labels = random.choice([0, 0, 0, 1, 2, 3], size) * (q % 7 > 0)
        scores = random.randint(0, 4, size) * 0.1 if tied else random.randn(size)
        queries.append(evaluation.ScoredQuery(f"q{q}", [f"d{i}" for i in random.permutation(size)], labels, scores))
    return queries


def reference(measure, one):
    """The value of one query, from the definitions, in float64."""
    score32 = np.float32(one.scores)
    order = sorted(range(len(one.labels)), key=lambda i: (score32[i], one.doc_ids[i]), reverse=True)
    labels = [int(one.labels[i]) for i in order]
    if sum(labels) == 0:
        return 0.0
    name, _, k = measure.rpartition("_") if "_" in measure else (measure, "", len(labels))
    k = int(k)
    relevant = [label >= 1 for label in labels]
    if name == "P":
        return sum(relevant[:k]) / k
    if name == "map":
        return sum(sum(relevant[: r + 1]) / (r + 1) for r in range(k) if relevant[r]) / sum(relevant)
    assert name in ("ndcg", "ndcg_cut"), name
    gain, ideal = (
        sum(label / math.log2(r + 2) for r, label in enumerate(ranked[:k]))
        for ranked in (labels, sorted(labels, reverse=True))
    )
    return gain / ideal


def test_values_computed_by_hand():
    # Ranking c (2), a (0), b (1).
    one = query("q1", "abc", [0, 1, 2], [0.2, 0.1, 0.3])
    log3 = math.log2(3)
    expected = {
        "ndcg": (2 + 1 / 2) / (2 + 1 / log3),
        "ndcg_cut_1": 1.0,
        "ndcg_cut_2": 2 / (2 + 1 / log3),
        "P_1": 1.0,
        "P_2": 1 / 2,
        "P_5": 2 / 5,
        "map": (1 + 2 / 3) / 2,
        "map_cut_2": 1 / 2,
        "recall_2": 1 / 2,
        "success_1": 1.0,
        "recip_rank": 1.0,
        "recip_rank_1": 1.0,
        "Rprec": 1 / 2,
    }
    found = evaluation.trec_eval_by_query([one], expected)
    assert list(found) == ["q1"] and list(found["q1"]) == list(expected)
    assert found["q1"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 49, 1000])
def test_the_reciprocal_rank_at_k_is_that_of_a_cut_run(k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names, scores = [f"d{i}" for i in range(60)], -np.arange(60.0)
    queries = random_queries(0) + [query(f"at {rank}", names, np.arange(60) == rank - 1, scores) for rank in (49, 50)]
    qrels = {one.query_id: dict(zip(one.doc_ids, map(int, one.labels), strict=True)) for one in queries}
    run = {}
    for one in queries:
        order = sorted(zip(one.scores.tolist(), one.doc_ids, strict=True), reverse=True)[:k]
        run[one.query_id] = {doc_id: score for score, doc_id in order}
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
    found = evaluation.trec_eval_by_query(queries, ["map", f"recip_rank_{k}", "recip_rank"])
    for query_id, values in found.items():
        assert values[f"recip_rank_{k}"] == expected[query_id]["recip_rank"]
    assert evaluation.trec_eval(queries, f"recip_rank_{k}").keys() == {f"recip_rank_{k}"}


@pytest.mark.parametrize("tied", [False, True])
def test_the_values_of_each_query_match_the_definitions(tied):
    for seed in range(3):
        queries = random_queries(seed, tied=tied)
        found = evaluation.trec_eval_by_query(queries)
        assert list(found) == [one.query_id for one in queries]
        for one in queries:
            expected = {measure: reference(measure, one) for measure in MEASURES}
            assert found[one.query_id] == pytest.approx(expected, abs=1e-12)


def test_the_mean_is_over_all_queries_and_one_without_a_relevant_document_counts_as_zero():
    queries = random_queries(3)
    by_query = evaluation.trec_eval_by_query(queries)
    means = {name: np.mean([values[name] for values in by_query.values()]) for name in MEASURES}
    assert evaluation.trec_eval(queries) == pytest.approx(means, abs=1e-15)
    assert list(evaluation.trec_eval(queries)) == list(MEASURES)
    measures = [*MEASURES, "recip_rank", "Rprec", "map_cut_5", "recall_5", "recip_rank_5", "success_5"]
    nothing = query("q2", labels=[0, 0])
    assert evaluation.trec_eval([nothing], measures) == dict.fromkeys(measures, 0.0)
    assert evaluation.trec_eval([query("q1"), nothing], ["map", "ndcg"]) == {"map": 0.5, "ndcg": 0.5}


def test_ties_in_float32_are_broken_by_descending_document_name(tmp_path):
    for doc_ids, first in (("ab", 1), ("ba", 0), (["2", "10"], 0), (["z", "é"], 1), (["Z", "a"], 1)):
        tied = query(doc_ids=doc_ids, labels=np.arange(2) == first, scores=[0.5, 0.5])
        assert evaluation.trec_eval([tied], "P_1") == {"P_1": 1.0}
        evaluation.write_run(tmp_path / "run", [tied])
        assert next(iter(evaluation.read_run(tmp_path / "run")["q"])) == doc_ids[first]
    near = query(labels=[1, 0], scores=[1.0 + 1e-9, 1.0])
    assert evaluation.trec_eval([near], "P_1") == {"P_1": 0.0}
    assert evaluation.trec_eval([near._replace(scores=np.array([1.0 + 1e-6, 1.0]))], "P_1") == {"P_1": 1.0}


def test_any_numeric_type_and_the_highest_allowed_label_are_evaluated():
    labels = [np.float32([1, 0]), np.uint8([1, 0]), np.array([True, False]), [1.0, 0.0]]
    scores = [np.float16([2, 1]), np.array([2, 1]), [2.0, 1.0], np.float32([0.0, -3e38])]
    for each in zip(labels, scores, strict=True):
        found = evaluation.trec_eval([evaluation.ScoredQuery("q", ("a", "b"), *each)], ["P_1", "P_2"])
        assert found == {"P_1": 1.0, "P_2": 0.5}
    assert evaluation.trec_eval([query(labels=[0, 1023])], "ndcg") == {"ndcg": pytest.approx(1 / math.log2(3))}


BAD_QUERIES = [
    (query(labels=[1, -1]), "`labels` of query 'q' must be whole numbers from 0 to 1023, got -1 for"),
    (query(labels=[0, 1024]), "from 0 to 1023, got 1024 for document 'b'."),
    (query(labels=["1", "0"]), "`labels` of query 'q' must be 2 numbers, one for each document, got <U1"),
    (query(scores=[0, 1e39]), "finite in float32, got 1e+39 for document 'b'."),
    (query(scores=[[1], [0]]), "`scores` of query 'q' must be 2 numbers, one for each document,"),
    (query("q", [], [], []), "`doc_ids` of query 'q' must name at least one document, got none."),
    (query(doc_ids="aa"), "`doc_ids` of query 'q' must be unique, got 'a' twice."),
    (query(doc_ids=["a", ""]), "`doc_ids` of query 'q' must be non-empty text without"),
    (query(doc_ids=["a", "\ud800"]), "NUL, got '\\ud800'."),
    (query(7), "`query_id` must be non-empty text without"),
]


def test_whitespace_in_ids_is_refused_only_in_files(tmp_path):
    for name in (f"red{space}shoes" for space in " \t\n\r\v\f"):
        for one, argument in ((query(name), "`query_id`"), (query(doc_ids=["a", name]), "`doc_ids` of query 'q'")):
            assert evaluation.trec_eval([one], "P_1") == {"P_1": 1.0}
            assert list(evaluation.trec_eval_by_query([one], "P_1")) == [one.query_id]
            for write in (evaluation.write_run, evaluation.write_qrels):
                message = f"{argument} must be non-empty text without whitespace or NUL, got {name!r}."
                with pytest.raises(ValueError, match=re.escape(message)):
                    write(tmp_path / "file", [one])
    assert os.listdir(tmp_path) == []


def test_bad_queries_are_refused_everywhere(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    writers = [functools.partial(write, path) for write in (evaluation.write_run, evaluation.write_qrels)]
    for bad, message in BAD_QUERIES:
        for function in (evaluation.trec_eval, evaluation.trec_eval_by_query, *writers):
            with pytest.raises(ValueError, match=re.escape(message)):
                function([query("good"), bad])
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["file"]


def test_bad_arguments_are_refused(tmp_path):
    tags = "`tag` must be non-empty text without whitespace or NUL, got "
    cases = [
        (lambda tag=tag: evaluation.write_run(tmp_path / "run", [query()], tag=tag), tags) for tag in ("", "a b", 3)
    ]
    # pytrec_eval itself answers some of these under another name, and aborts the process for "ndcg_5".
    for measure in ("foo", "ndcg_5", "P_0", "P_05", "P", "ndcg_cut", "ndcg_cut_5x", "P_1\n", "num_q", 5):
        call = functools.partial(evaluation.trec_eval, [query()], ["map", measure])
        cases += [(call, "`measures` must be map, ndcg, "), (call, f"got {measure!r}.")]
    helpers.assert_refused([
        *cases,
        (lambda: evaluation.trec_eval([query()], []), "`measures` must name at least one measure, got none."),
        (lambda: evaluation.trec_eval([query(), query()]), "`queries` must contain each query once, got 'q' twice."),
        (lambda: evaluation.trec_eval(iter([])), "`queries` must contain at least one query, got none."),
    ])  # fmt: skip
    assert os.listdir(tmp_path) == []


# Names.


def test_document_names_are_the_ids_or_the_positions():
    for doc_ids, names in (
        (["d2", "d1"], ["d2", "d1"]),
        ([b"d2", "é".encode()], ["d2", "é"]),
        (["d2", ""], ["0", "1"]),
        (["d2", "d2", "d3"], ["0", "1", "2"]),
        ([], []),
        ([""] * 101, [f"{i:03d}" for i in range(101)]),
    ):
        assert evaluation.document_names(np.array(doc_ids, dtype=object)) == evaluation.document_names(doc_ids) == names
        with pytest.raises(ValueError, match=re.escape(r"`doc_ids` must be UTF-8 text, got b'\xff'.")):
            evaluation.document_names([*doc_ids, b"\xff"])


# Files.


def test_run_and_qrels_files_have_the_trec_format(tmp_path):
    queries = [query("q1", "abc", [0, 2, 1], [0.1, 3.0, 0.1]), query("q2", "x", [1], [-1e-20])]
    evaluation.write_run(tmp_path / "run", queries, tag="mine")
    evaluation.write_qrels(tmp_path / "qrels", queries)
    assert (tmp_path / "run").read_bytes() == (
        b"q1 Q0 b 1 3 mine\nq1 Q0 c 2 0.100000001 mine\nq1 Q0 a 3 0.100000001 mine\nq2 Q0 x 1 -9.99999968e-21 mine\n"
    )
    assert (tmp_path / "qrels").read_bytes() == b"q1 0 a 0\nq1 0 b 2\nq1 0 c 1\nq2 0 x 1\n"
    evaluation.write_run(str(tmp_path / "run"), [])
    assert evaluation.read_run(tmp_path / "run") == {}


def test_written_scores_are_read_as_the_same_float32(tmp_path):
    bits = np.random.RandomState(0).randint(0, 2**32, 20000, dtype=np.uint64).astype(np.uint32)
    # The shortest decimal text of the first would come back as its neighbor when read through float64.
    scores, info = np.array([0x15AE43FD, *bits], np.uint32).view(np.float32), np.finfo(np.float32)
    scores = np.float32([0.0, -0.0, info.max, info.min, info.tiny, 1e-45, -1e-45, *scores[np.isfinite(scores)]])
    names = [f"{i:06d}" for i in range(len(scores))]
    evaluation.write_run(tmp_path / "run", [evaluation.ScoredQuery("q", names, np.zeros(len(scores)), scores)])
    run = evaluation.read_run(tmp_path / "run")["q"]
    back = np.float32([run[name] for name in names])
    np.testing.assert_array_equal(back.view(np.uint32), scores.view(np.uint32))


def test_byte_order_marks_blank_lines_compression_and_tabs_change_nothing(tmp_path):
    for name, pack in (("run", bytes), ("run.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(b"\xef\xbb\xbfq Q0 a 1 1e1 t\r\n\nq\tQ0\tb 2 -1 t\n \n"))
        assert evaluation.read_run(tmp_path / name) == {"q": {"a": 10.0, "b": -1.0}}
        (tmp_path / name).write_bytes(pack(b"\xef\xbb\xbfq 0 a -1\n\nq 0\tb +2\n"))
        assert evaluation.read_qrels(tmp_path / name) == {"q": {"a": -1, "b": 2}}


IN_RUN, IN_QRELS = "expected the 6 fields 'query_id Q0 doc_id rank score tag', got", "an integer of at most nine digits"


def test_bad_files_are_refused_with_their_line(tmp_path):
    for text, message in (
        (b"q Q0 a 1 2.5", f"{IN_RUN} 5"),
        (b"q Q0 a 1 high t", "score 'high' is not a finite number"),
        (b"q Q0 a 1 1_0 t", "score '1_0' is not a finite number"),
        (b"q Q0 first 1 2.5 t", "duplicate document 'first' in query 'q'"),
        (b"q Q0 \xff 1 2.5 t", "not UTF-8 text: invalid start byte"),
        (b"q 0 a", "expected the 4 fields 'query_id 0 doc_id label', got 3"),
        (b"q 0 a 1234567890", f"label '1234567890' is not {IN_QRELS}"),
        (b"q 0 first 1", "duplicate document 'first' in query 'q'"),
    ):
        is_qrels = text.startswith(b"q 0")
        first, last = (b"q 0 first 1", b"q 0 last 1") if is_qrels else (b"q Q0 first 1 3 t", b"q Q0 last 3 1 t")
        (tmp_path / "file").write_bytes(b"\n".join([first, text, last]))
        with pytest.raises(ValueError, match="^" + re.escape(f"{tmp_path / 'file'}:2: {message}") + "$"):
            (evaluation.read_qrels if is_qrels else evaluation.read_run)(tmp_path / "file")


def test_a_run_with_qrels_has_the_values_of_the_queries(tmp_path):
    queries = random_queries(3, tied=True)
    queries += [query("tie", labels=[1, 0], scores=[1.0 + 1e-9, 1.0]), query("\u00a0é", ["\u2003", "\x1c"])]
    evaluation.write_run(tmp_path / "run", queries)
    evaluation.write_qrels(tmp_path / "qrels", queries)
    run, qrels = evaluation.read_run(tmp_path / "run"), evaluation.read_qrels(tmp_path / "qrels")
    assert evaluation.trec_eval_by_query(run, qrels=qrels) == evaluation.trec_eval_by_query(queries)
    assert evaluation.trec_eval(run, ["map", "P_3"], qrels=qrels) == evaluation.trec_eval(queries, ["map", "P_3"])


def test_a_run_and_qrels_may_differ_in_queries_and_documents():
    qrels = {"q": {"a": 1, "b": -1, "never found": 2}, "not in the run": {"a": 1}}
    run = {"q": {"a": 1.0, "b": 2.0, "not judged": 3.0}, "not judged": {"a": 1.0}}
    values = evaluation.trec_eval_by_query(run, ["P_1", "P_3", "recall_3", "recip_rank"], qrels=qrels)
    assert values == {
        "q": {"P_1": 0.0, "P_3": pytest.approx(1 / 3), "recall_3": 0.5, "recip_rank": pytest.approx(1 / 3)},
        "not in the run": {"P_1": 0.0, "P_3": 0.0, "recall_3": 0.0, "recip_rank": 0.0},
    }
    assert evaluation.trec_eval(run, "P_3", qrels=qrels) == {"P_3": pytest.approx(1 / 6)}


ONLY_NEGATIVE = """
from tfr_smooth import evaluation
run, qrels = {"q": {"a": 3.0, "b": 2.0}, "r": {"a": 3.0, "b": 2.0}}, {"q": {"a": -2, "b": -1}, "r": {"a": -1, "b": 2}}
for grade in range(1, 100):  # whether pytrec_eval returns depends on what its memory held before
    many = {"q": {f"d{place}": place % grade + 1 for place in range(grade)}}
    evaluation.trec_eval(many, "ndcg", qrels=many)
    evaluation.trec_eval(run, "ndcg", qrels={"q": qrels["q"]})
names = ["ndcg", "ndcg_cut_5", "map", "P_1", "recip_rank", "Rprec", "recall_5", "success_1", "map_cut_5"]
found = evaluation.trec_eval_by_query(run, names, qrels=qrels)
zero = evaluation.trec_eval_by_query(run, names, qrels={"q": {"a": 0, "b": 0}, "r": {"a": 0, "b": 2}})
print(found == zero, *found["q"].values(), found["r"]["ndcg_cut_5"])
"""


@pytest.mark.slow
def test_labels_below_0_are_not_relevant():
    """In a process of its own, since pytrec_eval may never return for the NDCG of a query with negative labels only."""
    equal, *values, ndcg = helpers.check_run("-c", ONLY_NEGATIVE).split()
    assert equal == "True" and values == ["0.0"] * 9
    assert float(ndcg) == pytest.approx(1.0 / np.log2(3.0))


def test_bad_runs_and_qrels_are_refused():
    for run, qrels, message in (
        ({"q": {"a": 1.0}}, None, "`qrels` must be given for a run, got None."),
        ([query()], {"q": {"a": 1}}, "`queries` must be a run as returned by `read_run` with `qrels`, got list."),
        ({"1": {"a": 1.0}}, {"q1": {"a": 1}, "q2": {}, "q3": {}, "q4": {}},
         "`qrels` must have labels for a query of the run, got queries 'q1', 'q2', 'q3', ... for '1'."),
        ({1: {"a": 1.0}}, {1: {"a": 1}}, "`query_id` must be non-empty text without NUL, got 1."),
        ({"q": {7: 1.0}}, {"q": {"7": 1}}, "`doc_ids` of query 'q' must be non-empty text without NUL, got 7."),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
            evaluation.trec_eval(run, qrels=qrels)


IDS = ["a", "a", "b", "b"]


def test_rows_that_do_not_fit_together_are_refused():
    right = {"labels": [1, 0, 0, 1], "scores": [0.9, 0.2, 0.3, 0.1], "queries": IDS}
    for arguments, message in (
        ({"queries": IDS[:2]}, r"`queries` must have one value per row, shape \(4,\), got \(2,\)"),
        ({"labels": [1, 0]}, r"`labels` must have one value per row, .* got shapes \(2,\) and \(4,\)"),
        ({"labels": [], "scores": [], "queries": []}, "at least one, got shapes"),
        ({"queries": ["a", "a", None, "b"]}, "`queries` must be query ids without missing values, got None in row 2"),
        ({"queries": ["a", "a", 2, 2]}, "`queries` must have values of one type"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluation.evaluate_rows(**{**right, **arguments}, measures=["map"])
