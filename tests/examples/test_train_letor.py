"""The main job, run as a user runs it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import data, evaluation, models

ROOT = pathlib.Path(__file__).absolute().parents[2]
MEASURES = ["ndcg", "ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "P_1", "P_5", "P_10", "map"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    return data.write_synthetic_letor(folder, num_queries=(60, 20, 20), num_features=16)


def command(files, output, *arguments):
    given = [f"--{name}={path}" for name, path in files.items()]
    program = [sys.executable, str(ROOT / "examples" / "train_letor.py"), f"--output_dir={output}"]
    recipe = ["--recipe=paper", "--hidden=16", "--batch_size=16", "--learning_rate=0.01"]
    return [*program, *given, *recipe, *arguments]


def run(files, output, *arguments):
    return subprocess.run(command(files, output, *arguments), capture_output=True, text=True, cwd=ROOT, timeout=600)


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    output = tmp_path_factory.mktemp("output") / "run"
    done = run(files, output, "--epochs=4")
    assert done.returncode == 0, done.stderr
    return output, done.stdout


def test_shows_progress(finished):
    _, printed = finished
    for line in ("60 queries", "Epoch 1/4", "Epoch 4/4", "val_smoothi_ndcg", "Best epoch: ", "test: ndcg 0."):
        assert line in printed


def test_writes_what_it_says(finished):
    output, _ = finished
    expected = ["best.keras", "checkpoints", "curves.png", "export", "metrics.json", "test.run"]
    assert sorted(path.name for path in output.iterdir()) == expected
    assert (output / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_figures_are_those_of_the_run_file(finished, files):
    output, _ = finished
    figures = json.loads((output / "metrics.json").read_text())
    assert list(figures) == ["valid", "test"] and all(list(part) == MEASURES for part in figures.values())
    scores = evaluation.read_run(output / "test.run")
    queries, empty = [], 0
    for inputs, labels in data.read_letor(str(files["test"]), batch_size=1, return_ids=True):
        query = inputs["query_id"][0].numpy().decode()
        documents = [name.decode() for name in inputs["doc_id"][0].numpy()]
        assert sorted(scores[query]) == sorted(documents)
        empty += labels.numpy().max() == 0
        values = np.array([scores[query][name] for name in documents])
        queries.append(evaluation.ScoredQuery(query, documents, labels[0].numpy(), values))
    assert empty > 0 and len(queries) == 20
    again = evaluation.trec_eval(queries)
    assert {name: pytest.approx(value, abs=1e-9) for name, value in again.items()} == figures["test"]


def test_model_and_export_give_the_scores_of_the_run(finished, files):
    output, _ = finished
    model = tf.keras.models.load_model(output / "best.keras")
    exported = tf.saved_model.load(str(output / "export" / "1"))
    rank = exported.signatures["rank"]
    written = evaluation.read_run(output / "test.run")
    for inputs, _ in data.read_letor(str(files["test"]), batch_size=7, return_ids=True):
        ours = model(inputs, training=False).numpy()
        served = rank(features=inputs["features"], mask=inputs["mask"])["scores"].numpy()
        np.testing.assert_allclose(served, ours, rtol=1e-5, atol=1e-5)
        assert (served[~inputs["mask"].numpy()] == models.PADDING_SCORE).all()
        for row, query in enumerate(inputs["query_id"].numpy()):
            for column, document in enumerate(inputs["doc_id"].numpy()[row]):
                if document:
                    score = written[query.decode()][document.decode()]
                    assert ours[row, column] == pytest.approx(score, rel=1e-4, abs=1e-4)


def test_model_card_has_data_loss_and_figures(finished, files):
    output, _ = finished
    card = json.loads((output / "export" / "1" / "assets.extra" / "model_card.json").read_text())
    assert card["metrics"] == json.loads((output / "metrics.json").read_text())
    assert card["loss"]["class"] == "SmoothINDCGLoss"
    assert card["data"]["train"] == str(files["train"]) and card["data"]["queries"] == 60


@pytest.mark.slow
def test_members_are_trained_resumed_and_averaged(files, tmp_path):
    arguments = ["--recipe=default", "--members=2", "--linear_path=0.1"]
    for epochs in (1, 2):
        done = run(files, tmp_path, *arguments, f"--epochs={epochs}")
        assert done.returncode == 0, done.stderr
    assert done.stdout.count("Resuming after 1 finished epochs") == 2
    whole, *members = (
        tf.keras.models.load_model(folder / "best.keras")
        for folder in (tmp_path, tmp_path / "member_1", tmp_path / "member_2")
    )
    config = members[0].get_config()
    assert [config[name] for name in ("hidden", "normalization", "dropout", "linear_path")] == [
        [16],
        "standardize",
        0.5,
        0.1,
    ]
    rank = tf.saved_model.load(str(tmp_path / "export" / "2")).signatures["rank"]
    for inputs, _ in data.read_letor(str(files["test"]), batch_size=7):
        mask = inputs["mask"].numpy()
        each = [member(inputs).numpy()[mask] for member in members]
        assert np.abs(each[0] - each[1]).max() > 1e-3
        for found in (whole(inputs), rank(features=inputs["features"], mask=inputs["mask"])["scores"]):
            np.testing.assert_allclose(found.numpy()[mask], np.mean(each, axis=0), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_killed_and_started_again_it_ends_as_if_undisturbed(finished, files, tmp_path):
    output, _ = finished
    process = subprocess.Popen(command(files, tmp_path, "--epochs=4"), stdout=subprocess.DEVNULL, cwd=ROOT)
    deadline = time.time() + 300
    while not (tmp_path / "checkpoints" / "ckpt-2.index").exists():
        assert time.time() < deadline and process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    resumed = run(files, tmp_path, "--epochs=4")
    assert resumed.returncode == 0, resumed.stderr
    assert "Resuming after " in resumed.stdout and "Epoch 1/4" not in resumed.stdout
    figures, expected = (json.loads((folder / "metrics.json").read_text()) for folder in (tmp_path, output))
    for part in ("valid", "test"):
        assert figures[part] == {name: pytest.approx(value, abs=1e-6) for name, value in expected[part].items()}
    changed = run(files, tmp_path, "--epochs=4", "--alpha=2")
    assert changed.returncode != 0
    assert "alpha=2.0 (was None)" in changed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["--loss=smoothi_precision", "--topn=5", "--alpha=10", "--delta=0.2", "--select_by=ndcg", "--patience=1"],
        ["--loss=list_mle"],
        ["--loss=soft_ndcg", "--sigma=0.5", "--topn=5"],
        ["--loss=smoothi_map", "--strategy=mirrored", "--normalization=standardize", "--hidden=16,8"],
    ],
)
def test_other_losses_and_flags(arguments, files, tmp_path):
    done = run(files, tmp_path, "--epochs=2", *arguments)
    assert done.returncode == 0, done.stderr
    assert 0.3 < json.loads((tmp_path / "metrics.json").read_text())["test"]["ndcg"] < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss=smoothi_map", "--topn=5"], "--loss=smoothi_map takes no --topn"),
        pytest.param(["--test="], "--train, --valid and --test go together", marks=pytest.mark.slow),
        pytest.param(["--hidden=B99"], "`hidden` must be one of 'linear', 'B64'", marks=pytest.mark.slow),
    ],
)
def test_bad_flags_are_explained(arguments, message, files, tmp_path):
    done = run(files, tmp_path, "--epochs=1", *arguments)
    assert done.returncode != 0
    assert message in done.stderr + done.stdout
