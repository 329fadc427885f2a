"""The script that trains rerankers, and training on two replicas."""

import json

import pytest
import tensorflow as tf

from tests import helpers
from tests.text.conftest import made_up, write_checkpoint

SCRIPT = "examples/text_reranking.py"
NOT_SCALED = "Keras 3 does not scale losses on several devices; use --precision=bfloat16."


def write_collection(folder):
    collection = made_up()
    folder.mkdir()
    for name, rows in (
        ("docs.tsv", [("doc_id", "title", "text"), *((key, *value) for key, value in collection.documents.items())]),
        ("queries.tsv", [("query_id", "text"), *collection.queries.items()]),
    ):
        (folder / name).write_text("".join("\t".join(row) + "\n" for row in rows))
    judged = ((query, doc, label) for query, labels in collection.labels.items() for doc, label in labels.items())
    (folder / "qrels.txt").write_text("".join(f"{query} 0 {doc} {label}\n" for query, doc, label in judged))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    write_collection(folder / "made_up")
    write_checkpoint(folder / "bert")
    return folder


def run(folder, *flags):
    files = {"docs": "docs.tsv", "queries": "queries.tsv", "qrels": "qrels.txt"}
    given = [f"--{name}={folder / 'made_up' / file}" for name, file in files.items()]
    lengths = ["--length=16", "--query_length=6", "--depth=15", "--folds=3", "--epochs=1"]
    return helpers.run_python(SCRIPT, *given, f"--model_dir={folder / 'bert'}", *lengths, *flags)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["late", "cross"])
def test_a_study_is_exported_and_a_second_run_reuses_its_results(folder, scorer):
    pretraining = ["--pretraining_epochs=1"] if scorer == "cross" else ["--frozen_layers=1"]
    flags = [f"--scorer={scorer}", *pretraining, "--losses=zero_shot smoothi_ndcg", f"--output_dir={folder / scorer}"]
    first = run(folder, *flags, f"--export={folder / scorer / 'export'}")
    assert first.returncode == 0, first.stderr[-4000:]
    for name in ("bm25", "zero_shot + bm25", "smoothi_ndcg + bm25", "p-values against BM25"):
        assert name in first.stdout
    outputs = {path.name for path in (folder / scorer).iterdir()}
    assert {"made_up.txt", "made_up.md", "made_up.tex", "made_up.csv", "made_up_against_bm25.csv"} <= outputs
    assert tf.saved_model.contains_saved_model(folder / scorer / "export" / "1")
    results = {path: path.stat().st_mtime_ns for path in (folder / scorer / "results").rglob("*.npz")}
    assert len(results) == 6
    second = run(folder, *flags)
    assert second.returncode == 0, second.stderr[-4000:]
    tables = first.stdout.partition("test metrics")[2].partition("Exported")[0]
    assert second.stdout.partition("test metrics")[2] == tables
    assert {path: path.stat().st_mtime_ns for path in (folder / scorer / "results").rglob("*.npz")} == results


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--docs=/nope", "No such file or directory: '/nope'"),
        ("--losses=smooth_ndcg", "Did you mean 'smoothi_ndcg'"),
        ("--gains=1-4", "--gains must be GRADE:LABEL pairs such as '1:4,2:3', got '1-4'."),
        ("--length=99", "--length must be at most the model's 40, got 99."),
        ("--frozen_layers=3", "`frozen_layers` must be at most 2, the number of layers, got 3."),
        ("--sha256=00", "expected the SHA-256 hash 00"),
        ("--learning_rate=-1", "`learning_rate` must be a finite number > 0"),
        ("--precision=float16 --strategy=mirrored", NOT_SCALED),
        ("--precision=float16 --strategy=multi_worker", NOT_SCALED),
    ],
)
def test_errors_are_one_line(folder, flags, message):
    failed = run(folder, *flags.split())
    assert failed.returncode == 1
    last = failed.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ") and message in last and "Traceback" not in failed.stderr


@pytest.mark.slow
def test_training_on_two_replicas_gives_the_scores_of_one_device(tmp_path):
    for replicas in ("1", "2"):
        helpers.check_run("tests/text/replicas.py", replicas, tmp_path)
    one, two = (json.loads((tmp_path / f"{replicas}.json").read_text()) for replicas in ("1", "2"))
    for query_id, scores in one.items():
        assert two[query_id] == pytest.approx(scores, abs=1e-3)
