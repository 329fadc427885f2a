"""The search, run from the command line: killed in its second trial, and resumed."""

import csv

import pytest

from tests import helpers
from tests.helpers import scripts


@pytest.fixture(scope="module")
def folds(tmp_path_factory):
    return helpers.write_folds(tmp_path_factory.mktemp("folds"), num_queries=(20, 8, 8))


def command(folds, output, *arguments):
    search = ["--losses=smoothi_ndcg,list_net", "--hidden=4,8", "--trials=2", '--settings={"epochs": 2}']
    return ["examples/tune.py", f"--data={folds}", f"--output_dir={output}", *search, *arguments]


def result_files(output):
    """Returns the complete results; a killed run may leave a hidden, unfinished file."""
    return {path: path.stat().st_mtime_ns for path in output.glob("results/*/*/[!.]*.npz")}


def trials(output):
    with open(output / "trials.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(folds, tmp_path_factory):
    """The folder of a search that was killed in its second trial, its results then, and the output of the next run."""
    output = tmp_path_factory.mktemp("tune")
    process = helpers.start_python(*command(folds, output))
    helpers.wait_until(lambda: len(result_files(output)) == 3, process)
    process.kill()
    assert "[1/2] ndcg 0." in process.communicate()[0]
    return output, result_files(output), scripts.check_run(*command(folds, output))


@pytest.mark.slow
def test_a_killed_search_resumes(finished):
    output, before, printed = finished
    assert "1 of 2 trials are done, on 2 folds each" in printed
    assert "[2/2] ndcg 0." in printed and "(best 0." in printed and "s left)" in printed
    after = result_files(output)
    assert len(before) == 3 and len(after) == 4  # of two trials: the second kept its finished fold
    assert {path: after[path] for path in before} == before
    first, stopped, second = trials(output)
    assert [trial["state"] for trial in (first, stopped, second)] == ["COMPLETE", "FAIL", "COMPLETE"]
    names = [name for name in stopped if name.startswith("params_")]
    assert [stopped[name] for name in names] == [second[name] for name in names]


@pytest.mark.slow
def test_a_finished_search_trains_nothing_and_another_needs_another_folder(finished, folds):
    output, *_ = finished
    before = result_files(output)
    assert "2 of 2 trials are done" in scripts.check_run(*command(folds, output))
    done = scripts.run(*command(folds, output, "--hidden=16"))
    assert done.returncode == 1
    assert "--hidden was ['4', '8'] in this --output_dir, got ['16']: use another" in done.stdout + done.stderr
    assert result_files(output) == before
