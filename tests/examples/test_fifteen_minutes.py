"""The first fifteen minutes: from a log to scores over HTTP."""

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tests.helpers import scripts


@pytest.mark.slow
def test_the_server_answers_with_the_scores_of_predict(tmp_path, monkeypatch):
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
