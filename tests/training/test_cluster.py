"""Training in several real processes on this machine, connected by TF_CONFIG."""

import json
import pathlib
import shutil

import pytest
import tensorflow as tf

from tests import helpers
from tests.helpers.clusters import finish, processes_of
from tests.training import replicas
from tfr_smooth import data

pytestmark = pytest.mark.slow

SCRIPT = pathlib.Path(__file__).absolute().parent / "cluster_task.py"


def a_cluster(folder, how):
    """Starts cluster_task.py once per worker, and ends all at exit. Yields the processes by job and index."""
    return processes_of({"worker": 2}, [SCRIPT, folder, how], folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    data.write_synthetic_letor(folder, num_queries=(30, 13, 5), num_features=16, max_documents=20)
    return folder


def finished(files, folder, how):
    """Runs a cluster to its end, and returns the results of each of two workers."""
    for name in ("train.txt", "vali.txt"):
        shutil.copy(files / name, folder)
    with a_cluster(folder, how) as processes:
        finish(processes, folder)
    return [json.loads((folder / f"{index}.json").read_text()) for index in range(2)]


@pytest.fixture(scope="module")
def uninterrupted(files, tmp_path_factory):
    """The folder and the results of a training in which each worker has its own output folder."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    return folder, finished(files, folder, "apart")


def test_workers_compute_what_one_device_does(uninterrupted):
    _, workers = uninterrupted
    assert [(worker["chief"], worker["replicas"]) for worker in workers] == [(True, 2), (False, 2)]
    for worker in workers:
        for case, steps in worker["steps"].items():
            replicas.check(steps, case)
        metrics = worker["metrics"]
        assert len(metrics["alone"]) == 4
        assert metrics["together"] == {name: pytest.approx(v, rel=1e-6) for name, v in metrics["alone"].items()}


def test_workers_share_each_batch_and_miss_no_list(uninterrupted):
    for way in ("in order", "shuffled"):
        first, second = (worker["shares"][way] for worker in uninterrupted[1])
        assert first["everything"] == second["everything"]  # both workers read in the same order
        assert [len(batch) for batch in first["everything"]][:4] == [8, 8, 8, 6]
        for batch, ours, theirs in zip(first["everything"], first["own"], second["own"], strict=True):
            assert len(ours) == len(theirs) == len(batch) / 2
            assert sorted(ours + theirs) == sorted(batch)


def test_only_the_chief_writes_and_workers_that_see_different_checkpoints_refuse_to_train(uninterrupted):
    folder, workers = uninterrupted
    output = folder / "output0"
    assert sorted(path.name for path in output.iterdir()) == ["best.keras", "checkpoints"]
    kept = {path.name.partition(".")[0] for path in (output / "checkpoints").iterdir()}
    assert kept == {"ckpt-2", "ckpt-3", "log"}
    assert not (folder / "output1").exists()
    for name in ("start", "weights", "validation"):
        assert workers[0][name] == workers[1][name]
    for worker in workers:
        assert "`directory` must be the same for all workers, got checkpoints of epochs [3, 0]." in worker["refused"]


def test_training_resumes_with_the_interrupted_epoch_after_a_worker_is_killed(files, uninterrupted, tmp_path):
    for name in ("train.txt", "vali.txt"):
        shutil.copy(files / name, tmp_path)
    with a_cluster(tmp_path, "kill") as processes:
        assert processes["worker", 1].wait(120) == -9
        assert processes["worker", 0].wait(60) > 0  # it fails instead of waiting forever
    assert not (tmp_path / "0.json").exists() and not (tmp_path / "1.json").exists()
    folder, (expected, _) = uninterrupted
    for found in finished(files, tmp_path, "together"):
        assert found["start"] == 1 and expected["start"] == 0
        assert found["validation"]["best_epoch"] == expected["validation"]["best_epoch"]
        helpers.assert_same(found["weights"], expected["weights"], rtol=1e-6, atol=1e-7)
    best, expected_best = (tf.keras.models.load_model(f / "output0" / "best.keras") for f in (tmp_path, folder))
    helpers.assert_same(best.get_weights(), expected_best.get_weights(), rtol=1e-6, atol=1e-7)
