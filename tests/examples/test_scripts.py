"""The scripts for a log, clicks, a teacher, runs, interactions and two labels; the errors of all scripts."""

import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tests.helpers import scripts
from tests.recommendation.groups import likes
from tfr_smooth import data, evaluation, recommendation

pytestmark = pytest.mark.slow


def test_in_fifteen_minutes_the_server_answers_with_the_scores_of_predict(tmp_path, monkeypatch):
    """From a log to scores over HTTP."""
    scripts.small_rankers(monkeypatch)
    printed = scripts.check_run("examples/fifteen_minutes.py", f"--output_dir={tmp_path}", "--epochs=2")
    log, scored = pd.read_csv(tmp_path / "log.csv"), pd.read_csv(tmp_path / "scores.csv", parse_dates=["listed"])
    assert log["brand"].dtype == float and log[["brand", "price"]].isna().any().all()
    assert set(scored["query"]) < set(log["query"]) and len(scored) > 500
    np.testing.assert_allclose(scored["served"], scored["predicted"], rtol=1e-5, atol=1e-5)
    ranker = tfr_smooth.Ranker.load(tmp_path / "ranker.keras")
    np.testing.assert_allclose(ranker.predict(scored), scored["predicted"], rtol=1e-5, atol=1e-5)
    kinds = {column.name: column.kind for column in ranker.features_.columns}
    assert kinds["brand"] == "id" and kinds["listed"] == "date"
    assert "Why " in printed and "Ranker:\nndcg_cut_5" in printed and "over HTTP: scores differ" in printed


def test_clicks_compares_all_methods_on_the_true_labels(tmp_path):
    flags = ("--seeds=1", "--sessions=1000", "--steps=60", f"--output={tmp_path / 'clicks.json'}")
    assert "NDCG@10 on the true labels, mean of 1 seeds:" in scripts.check_run("examples/clicks.py", *flags)
    (found,) = json.loads((tmp_path / "clicks.json").read_text())
    assert 0.0 < found["shown ranking"] < found["true labels"] <= 1.0
    for method in ("clicks", "inverse propensities", "two towers", "dual learning", "regression EM"):
        assert set(found[method]) == {"1000"}
        assert all(0.0 < value < found["true labels"] for value in found[method].values()), method


def test_students_follow_the_teacher_and_the_best_is_exported(tmp_path):
    data.write_synthetic_letor(tmp_path / "data" / "Fold1", num_queries=(40, 10, 20), num_features=16)
    flags = [f"--data={tmp_path / 'data'}", f"--output_dir={tmp_path}", '--distill={"list_net": {}, "adr_mse": {}}']
    flags += ["--members=1", "--hidden=8", "--epochs=2", "--trees=false"]
    printed = scripts.check_run("examples/distill.py", *flags)
    assert (tmp_path / "table.md").read_text() in printed
    frame = pd.read_csv(tmp_path / "queries.csv")
    rankers = ["LambdaMART (teacher)", "labels: smoothi_ndcg", "teacher: list_net", "teacher: adr_mse"]
    assert list(frame["ranker"].unique()) == rankers
    assert all(f"| {name} | {values.mean():.4f} ± " in printed for name, values in frame.groupby("ranker")["NDCG"])
    assert "serving_default" in tf.saved_model.load(str(tmp_path / "export" / "1")).signatures


def test_the_fused_run_is_better_than_each_run_and_contains_all_queries(tmp_path):
    """Each run sees one half of what makes a document relevant."""
    random = np.random.default_rng(0)
    parts, names = random.normal(size=[40, 30, 2]), np.array([f"d{doc}" for doc in range(30)])
    labels = np.searchsorted([1.0, 2.0], parts.sum(axis=2))
    found = []
    for place in range(2):
        found.append([evaluation.ScoredQuery(f"q{i}", names, labels[i], parts[i, :, place]) for i in range(40)])
        evaluation.write_run(tmp_path / f"half{place}.run", found[place])
    evaluation.write_qrels(tmp_path / "qrels", found[0][:36])
    flags = [f"--qrels={tmp_path / 'qrels'}", f"--output={tmp_path / 'fused.run'}", "--epochs=6", "--folds=2"]
    runs = [tmp_path / "half0.run", tmp_path / "half1.run"]
    printed = scripts.check_run("examples/fuse_runs.py", *runs, *flags, "--members=1")
    assert "2 runs, 40 queries, 36 of them judged" in printed
    fused, qrels = evaluation.read_run(tmp_path / "fused.run"), evaluation.read_qrels(tmp_path / "qrels")
    assert set(fused) == {f"q{number}" for number in range(40)}
    mean = evaluation.trec_eval(fused, "ndcg_cut_10", qrels=qrels)["ndcg_cut_10"]
    assert mean > max(evaluation.trec_eval(run[:36], "ndcg_cut_10")["ndcg_cut_10"] for run in found) + 0.1
    assert f"{'fused':<22}    {mean:.4f}" in printed


