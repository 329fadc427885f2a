"""Executors: exceptions, killed processes, resuming."""

import concurrent.futures as cf
import dataclasses
import errno
import json
import multiprocessing
import os
import pathlib
import signal

import pytest
import tensorflow as tf

import experiments
from experiments import jobs
from tests import helpers
from tests.helpers import scripts


@dataclasses.dataclass(frozen=True)
class Deadly(experiments.StoredJob):
    """A job that kills its process, unless it has done so in this folder before."""

    number: int
    deaths: str = ""
    readable = "deadly"

    @property
    def description(self):
        return {"dataset": "D", "fold": "Fold1", "seed": self.number, "deaths": self.deaths}

    def compute(self, cache, unfinished):
        if self.deaths == "always" or (self.deaths and not (pathlib.Path(self.deaths) / "died").exists()):
            if self.deaths != "always":
                (pathlib.Path(self.deaths) / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return experiments.Result({"process": os.getpid(), "threads": os.environ.get("TF_NUM_INTRAOP_THREADS")}, {})


PLACES = [(fold, seed) for fold in ("Fold1", "Fold2") for seed in range(3)]


def test_jobs_run_once_on_any_executor_and_those_of_equal_loss_and_data_are_adjacent(dataset, tmp_path):
    given, ran = [experiments.Job(dataset, fold, "random", {}, seed) for fold, seed in PLACES], []

    def progress(ended, title, total):
        for each in ended:
            ran.append((each[0].fold, each[0].seed))
            yield each
        assert (title, total) == ("jobs", 6)

    with cf.ThreadPoolExecutor(1) as pool:
        assert experiments.run_jobs([*given[::-1], given[0]], tmp_path, executor=pool, progress=progress) == []
        assert sorted(ran) == PLACES
        assert experiments.run_jobs(given, tmp_path, executor=pool, progress=pytest.fail) == []
    experiments.run_jobs(given[::-1], tmp_path / "here", workers=0, progress=progress)
    assert ran[6:] == PLACES
    # A job that fails is reported, and others run.
    wrong = experiments.Job(dataset, "Fold1", "single_feature", {"feature": 99})
    other = dataclasses.replace(given[0], seed=9)
    (failure,) = experiments.run_jobs([wrong, other], tmp_path, workers=0)
    assert failure.job == wrong and "IndexError" in failure.message and "index 98" in failure.message
    assert jobs.is_done(other, tmp_path) and not jobs.is_done(wrong, tmp_path)


@pytest.mark.parametrize("kind", [OSError, tf.errors.ResourceExhaustedError])
def test_a_full_disk_is_one_line_with_the_path(kind, tmp_path, monkeypatch):
    def compute(self, cache, unfinished):
        full = os.strerror(errno.ENOSPC)
        raise (
            OSError(errno.ENOSPC, full, f"{unfinished}")
            if kind is OSError
            else kind(None, None, f"{unfinished}; {full}\n")
        )

    monkeypatch.setattr(Deadly, "compute", compute)
    (failure,) = experiments.run_jobs([Deadly(0)], tmp_path, workers=0)
    assert f"{tmp_path}/results/D/Fold1/deadly" in failure.message and "\n" not in failure.message


@pytest.mark.slow
def test_a_job_whose_process_dies_runs_once_more_and_nothing_else_is_lost(tmp_path):
    given = [Deadly(0), Deadly(1, str(tmp_path)), Deadly(2, "always"), *map(Deadly, range(3, 6))]
    failures = experiments.run_jobs(given, tmp_path, workers=1)
    assert [failure.job.number for failure in failures] == [2] and "BrokenProcessPool" in failures[0].message
    assert [job.number for job in given if not jobs.is_done(job, tmp_path)] == [2]
    found = [experiments.read_result(job, tmp_path).description for job in given if job.number != 2]
    assert {each["threads"] for each in found} == {"1"} and os.getpid() not in {each["process"] for each in found}
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_killed_study_resumes(letor, tmp_path):
    config = {"rankers": ["list_net", "ridge"], "grid": {"learning_rate": [0.01, 0.1]}}
    config["settings"] = {"hidden": [8], "epochs": 4, "batch_size": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    program = ["examples/compare_losses.py", f"--data={letor}", f"--output_dir={tmp_path}", "--seeds=1", "--workers=1"]
    program.append(f"--config={tmp_path}/config.json")
    running = helpers.start_python(*program)
    helpers.wait_until(lambda: len(scripts.results_in(tmp_path)) >= 3, running)
    running.kill()
    assert "Traceback" not in running.communicate(timeout=60)[1]  # at the end of the worker
    before = scripts.results_in(tmp_path)
    assert 3 <= len(before) < 16
    printed = scripts.check_run(*program)
    after = scripts.results_in(tmp_path)
    # Per fold: 2 + 6 jobs of the search.
    assert len(after) == 16 and before.items() <= after.items()
    assert "ListNet" in printed and (tmp_path / "report.md").is_file()
