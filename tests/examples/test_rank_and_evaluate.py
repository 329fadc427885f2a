"""The scripts that rank files with a trained model, and that evaluate run files."""

import csv

import numpy as np
import pytest

from tests import helpers
from tfr_smooth import data, evaluation, models, serving, training

# Each run of a program starts Python and imports TensorFlow.
pytestmark = pytest.mark.slow


def rank(arguments):
    return helpers.run_python("examples/rank_letor.py", *arguments, TF_CPP_MIN_LOG_LEVEL=None)


def evaluate(arguments):
    return helpers.run_python("examples/evaluate_run.py", *arguments, TF_CPP_MIN_LOG_LEVEL=None)


def check_refused(done, message):
    """Checks that the program failed and wrote only this line."""
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {message}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the data, and of the model as a file and as an export."""
    return tmp_path_factory.mktemp("ranking")


@pytest.fixture(scope="module")
def files(folder):
    return data.write_synthetic_letor(folder, num_queries=(20, 10, 15), num_features=16)


@pytest.fixture(scope="module")
def model(folder):
    model = models.FeedForwardScorer(hidden=[8], normalization="log1p")
    model.build([None, None, 16])
    model.save(folder / "best.keras")
    serving.export_ranker(model, folder / "export", num_features=16, warmup_list_sizes=())
    return model


@pytest.fixture(scope="module")
def scored(model, files):
    return list(training.score_queries(model, data.read_letor(files["test"], batch_size=4, ids=True)))


@pytest.mark.parametrize("kind", ["best.keras", "export/1"])
def test_a_run_has_the_scores_of_the_model(folder, files, scored, tmp_path, kind):
    output = tmp_path / "test.run"
    rank([str(folder / kind), str(files["test"]), f"--output={output}", "--tag=mine", "--batch_size=4"])
    assert {line.split()[5] for line in output.read_text().splitlines()} == {"mine"}
    found = evaluation.read_run(output)
    assert list(found) == [query.query_id for query in scored]
    for query in scored:
        expected = dict(zip(query.doc_ids, query.scores.tolist(), strict=True))
        assert found[query.query_id] == {name: pytest.approx(score, abs=1e-4) for name, score in expected.items()}


def test_a_csv_table_is_sorted_by_score(folder, files, scored, tmp_path):
    output = tmp_path / "test.csv"
    rank([str(folder / "best.keras"), str(files["test"]), "--to=csv", f"--output={output}"])
    with open(output, newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query_id", "doc_id", "rank", "score"]
    assert len(rows) == sum(len(query.scores) for query in scored)
    by_query = [row for row in rows if row["query_id"] == scored[0].query_id]
    assert [int(row["rank"]) for row in by_query] == list(range(1, len(by_query) + 1))
    scores = [float(row["score"]) for row in by_query]
    assert scores == sorted(scores, reverse=True)


def test_rows_without_labels_keep_their_order_and_get_scores(folder, files, scored, tmp_path):
    """In another format: indices from 0, and a separate file of query sizes."""
    lines, sizes = [], []
    for query in scored:
        sizes.append(len(query.scores))
    for line in files["test"].read_text().splitlines():
        features = [pair.split(":") for pair in line.split("#")[0].split()[2:]]
        lines.append(" ".join(f"{int(index) - 1}:{value}" for index, value in features) + " # a comment")
    lines.insert(1, "# between")
    (tmp_path / "new.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    (tmp_path / "new.txt.group").write_text("\n".join(map(str, sizes)))
    output = tmp_path / "new.scored"
    arguments = [str(tmp_path / "new.txt"), "--to=rows", "--first_index=0", f"--output={output}"]
    rank([str(folder / "export/1"), *arguments])
    rows = [line.split("\t") for line in output.read_text().splitlines()]
    del lines[1]
    assert [text for _, text in rows] == lines
    expected = np.concatenate([query.scores for query in scored])
    np.testing.assert_allclose([float(score) for score, _ in rows], expected, rtol=1e-4, atol=1e-4)


def test_ranking_errors_are_one_line(folder, model, files, tmp_path):
    (tmp_path / "bad.txt").write_text("1 qid:a 1:1\n1 qid:a 1:NULL\n")
    (tmp_path / "wide.txt").write_text("1 qid:a 1:1 17:1\n")
    test, keras = str(files["test"]), str(folder / "best.keras")
    output = f"--output={tmp_path / 'run'}"
    for arguments, message in [
        (
            [str(folder / "none"), test],
            f"The model must be a .keras file or the folder of an exported model, got {str(folder / 'none')!r}.",
        ),
        ([keras, "/nope*"], "`file_pattern` must match files, got '/nope*', which matches none."),
        ([keras, str(tmp_path / "bad.txt")], f"{tmp_path / 'bad.txt'}:2: value of feature 1: 'NULL' is not a finite"),
        ([keras, str(tmp_path / "wide.txt")], f"{tmp_path / 'wide.txt'}:1: feature index 17 exceeds num_features=16"),
        ([keras, test, "--num_features=7"], f"--num_features must be 16, the number of features of {keras!r}, got 7."),
        ([keras, test, "--first_index=2"], "`first_index` must be 0 or 1, got '2'."),
        ([keras, test, "--missing=NULL"], "`missing` must be comma-separated TOKEN=VALUE pairs, got 'NULL'."),
    ]:
        check_refused(rank([*arguments, output]), message)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def runs(scored, tmp_path):
    """The paths of the model's run, a better run and the labels, and the queries of the better run."""
    better = [query._replace(scores=query.labels + 0.01 * query.scores) for query in scored]
    evaluation.write_run(tmp_path / "first.run", scored)
    evaluation.write_run(tmp_path / "second.run", better)
    evaluation.write_qrels(tmp_path / "qrels", scored)
    return [str(tmp_path / name) for name in ("first.run", "second.run", "qrels")], better


