"""Worker processes: order of jobs, exceptions, kills, resuming."""

import functools
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tfr_smooth import study
from tfr_smooth.study import jobs, workers

ROOT = pathlib.Path(__file__).absolute().parents[2]


def some_jobs(dataset, seeds=range(3)):
    return [study.Job(dataset, fold, "random", {}, seed) for fold in ("Fold1", "Fold2") for seed in seeds]


def test_a_worker_prefers_jobs_that_share_its_graph(dataset):
    waiting = [
        study.Job(dataset, "Fold1", "smoothi_ndcg", {"alpha": alpha, "learning_rate": rate})
        for rate in (0.1, 0.2, 0.3)
        for alpha in (1.0, 2.0)
    ]
    queue = workers._Queue(waiting)
    first, second = queue.take(None), queue.take(None)
    assert (first.settings["alpha"], second.settings["alpha"]) == (1.0, 2.0)
    taken = [queue.take(first.affinity) for _ in range(2)]
    assert [job.settings for job in taken] == [{"alpha": 1.0, "learning_rate": rate} for rate in (0.2, 0.3)]
    assert queue.take(first.affinity).affinity == second.affinity
    assert len(queue) == 1


@pytest.mark.slow
def test_results_of_worker_processes_equal_those_of_this_process(plan, dataset, tmp_path):
    selected = [job for place in plan.places() for job in plan.selected(*place)]
    ended = []
    assert study.run_jobs(selected[::-1], tmp_path, workers=2, progress=ended.append) == []
    assert len(ended) == len({job.file for job in selected})
    for job in selected:
        here, there = (study.read_result(job, folder) for folder in (plan.folder, tmp_path))
        assert here.description["valid"] == there.description["valid"]
        for name in ("valid_scores", "test_scores", "test_metrics"):
            assert (here.arrays[name] == there.arrays[name]).all(), (job.file, name)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("processes", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_failing_job_is_reported_and_other_jobs_run(dataset, tmp_path, processes):
    wrong = study.Job(dataset, "Fold1", "single_feature", {"feature": 99})
    others = some_jobs(dataset)
    (failure,) = study.run_jobs([others[0], wrong, *others[1:]], tmp_path, workers=processes)
    assert failure.job == wrong and "IndexError" in failure.message and "index 98" in failure.message
    assert all(jobs.is_done(job, tmp_path) for job in others) and not jobs.is_done(wrong, tmp_path)


@pytest.mark.slow
def test_a_killed_worker_loses_only_its_job(dataset, tmp_path):
    waiting = some_jobs(dataset)
    killed = []

    def kill(job):
        if not killed:
            (child,) = multiprocessing.active_children()
            killed.append(child.pid)
            child.kill()
            child.join()

    failures = study.run_jobs(waiting, tmp_path, workers=1, progress=kill)
    assert [failure.message for failure in failures] == ["The process ended with exit code -9."]
    missing = [job for job in waiting if not jobs.is_done(job, tmp_path)]
    assert missing == [failures[0].job]
    assert study.run_jobs(waiting, tmp_path, workers=1) == []
    assert all(jobs.is_done(job, tmp_path) for job in waiting)


def command(letor, output):
    program = [sys.executable, str(ROOT / "examples/compare_losses.py"), f"--data={letor}", f"--output_dir={output}"]
    recipe = "hidden=[8] epochs=150 batch_size=4"
    rankers = ["--rankers=list_net ridge", "--grid=learning_rate=[0.01,0.1]"]
    return [*program, *rankers, f"--recipe={recipe}", "--workers=2", "--seeds=2"]


def results_in(output):
    return {path: path.stat().st_mtime_ns for path in (output / "results").rglob("*.npz") if path.name[0] != "."}


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/proc").is_dir(), reason="needs /proc to list the workers of a process")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_an_interrupted_study_resumes(letor, tmp_path, end):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # In a background process of a shell, SIGINT is ignored by default.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(
        command(letor, tmp_path), env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )
    deadline = time.time() + 200
    while len(results_in(tmp_path)) < 3 and running.poll() is None and time.time() < deadline:
        time.sleep(0.05)
    assert running.poll() is None, running.communicate()[1]
    started = children(running.pid)
    running.send_signal(end)
    running.wait(timeout=60)
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in started) and time.time() < deadline:
        time.sleep(0.1)  # The workers finish their jobs first.
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in started)
    before = results_in(tmp_path)
    assert 3 <= len(before) < 18
    done = subprocess.run(command(letor, tmp_path), env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    after = results_in(tmp_path)
    # Per fold: 2 + 6 jobs of the search, and one more seed of the loss.
    assert len(after) == 18
    assert {path: after[path] for path in before} == before
    assert "ListNet" in done.stdout and (tmp_path / "report.html").is_file()
