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


def a_cluster(jobs, what, folder, *arguments):
    """Starts cluster_task.py once per task, and ends all at exit. Yields the processes by job and index."""
    return processes_of(jobs, [SCRIPT, what, folder, *arguments], folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    data.write_synthetic_letor(folder, num_queries=(30, 13, 5), num_features=16, max_documents=20)
    return folder


def prepare(files, folder):
    for name in ("train.txt", "vali.txt"):
        shutil.copy(files / name, folder)
    return folder


@pytest.fixture(scope="module")
def compared(files, tmp_path_factory):
    """The results of each of two workers."""
    folder = prepare(files, tmp_path_factory.mktemp("compare"))
    with a_cluster({"worker": 2}, "compare", folder) as processes:
        finish(processes, folder)
    return [json.loads((folder / f"{index}.json").read_text()) for index in range(2)]


def test_one_worker_is_the_chief(compared):
    assert [worker["chief"] for worker in compared] == [True, False]
    assert [worker["replicas"] for worker in compared] == [2, 2]


@pytest.mark.parametrize("case", ["smoothi_ndcg", "mean_squared"])
def test_a_step_of_two_workers_equals_that_of_one_device(compared, case):
    for worker in compared:
        replicas.check(worker["steps"][case], case)


@pytest.mark.parametrize("way", ["in order", "shuffled"])
def test_workers_share_each_batch_and_miss_no_list(compared, way):
    first, second = (worker["shares"][way] for worker in compared)
    assert first["everything"] == second["everything"]  # both workers read in the same order
    assert [len(batch) for batch in first["everything"]][:4] == [8, 8, 8, 6]
    for batch, ours, theirs in zip(first["everything"], first["own"], second["own"], strict=True):
        assert len(ours) == len(theirs) == len(batch) / 2
        assert sorted(ours + theirs) == sorted(batch)


def test_each_worker_has_the_metrics_of_one_device(compared):
    for worker in compared:
        metrics = worker["metrics"]
        assert len(metrics["alone"]) == 4
        assert metrics["together"] == {name: pytest.approx(v, rel=1e-6) for name, v in metrics["alone"].items()}


@pytest.fixture(scope="module")
def uninterrupted(files, tmp_path_factory):
    folder = prepare(files, tmp_path_factory.mktemp("uninterrupted"))
    with a_cluster({"worker": 2}, "train", folder, "apart") as processes:
        finish(processes, folder)
    return folder


def result_of(folder, index):
    return json.loads((folder / f"{index}.json").read_text())


def test_only_the_chief_writes(uninterrupted):
    output = uninterrupted / "output0"
    assert sorted(path.name for path in output.iterdir()) == ["best.keras", "checkpoints"]
    kept = {path.name.partition(".")[0] for path in (output / "checkpoints").iterdir()}
    assert kept == {"ckpt-2", "ckpt-3", "log"}
    assert not (uninterrupted / "output1").exists()
    assert result_of(uninterrupted, 0) == result_of(uninterrupted, 1)
    assert result_of(uninterrupted, 0)["start"] == 0


def test_workers_that_see_different_checkpoints_refuse_to_train(uninterrupted):
    with a_cluster({"worker": 2}, "train", uninterrupted, "apart") as processes:
        assert all(process.wait(120) > 0 for process in processes.values())
    message = "`directory` must be the same for all workers, got checkpoints of epochs [3, 0]."
    assert message in (uninterrupted / "worker0.log").read_text() + (uninterrupted / "worker1.log").read_text()


def test_training_resumes_with_the_interrupted_epoch_after_a_worker_is_killed(files, uninterrupted, tmp_path):
    folder = prepare(files, tmp_path)
    with a_cluster({"worker": 2}, "train", folder, "kill") as processes:
        assert processes["worker", 1].wait(120) == -9
        assert processes["worker", 0].wait(60) > 0  # it fails instead of waiting forever
    assert not (folder / "0.json").exists() and not (folder / "1.json").exists()
    with a_cluster({"worker": 2}, "train", folder) as processes:
        finish(processes, folder)
    expected = result_of(uninterrupted, 0)
    for index in range(2):
        found = result_of(folder, index)
        assert found["start"] == 1
        assert found["validation"]["best_epoch"] == expected["validation"]["best_epoch"]
        helpers.assert_same(found["weights"], expected["weights"], rtol=1e-6, atol=1e-7)
    best, expected_best = (tf.keras.models.load_model(f / "output0" / "best.keras") for f in (folder, uninterrupted))
    helpers.assert_same(best.get_weights(), expected_best.get_weights(), rtol=1e-6, atol=1e-7)


def example(files, output, *more):
    """Returns the command of the training script for small networks."""
    given = [f"--train={files / 'train.txt'}", f"--valid={files / 'vali.txt'}", f"--test={files / 'test.txt'}"]
    sizes = ["--hidden=8", "--batch_size=8", "--learning_rate=0.01", "--epochs=2", "--members=2"]
    sizes += ["--normalization=none", "--batch_norm=true", "--dropout=0"]
    return [SCRIPT.parents[2] / "examples" / "train_letor.py", *given, *sizes, f"--output_dir={output}", *more]


def test_the_example_has_the_metrics_of_one_process(files, tmp_path):
    command = example(files, tmp_path / "two", "--strategy=multi_worker")
    with processes_of({"worker": 2}, command, tmp_path) as processes:
        finish(processes, tmp_path)
    helpers.check_run(*example(files, tmp_path / "one"))
    expected, found = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("one", "two"))
    assert list(found) == ["valid", "test"]
    for part, metrics in expected.items():
        assert found[part] == {name: pytest.approx(value, abs=1e-6) for name, value in metrics.items()}
    written = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("one", "two")]
    assert written[0] == written[1]
