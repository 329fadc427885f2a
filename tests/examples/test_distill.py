"""Distillation of boosted trees, run from the command line on synthetic data."""

import pandas as pd
import pytest
import tensorflow as tf

from tests import helpers


@pytest.mark.slow
def test_students_follow_the_teacher_and_the_best_is_exported(tmp_path):
    arguments = ["--members=1", "--hidden=16", "--dropout=0", "--epochs=6"]
    arguments.append('--distill={"list_net": {}, "ADR": {"loss": "adr_mse", "alpha": 1}}')
    printed = helpers.check_run("examples/distill.py", f"--output_dir={tmp_path}", *arguments)
    table = (tmp_path / "table.md").read_text()
    assert table in printed
    frame = pd.read_csv(tmp_path / "queries.csv")
    rankers = ["LambdaMART (teacher)", "labels: smoothi_ndcg", "teacher: list_net", "teacher: ADR"]
    assert list(frame["ranker"].unique()) == rankers
    assert all(f"| {name} | {values.mean():.4f} ± " in table for name, values in frame.groupby("ranker")["NDCG"])
    correlations = frame.groupby("ranker")["Spearman with the teacher"].mean()
    assert correlations[rankers[0]] == pytest.approx(1.0) and correlations[rankers[2:]].min() > 0.7
    exported = tf.saved_model.load(str(tmp_path / "export" / "1"))
    assert "serving_default" in exported.signatures


@pytest.mark.slow
def test_an_unknown_loss_is_one_line(tmp_path):
    done = helpers.run_python("examples/distill.py", f"--output_dir={tmp_path}", '--distill={"list_nt": {}}')
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "Did you mean 'list_net'" in done.stderr