@pytest.mark.parametrize("labels", ["qrels", "letor"])
def test_the_metrics_of_a_run_are_printed(scored, files, runs, labels):
    (first, _, qrels), _ = runs
    given = [f"--qrels={qrels}"] if labels == "qrels" else [f"--letor={files['test']}"]
    expected = evaluation.trec_eval(scored)
    assert evaluate([first, *given]).stdout.splitlines() == [
        f"{name}\tall\t{value:.4f}" for name, value in expected.items()
    ]
    printed = evaluate([first, *given, "--measures=map,P_5", "--by_query"]).stdout.splitlines()
    assert len(printed) == 2 * len(scored) + 2
    by_query = evaluation.trec_eval_by_query(scored, ["map"])
    query = scored[0].query_id
    assert printed[0] == f"map\t{query}\t{by_query[query]['map']:.4f}"


def test_two_runs_are_compared(scored, runs):
    (first, second, qrels), better = runs
    done = evaluate([second, f"--against={first}", f"--qrels={qrels}", "--measures=ndcg"])
    values = [
        {query: each["ndcg"] for query, each in evaluation.trec_eval_by_query(queries, "ndcg").items()}
        for queries in (better, scored)
    ]
    means = [np.mean(list(each.values())) for each in values]
    p_value = evaluation.randomization_test(*values).p_value
    line = f"ndcg\tall\t{means[0]:.4f}\t{means[1]:.4f}\t{means[0] - means[1]:+.4f}\tp={p_value:.4f}\n"
    assert done.stdout == line and p_value < 0.05


def test_queries_missing_from_the_run_or_the_labels_are_reported(scored, runs, tmp_path):
    (_, _, qrels), _ = runs
    path = tmp_path / "part.run"
    evaluation.write_run(path, [*scored[1:], scored[0]._replace(query_id="other")])
    done = evaluate([str(path), f"--qrels={qrels}", "--measures=ndcg"])
    assert done.stderr.splitlines() == [
        f"{path}: 1 queries without labels are ignored",
        f"{path}: 1 queries are missing and count as 0",
    ]
    values = evaluation.trec_eval_by_query(scored, "ndcg")
    mean = (sum(each["ndcg"] for each in values.values()) - values[scored[0].query_id]["ndcg"]) / len(scored)
    assert done.stdout == f"ndcg\tall\t{mean:.4f}\n"


def test_evaluation_errors_are_one_line(runs, tmp_path):
    (first, _, qrels), _ = runs
    (tmp_path / "real.txt").write_text("0.5 qid:a 1:1\n")
    (tmp_path / "real.run").write_text("a Q0 0 1 1.0 x\n")
    for arguments, message in [
        (["/nope", f"--qrels={qrels}"], "[Errno 2] No such file or directory: '/nope'"),
        ([qrels, f"--qrels={qrels}"], f"{qrels}:1: expected the 6 fields"),
        ([first, f"--qrels={qrels}", "--measures=mapp"], "`measures` must be map"),
        (
            [str(tmp_path / "real.run"), f"--letor={tmp_path / 'real.txt'}"],
            "`qrels` of query 'a' must be whole numbers up to 1023, got 0.5 for document '0'.",
        ),
    ]:
        check_refused(evaluate(arguments), message)
