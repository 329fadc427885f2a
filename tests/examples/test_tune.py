"""The search, run from the command line: killed in its second trial, and resumed."""

import csv
import json
import signal
import subprocess
import sys
import time

import pytest

import experiments
from tests import helpers
from tests.documents import ROOT
from tfr_smooth import data


@pytest.fixture(scope="module")
def folds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds")
    for seed in (1, 2):
        data.write_synthetic_letor(folder / f"Fold{seed}", seed=seed, num_queries=(20, 8, 8), num_features=16)
    return folder


def command(folds, output, *arguments):
    program = [sys.executable, str(ROOT / "examples" / "tune.py"), f"--data={folds}", f"--output_dir={output}"]
    return [
        *program,
        "--losses=smoothi_ndcg,list_net",
        "--hidden=4,8",
        "--trials=2",
        '--settings={"epochs": 2}',
        *arguments,
    ]


def run(*arguments):
    return helpers.run_python(*command(*arguments)[1:])


def result_files(output):
    """Returns the complete results; a killed run may leave a hidden, unfinished file."""
    return {path: path.stat().st_mtime_ns for path in output.glob("results/*/*/[!.]*.npz")}


@pytest.fixture(scope="module")
def finished(folds, tmp_path_factory):
    """The folder of a search that was killed in its second trial, its results then, and the output of the next run."""
    output = tmp_path_factory.mktemp("tune")
    with subprocess.Popen(command(folds, output), cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 300
        while len(result_files(output)) < 3 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert "[1/2] ndcg 0." in process.stdout.read()
    before = result_files(output)
    assert len(before) == 3
    done = run(folds, output)
    assert done.returncode == 0, done.stderr
    return output, before, done.stdout


@pytest.mark.slow
def test_a_killed_search_resumes(finished):
    output, before, printed = finished
    assert "1 of 2 trials are done, on 2 folds each" in printed
    assert "[2/2] ndcg 0." in printed and "(best 0." in printed and "s left)" in printed
    after = result_files(output)
    assert len(after) == 4  # of two trials: the second kept its finished fold
    assert {path: after[path] for path in before} == before
    with open(output / "trials.csv", newline="") as file:
        first, stopped, second = csv.DictReader(file)
    assert [trial["state"] for trial in (first, stopped, second)] == ["COMPLETE", "FAIL", "COMPLETE"]
    names = [name for name in stopped if name.startswith("params_")]
    assert [stopped[name] for name in names] == [second[name] for name in names]


@pytest.mark.slow
def test_the_best_trial_is_reported(finished, folds):
    output, _, printed = finished
    best = json.loads((output / "best.json").read_text())
    (entry,) = experiments.read_config(output / "config.json")["entries"]
    assert entry.label in printed and {"ranker": entry.ranker, **entry.settings} == best["settings"]
    assert entry.settings["epochs"] == 2 and entry.settings["hidden"][0] in (4, 8)
    assert 0.0003 <= entry.settings["learning_rate"] <= 0.03
    (settings,) = entry.candidates()
    dataset = experiments.find_folds(folds)
    jobs = [experiments.Job(dataset, fold, entry.ranker, settings) for fold in ("Fold1", "Fold2")]
    values = [experiments.read_result(job, output).description["valid"]["ndcg"] for job in jobs]
    assert best["ndcg"] == pytest.approx(sum(values) / 2)
    with open(output / "trials.csv", newline="") as file:
        assert best["ndcg"] == pytest.approx(
            max(float(trial["value"]) for trial in csv.DictReader(file) if trial["value"])
        )


@pytest.mark.slow
def test_a_finished_search_trains_nothing_and_another_needs_another_folder(finished, folds):
    output, *_ = finished
    before = result_files(output)
    done = run(folds, output)
    assert done.returncode == 0 and "2 of 2 trials are done" in done.stdout
    done = run(folds, output, "--hidden=16")
    assert done.returncode != 0
    assert "--hidden was ['4', '8'] in this --output_dir, got ['16']: use another" in done.stdout + done.stderr
    assert result_files(output) == before
