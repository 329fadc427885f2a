"""The search, run from the command line: killed in its second trial, and resumed."""

import csv

import pytest

from tests import helpers
from tests.helpers import scripts


@pytest.fixture
def folds(tmp_path):
    return helpers.write_folds(tmp_path / "folds", num_queries=(20, 8, 8))


def command(folds, output, *arguments):
    search = ["--losses=smoothi_ndcg,list_net", "--hidden=4,8", "--trials=2", '--settings={"epochs": 2}']
    return ["examples/tune.py", f"--data={folds}", f"--output_dir={output}", *search, *arguments]


def result_files(output):
    """Returns the complete results; a killed run may leave a hidden, unfinished file."""
    return {path: path.stat().st_mtime_ns for path in output.glob("results/*/*/[!.]*.npz")}


def trials(output):
    with open(output / "trials.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_killed_search_resumes_and_a_finished_one_trains_nothing(folds, tmp_path):
    process = helpers.start_python(*command(folds, tmp_path))
    helpers.wait_until(lambda: len(result_files(tmp_path)) == 3, process)
    process.kill()
    assert "[1/2] ndcg 0." in process.communicate()[0]
    before, printed = result_files(tmp_path), scripts.check_run(*command(folds, tmp_path))
    assert "1 of 2 trials are done, on 2 folds each" in printed
    assert "[2/2] ndcg 0." in printed and "(best 0." in printed and "s left)" in printed
    after = result_files(tmp_path)
    assert len(before) == 3 and len(after) == 4  # of two trials: the second kept its finished fold
    assert {path: after[path] for path in before} == before
    first, stopped, second = trials(tmp_path)
    assert [trial["state"] for trial in (first, stopped, second)] == ["COMPLETE", "FAIL", "COMPLETE"]
    names = [name for name in stopped if name.startswith("params_")]
    assert [stopped[name] for name in names] == [second[name] for name in names]
    # Once more, and with another search space in the same folder.
    assert "2 of 2 trials are done" in scripts.check_run(*command(folds, tmp_path))
    done = scripts.run(*command(folds, tmp_path, "--hidden=16"))
    assert done.returncode == 1
    assert "--hidden was ['4', '8'] in this --output_dir, got ['16']: use another" in done.stdout + done.stderr
    assert result_files(tmp_path) == after
