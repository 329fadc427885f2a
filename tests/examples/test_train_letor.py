"""The training script, run from the command line."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tests.helpers import scripts
from tfr_smooth import data, evaluation, models, training

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    return data.write_synthetic_letor(folder, num_queries=(60, 20, 20), num_features=16)


PAPER = (
    *("--members=1", "--hidden=16", "--batch_size=16", "--learning_rate=0.01", "--schedule=constant"),
    *("--softmax_epochs=0", "--normalization=none", "--batch_norm=true", "--dropout=0", "--weight_decay=0"),
)


def command(files, output, *arguments, recipe=PAPER):
    given = [f"--{name}={path}" for name, path in files.items()]
    return ["examples/train_letor.py", f"--output_dir={output}", *given, *recipe, *arguments]


EPOCHS = 16  # of which most are left when a run is interrupted


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    output = tmp_path_factory.mktemp("output") / "run"
    return output, scripts.check_run(*command(files, output, f"--epochs={EPOCHS}"))


def test_progress_is_printed_and_all_output_files_are_those_of_the_model(finished, files):
    output, printed = finished
    lines = printed.splitlines()
    assert lines[0].startswith(" train: 60 queries") and lines[2].startswith("  test: 20 queries")
    last = 6 + EPOCHS
    assert all(line.startswith(f"Epoch {epoch} of {EPOCHS}: ") for epoch, line in enumerate(lines[6:last], 1))
    assert " is used: ndcg 0." in lines[last] and "test: ndcg 0." in lines[last + 2]
    expected = ["best.keras", "curves.png", "export", "metrics.json", "test.run", "training"]
    assert sorted(path.name for path in output.iterdir()) == expected
    rows = pd.read_csv(output / "training" / "log.csv")
    assert rows["epoch"].tolist() == [*range(1, EPOCHS + 1)] and rows["val_smoothi_ndcg"].between(0.0, 1.0).all()
    # The metrics, the run file and the export are those of the model.
    model = tf.keras.models.load_model(output / "best.keras")
    rank = tf.saved_model.load(str(output / "export" / "1")).signatures["rank"]
    dataset = data.read_letor(str(files["test"])).batches(7, ids=True)
    scored = list(training.score_queries(model, dataset))
    scores = {query.query_id: dict(zip(query.doc_ids, query.scores.tolist(), strict=True)) for query in scored}
    assert evaluation.read_run(output / "test.run") == {key: pytest.approx(scores[key], abs=1e-4) for key in scores}
    for inputs, _ in dataset:
        served = rank(features=inputs["features"], mask=inputs["mask"])["scores"].numpy()
        np.testing.assert_allclose(served, model(inputs, training=False).numpy(), rtol=1e-5, atol=1e-5)
        assert (served[~inputs["mask"].numpy()] == models.PADDING_SCORE).all()
    metrics = json.loads((output / "metrics.json").read_text())
    assert list(metrics) == ["valid", "test"]
    assert metrics["test"] == pytest.approx(evaluation.trec_eval(scored))
    card = json.loads((output / "export" / "1" / "assets.extra" / "model_card.json").read_text())
    assert card["metrics"] == metrics and card["data"]["train"] == str(files["train"]) and card["data"]["queries"] == 60


@pytest.fixture(scope="module")
def interrupted(files, tmp_path_factory):
    """The folder of a run that Ctrl-C ended, and what it logged."""
    output = tmp_path_factory.mktemp("interrupted")
    run = command(files, output, f"--epochs={EPOCHS}")
    process = helpers.start_python(*run, TF_CPP_MIN_LOG_LEVEL=None)
    helpers.wait_until((output / "training" / "ckpt-1.index").exists, process)
    os.killpg(process.pid, signal.SIGINT)  # like a terminal, all processes
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    return output, errors


def test_the_default_recipe_trains_members(files, tmp_path):
    given = {"hidden": [8], "members": 2, "batch_size": 16, "epochs": 1, "schedule": "constant", "softmax_epochs": 0}
    flags = [f"--{name}={value[0] if name == 'hidden' else value}" for name, value in given.items()]
    run = command(files, tmp_path, *flags, recipe=[])
    done = helpers.run_python(*run, TF_CPP_MIN_LOG_LEVEL=None)
    assert done.stderr == ""  # no log of TensorFlow
    loaded = tfr_smooth.Ranker.load(tmp_path / "best.keras")
    assert loaded.get_params() == tfr_smooth.Ranker(**given).get_params()


def test_an_interrupted_run_resumes_and_ends_with_the_metrics_of_an_uninterrupted_one(finished, files, interrupted):
    output, errors = interrupted
    assert errors == "Interrupted. The same command resumes after the last finished epoch.\n"  # no log of TensorFlow
    printed = scripts.check_run(*command(files, output, f"--epochs={EPOCHS}"))
    assert " finished epochs in " in printed and "Epoch 1 of" not in printed
    metrics, expected = (json.loads((folder / "metrics.json").read_text()) for folder in (output, finished[0]))
    assert metrics == {part: pytest.approx(values, abs=1e-6) for part, values in expected.items()}
    changed = scripts.run(*command(files, output, f"--epochs={EPOCHS}", '--loss_args={"alpha": 2}'))
    assert changed.returncode == 1 and "alpha=2 (was None)" in changed.stderr
