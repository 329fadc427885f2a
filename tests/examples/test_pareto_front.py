"""The Pareto front of two labels, run from the command line on synthetic data."""

import pandas as pd
import pytest

from tests import helpers


@pytest.mark.slow
def test_each_weight_of_each_aggregation_is_measured_once_and_drawn(tmp_path):
    folds = helpers.write_folds(tmp_path / "data", num_queries=(12, 6, 6), max_documents=8)
    flags = [f"--data={folds}", "--feature=3", f"--output_dir={tmp_path / 'front'}", "--weights=0,0.5,1"]
    flags += ["--loss=list_net", "--hidden=4", "--members=1", "--epochs=1"]
    printed = helpers.check_run("examples/pareto_front.py", *flags)
    rows = pd.read_csv(tmp_path / "front" / "pareto.csv")
    assert not rows.duplicated(["ranker", "weight", "fold", "seed"]).any()
    assert set(rows["ranker"]) == {"sum", "stochastic"} and set(rows["weight"]) == {0.0, 0.5, 1.0}
    assert len(rows) == 2 * 3 * 2
    assert (tmp_path / "front" / "pareto.png").stat().st_size > 0
    # The second run trains nothing, so its figures are the same.
    assert helpers.check_run("examples/pareto_front.py", *flags) == printed
