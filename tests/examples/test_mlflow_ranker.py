"""What examples/mlflow_ranker.py logs is the ranker: its scores in a new process, its curves, measures and card."""

import json
import os

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tests import helpers
from tests.helpers import exports, scripts

pytestmark = pytest.mark.slow
mlflow = pytest.importorskip("mlflow", reason="MLflow is only in the stack 'latest'")

LOAD = """
import sys, mlflow, numpy as np, pandas as pd
model = mlflow.pyfunc.load_model(sys.argv[1])
np.save(sys.argv[3], model.predict(pd.read_parquet(sys.argv[2])))
"""


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store in files, which needs no database, of this process and those that it starts."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
    yield
    mlflow.set_tracking_uri(None)


def test_a_logged_ranker_scores_the_same_in_a_new_process(store, tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"search": np.repeat(np.arange(40), 5), "price": random.normal(size=200)})
    frame["label"] = (frame["price"] + random.normal(size=200) > 0.5).astype(int)
    ranker = tfr_smooth.Ranker(hidden=[8], members=1, epochs=2, trees=False, verbose=False)
    with mlflow.start_run() as run:
        live = [mlflow.tensorflow.MlflowCallback()]
        ranker.fit(frame, label="label", query="search", validation=frame, callbacks=live)
        address = scripts.load("examples/mlflow_ranker.py").log_ranker(ranker, frame, "Of a test.")
    frame.drop(columns="label").to_parquet(tmp_path / "new.parquet")
    helpers.check_run("-c", LOAD, address, tmp_path / "new.parquet", tmp_path / "scores.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), ranker.predict(frame))

    data, client = mlflow.get_run(run.info.run_id).data, mlflow.MlflowClient()
    assert data.params["members"] == "1"
    for name, values in ranker.history_.items():
        logged = {each.step: each.value for each in client.get_metric_history(run.info.run_id, name)}
        assert [logged[epoch] for epoch in range(1, 3)] == values
    measured = ranker.evaluate(frame, measures=["recip_rank"])["recip_rank"]
    assert data.metrics["test_recip_rank"] == measured.mean
    assert data.metrics["test_recip_rank_high"] == pytest.approx(measured.mean + 1.96 * measured.standard_error)
    card = json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/model_card.json"))
    assert card["description"] == "Of a test." and card["measures"]["recip_rank"] == measured.mean
    exported = mlflow.artifacts.download_artifacts(f"{run.info.artifact_uri}/export/1")
    served = exports.scores_of(exported, ranker, frame, frame["search"])
    np.testing.assert_allclose(served, ranker.predict(frame), atol=1e-5)


def test_the_script_prints_the_address_of_the_model(store, monkeypatch):
    scripts.small_rankers(monkeypatch)
    assert scripts.check_run("examples/mlflow_ranker.py").splitlines()[-1].startswith("models:/")
