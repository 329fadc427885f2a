"""The scripts that train on clicks, from a teacher, on runs and on interactions, each run once and refused once."""

import json

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests import helpers
from tests.recommendation.groups import likes
from tfr_smooth import evaluation, recommendation

pytestmark = pytest.mark.slow


def test_clicks_compares_all_methods_on_the_true_labels(tmp_path):
    flags = ("--seeds=1", "--sessions=200,3000", "--steps=100", f"--output={tmp_path / 'clicks.json'}")
    assert "NDCG@10 on the true labels, mean of 1 seeds:" in helpers.check_run("examples/clicks.py", *flags)
    (found,) = json.loads((tmp_path / "clicks.json").read_text())
    assert 0.0 < found["shown ranking"] < found["true labels"] <= 1.0
    for method in ("clicks", "inverse propensities", "two towers", "dual learning", "regression EM"):
        assert set(found[method]) == {"200", "3000"}
        assert all(0.0 < value < found["true labels"] for value in found[method].values()), method
    for method in ("two towers", "dual learning", "regression EM"):
        for estimate in found[f"propensities of {method}"].values():
            assert estimate[0] == 1.0 > estimate[-1] and len(estimate) == 10


def test_students_follow_the_teacher_and_the_best_is_exported(tmp_path):
    arguments = ["--members=1", "--hidden=16", "--dropout=0", "--epochs=6", '--distill={"list_net": {}, "adr_mse": {}}']
    printed = helpers.check_run("examples/distill.py", f"--output_dir={tmp_path}", *arguments)
    assert (tmp_path / "table.md").read_text() in printed
    frame = pd.read_csv(tmp_path / "queries.csv")
    rankers = ["LambdaMART (teacher)", "labels: smoothi_ndcg", "teacher: list_net", "teacher: adr_mse"]
    assert list(frame["ranker"].unique()) == rankers
    assert all(f"| {name} | {values.mean():.4f} ± " in printed for name, values in frame.groupby("ranker")["NDCG"])
    correlations = frame.groupby("ranker")["Spearman with the teacher"].mean()
    assert correlations[rankers[0]] == pytest.approx(1.0) and correlations[rankers[2:]].min() > 0.7
    assert "serving_default" in tf.saved_model.load(str(tmp_path / "export" / "1")).signatures


@pytest.fixture
def files(tmp_path):
    """Two runs that see different halves of what makes a document relevant; the last queries have no judgments."""
    random = np.random.default_rng(0)
    lines = {"first": [], "second": [], "qrels": []}
    for query in range(40):
        parts = random.normal(size=[30, 2])
        labels = np.searchsorted([1.0, 2.0], parts.sum(axis=1))
        for name, scores in zip(("first", "second"), parts.T, strict=True):
            # Each run misses documents, in the scale of its own.
            kept = np.flatnonzero(random.random(30) < 0.8)
            ranked = kept[np.argsort(-scores[kept])]
            scaled = 20.0 * scores if name == "first" else scores
            lines[name] += [f"q{query} Q0 d{doc} {rank} {scaled[doc]} {name}" for rank, doc in enumerate(ranked, 1)]
        if query < 36:
            lines["qrels"] += [f"q{query} 0 d{doc} {label}" for doc, label in enumerate(labels)]
    paths = {name: tmp_path / f"{name}.txt" for name in lines}
    for name, path in paths.items():
        path.write_text("\n".join(lines[name]) + "\n")
    return paths


def test_the_fused_run_is_better_than_each_run_and_contains_all_queries(files, tmp_path):
    flags = [f"--qrels={files['qrels']}", f"--output={tmp_path / 'fused.run'}", "--epochs=15"]
    printed = helpers.check_run("examples/fuse_runs.py", files["first"], files["second"], *flags)
    assert "2 runs, 40 queries, 36 of them judged" in printed
    qrels = evaluation.read_qrels(files["qrels"])
    runs = {name: evaluation.read_run(files[name]) for name in ("first", "second")}
    runs["fused"] = evaluation.read_run(tmp_path / "fused.run")
    assert set(runs["fused"]) == {f"q{number}" for number in range(40)}
    for query, scores in runs["fused"].items():
        assert set(scores) == set(runs["first"][query]) | set(runs["second"][query])
    values = {name: evaluation.trec_eval_by_query(run, ["ndcg_cut_10"], qrels=qrels) for name, run in runs.items()}
    means = {name: np.mean([each["ndcg_cut_10"] for each in found.values()]) for name, found in values.items()}
    assert means["fused"] > max(means["first"], means["second"]) + 0.1
    assert all(f"{name:<22}    {mean:.4f}" in printed for name, mean in means.items())


def test_recommend_measures_the_recommender_that_it_saves(tmp_path):
    train, test = recommendation.hold_out(recommendation.Interactions(likes()), items=1)
    for name, part in (("train", train), ("test", test)):
        rows = [(user, items[items >= 0]) for user, items in enumerate(part.padded(np.arange(24)))]
        lines = [f"{user} {' '.join(map(str, items))}" for user, items in rows if len(items)]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    output = tmp_path / "output"
    flags = [f"--train={tmp_path}/train.txt", f"--test={tmp_path}/test.txt", f"--output_dir={output}", "--dim=4"]
    flags += ["--warm_start_epochs=4", "--epochs=1", '--loss_args={"alpha": 2.0}', "--baselines=popularity ease"]
    helpers.check_run("examples/recommend.py", *flags)
    measured = json.loads((output / "metrics.json").read_text())
    assert set(measured["baselines"]) == {"popularity", "ease"}
    loaded = recommendation.Recommender.load(output / "recommender.npz")
    found = recommendation.evaluate(loaded, test, seen=train, measures="recall_20")
    assert found.means["recall_20"].mean == pytest.approx(measured["recall_20"])
    for name in ("softmax", "loss", "measures"):
        assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('distill.py --distill={"list_nt":{}}', "Did you mean 'list_net'"),
        ("fuse_runs.py first --qrels=none", "Expected at least two run files, got 1."),
        ("fuse_runs.py first fused.run --qrels=none", "The names of the run files must differ and not be 'fused', got"),
        ("recommend.py --train=none.txt", "none.txt"),
        ("recommend.py --train=x.txt --baselines=svd", "--baselines must be some of popularity, ease, ials"),
        ("recommend.py --train=x.txt --least_rating=3", "--least_rating needs files of ratings"),
    ],
)
def test_errors_are_one_line(command, message, tmp_path):
    script, *arguments = command.split()
    output = [] if script == "fuse_runs.py" else [f"--output_dir={tmp_path}"]
    done = helpers.run_python(f"examples/{script}", *arguments, *output)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ") and message in done.stderr