def test_recommend_measures_the_recommender_that_it_saves(tmp_path):
    train, test = recommendation.hold_out(recommendation.Interactions(likes()), items=1)
    for name, part in (("train", train), ("test", test)):
        rows = [(user, items[items >= 0]) for user, items in enumerate(part.padded(np.arange(24))[0])]
        lines = [f"{user} {' '.join(map(str, items))}" for user, items in rows if len(items)]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    output = tmp_path / "output"
    flags = [f"--train={tmp_path}/train.txt", f"--test={tmp_path}/test.txt", f"--output_dir={output}", "--dim=4"]
    flags += ["--softmax_epochs=4", "--epochs=1", '--loss_args={"alpha": 2.0}', "--compare=popularity ease"]
    scripts.check_run("examples/recommend.py", *flags)
    measured = json.loads((output / "metrics.json").read_text())
    assert set(measured["compared"]) == {"popularity", "ease"}
    loaded = recommendation.Recommender.load(output / "recommender.keras")
    found = recommendation.evaluate(loaded, test, seen=train, measures="recall_20")
    assert found.means["recall_20"].mean == pytest.approx(measured["recall_20"])
    assert {"training.png", "measures.png"} < {path.name for path in output.iterdir()}


def test_each_weight_of_each_aggregation_is_measured_once_and_drawn(tmp_path, monkeypatch):
    scripts.small_rankers(monkeypatch)  # without trees
    data.write_synthetic_letor(tmp_path / "data" / "Fold1", num_queries=(12, 6, 6), max_documents=8, num_features=16)
    flags = [f"--data={tmp_path / 'data'}", "--feature=3", f"--output_dir={tmp_path / 'front'}", "--weights=0.5,1"]
    flags += ["--loss=list_net", "--hidden=4", "--members=1", "--epochs=1"]
    printed = scripts.check_run("examples/pareto_front.py", *flags)
    rows = pd.read_csv(tmp_path / "front" / "pareto.csv")
    assert len(rows) == len(rows[["ranker", "weight", "fold", "seed"]].drop_duplicates()) == 2 * 2
    assert (tmp_path / "front" / "pareto.png").stat().st_size > 0
    # The second run trains nothing, so its figures are the same.
    assert scripts.check_run("examples/pareto_front.py", *flags) == printed


TEXT = "text_reranking.py --model_dir=none --docs=x --queries=x --qrels=x"
ERRORS = {
    "train_letor.py stray": "Unknown argument 'stray'. Flags start with --.",
    "train_letor.py --los=x": "Unknown command line flag 'los'. Did you mean: loss",
    "train_letor.py --loss_args=[1]": "flag --loss_args=[1]: expected a JSON object, got '[1]'",
    "train_letor.py {files} --output_dir={test}": "--output_dir must be a folder, got the file '{test}'.",
    "train_letor.py {files} --test={bad}": "test: {bad}:2: value of feature 1: 'NULL' is not a finite float32 number",
    "train_letor.py {files} --missing=NULL": "`missing` must be comma-separated TOKEN=NUMBER pairs, got 'NULL'.",
    "rank_letor.py none {test}": "The model must be a .keras file or the folder of an exported model, got 'none'.",
    'distill.py --distill={{"list_nt":{{}}}}': "`loss` must be one of .* Did you mean 'list_net'",
    "fuse_runs.py first fused.run --qrels=none": "The names of the run files must differ and not be 'fused', got",
    "recommend.py --train=x.txt --compare=svd": "--compare must be some of popularity, ease, ials",
}
if importlib.util.find_spec("keras_hub"):
    ERRORS[f"{TEXT} --precision=float16 --strategy=mirrored"] = "Keras 3 does not scale losses on several devices"


def test_errors_are_one_line_and_nothing_is_written(tmp_path_factory, tmp_path):
    folder = tmp_path_factory.mktemp("errors")
    files = data.write_synthetic_letor(folder, num_queries=(4, 2, 2))
    (folder / "bad.txt").write_text("1 qid:a 1:1\n1 qid:b 1:NULL\n")
    given = " ".join(f"--{part}={path}" for part, path in files.items())
    paths = {"test": files["test"], "files": given, "bad": folder / "bad.txt"}
    for command, message in ERRORS.items():
        script, *arguments = command.format(**paths).split()
        output = "output" if script in ("fuse_runs.py", "rank_letor.py") else "output_dir"
        arguments = [f"examples/{script}", f"--{output}={tmp_path / 'output'}", *arguments]
        done = scripts.run(*arguments)
        start, _, end = message.format(**paths).partition(".* ")
        assert done.returncode == 1 and done.stderr.startswith(f"error: {start}") and end in done.stderr, command
        assert done.stderr.count("\n") == 1, done.stderr
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == [], command
    # Also in a process, where TensorFlow is imported and may log.
    assert f"{helpers.error_of(*arguments)}\n" == done.stderr


def test_flags_of_formats_are_read_and_an_interruption_inside_a_dataset_is_not_an_error():
    texts = {"first_index": "0", "labeled": "False", "missing": "NULL=-1,NaN=0"}
    expected = data.LetorFormat(first_index=0, labeled=False, missing={"NULL": -1.0, "NaN": 0.0})
    assert scripts.load("examples/format_flags.py").letor_format(texts) == expected
    with pytest.raises(KeyboardInterrupt), scripts.load("examples/command_line.py").errors_in_one_line():
        raise tf.errors.UnknownError(None, None, "KeyboardInterrupt: \nTraceback (most recent call last): ...")
