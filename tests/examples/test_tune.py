"""The search, run from the command line: killed in its second trial, and resumed."""

import pandas as pd
import pytest

from tests import helpers
from tests.helpers import scripts


@pytest.mark.slow
def test_a_killed_search_resumes_and_a_finished_one_trains_nothing(tmp_path):
    refused = scripts.run("examples/tune.py", f"--data={tmp_path}", f"--output_dir={tmp_path}")
    assert refused.returncode == 1 and refused.stderr.startswith("error: `folder` must contain Fold1 .. FoldK or ")
    folds = helpers.write_folds(tmp_path / "folds", num_queries=(12, 6, 6), max_documents=10)
    command = ["examples/tune.py", f"--data={folds}", f"--output_dir={tmp_path}", "--losses=smoothi_ndcg,list_net"]
    command += ["--hidden=4,8", "--trials=2", '--settings={"epochs": 1, "trees": false}']
    process = helpers.start_python(*command)
    helpers.wait_until(lambda: len(scripts.results_in(tmp_path)) == 3, process)
    process.kill()
    assert "[1/2] ndcg 0." in process.communicate()[0]
    before, printed = scripts.results_in(tmp_path), scripts.check_run(*command)
    assert "1 of 2 trials are done, on 2 folds each" in printed
    assert "[2/2] ndcg 0." in printed and "(best 0." in printed and "s left)" in printed
    after = scripts.results_in(tmp_path)
    # Of two trials: the second kept its finished fold.
    assert len(before) == 3 and len(after) == 4 and before.items() <= after.items()
    trials = pd.read_csv(tmp_path / "trials.csv")
    assert trials["state"].tolist() == ["COMPLETE", "FAIL", "COMPLETE"]
    _, stopped, second = trials.filter(like="params_").to_numpy().tolist()
    assert stopped == second
    # Once more, and with another search space in the same folder.
    assert "2 of 2 trials are done" in scripts.check_run(*command)
    done = scripts.run(*command, "--hidden=16")
    assert (
        done.returncode == 1 and "--hidden was ['4', '8'] in this --output_dir, got ['16']" in done.stdout + done.stderr
    )
    assert scripts.results_in(tmp_path) == after
