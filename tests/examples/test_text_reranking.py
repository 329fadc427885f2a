"""The script that trains rerankers, and training on two replicas."""

import itertools
import json

import pytest
import tensorflow as tf

import experiments
from tests import helpers
from tests.helpers import scripts
from tests.text.conftest import made_up, write_checkpoint

SCRIPT = "examples/text_reranking.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a checkpoint, and of the files of a collection."""
    folder, (texts, queries, labels) = tmp_path_factory.mktemp("text"), made_up()
    write_checkpoint(folder / "bert")
    (folder / "made_up").mkdir()
    judged = ((query, doc, label) for query, of_query in labels.items() for doc, label in of_query.items())
    for name, separator, rows in (
        ("docs", "\t", [("doc_id", "title", "text"), *((key, *value) for key, value in texts.items())]),
        ("queries", "\t", [("query_id", "text"), *queries.items()]),
        ("qrels", " ", [(query, "0", doc, str(label)) for query, doc, label in judged]),
    ):
        (folder / "made_up" / name).write_text("".join(separator.join(row) + "\n" for row in rows))
    return folder


SMALL = ["--length=16", "--query_length=6", "--epochs=1"]


@pytest.mark.slow
def test_a_study_is_exported_and_a_second_run_reuses_its_results(folder, eagerly, tmp_path):
    given = [SCRIPT, *(f"--{name}={folder / 'made_up' / name}" for name in ("docs", "queries", "qrels")), *SMALL]
    given += [f"--model_dir={folder / 'bert'}", f"--output_dir={tmp_path}", "--topn=15", "--folds=3"]
    given += ["--architecture=cross", "--pretraining_epochs=1", "--losses=zero_shot smoothi_ndcg"]
    first = scripts.check_run(*given, f"--export={tmp_path / 'export'}")
    for name in ("BM25", "Pretrained model + BM25", "SmoothI-NDCG + BM25", "p-values against bm25"):
        assert name in first
    assert tf.saved_model.contains_saved_model(tmp_path / "export" / "1")
    results = scripts.results_in(tmp_path)
    assert len(results) == 6
    second = scripts.check_run(*given)
    assert second.partition("test metrics")[2] == first.partition("test metrics")[2].partition("Exported")[0]
    assert scripts.results_in(tmp_path) == results


@pytest.mark.slow
def test_files_of_pairs_are_reranked_on_their_split(folder, tmp_path):
    """One test set has scores of a first stage."""
    texts, asked, labels = made_up()
    queries = list(asked)
    parts = {"train": queries[:8], "valid": queries[8:10], "plain": queries[10:], "scored": queries[10:]}
    for part, some in parts.items():
        with open(tmp_path / f"{part}.jsonl", "w") as file:
            for number, (query, name) in enumerate(itertools.product(some, texts)):
                row = {"query": asked[query], "document": " ".join(texts[name])}
                row |= {"query_id": query, "label": labels[query].get(name, 0)}
                file.write(json.dumps(row | ({"score": -float(number)} if part == "scored" else {})) + "\n")
    files = [f"--{part}={tmp_path / f'{part}.jsonl'}" for part in ("train", "valid")]
    files += [f"--test={tmp_path / 'plain.jsonl'},{tmp_path / 'scored.jsonl'}", f"--output_dir={tmp_path / 'out'}"]
    model = [f"--model_dir={folder / 'bert'}", "--name=mine", "--frozen_layers=1", "--losses=approx_map"]
    scripts.check_run(SCRIPT, *files, *SMALL, *model)
    found = experiments.read_results(tmp_path / "out").queries
    count = len(queries[10:])
    assert found.groupby("dataset")["query"].nunique().to_dict() == {"plain": count, "scored": count}
    assert set(found["ranker"]) == {"first stage", "approx_map", "approx_map + first stage"}


@pytest.mark.slow
def test_training_on_two_replicas_gives_the_scores_of_one_device(tmp_path):
    helpers.check_run("tests/text/replicas.py", tmp_path)
    one, two = (json.loads((tmp_path / f"{replicas}.json").read_text()) for replicas in ("one", "two"))
    assert two == pytest.approx(one, abs=1e-3)
