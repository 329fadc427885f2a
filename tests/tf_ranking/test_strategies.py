"""The pipelines on two replicas and in two processes have the steps, metrics and exports of one device."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests import clusters, helpers

helpers.tf_ranking(module=True)

# Each run trains three models in new processes.
pytestmark = pytest.mark.slow

SCRIPT = pathlib.Path(__file__).absolute().parent / "pipeline_task.py"
CASES = ("dnn", "gam", "tasks")


def run(strategy, records, folder):
    """The folder of the training run, and the results of each of its processes."""
    folder.mkdir()
    command = [SCRIPT, strategy, records["train"], records["valid"], folder]
    if strategy == "MultiWorkerMirroredStrategy":
        with clusters.processes_of({"worker": 2}, command, folder) as processes:
            clusters.finish(processes, folder, timeout=480)
    else:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        environment.pop("TF_CONFIG", None)
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=480)
        assert done.returncode == 0, done.stderr[-4000:]
    return folder, [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


@pytest.fixture(scope="module")
def one_device(records, tmp_path_factory):
    return run("none", records, tmp_path_factory.mktemp("one") / "run")


@pytest.fixture(scope="module", params=["MirroredStrategy", "MultiWorkerMirroredStrategy"])
def two_replicas(request, records, tmp_path_factory):
    return run(request.param, records, tmp_path_factory.mktemp("two") / "run")


@pytest.mark.parametrize("case", CASES)
def test_the_weights_are_those_of_one_device(case, one_device, two_replicas):
    (_, (expected,)), (_, found) = one_device, two_replicas
    assert expected[case]["replicas"] == 1
    for process in found:
        assert process[case]["replicas"] == 2
        for ours, theirs in zip(process[case]["weights"], expected[case]["weights"], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_the_metrics_are_those_of_one_device(case, one_device, two_replicas):
    (_, (expected,)), (_, found) = one_device, two_replicas
    for process in found:
        assert process[case]["validation"] == pytest.approx(expected[case]["validation"], abs=1e-5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["latest_model", "best_model_by_metric"])
def test_the_exports_are_those_of_one_device(case, name, one_device, two_replicas, records):
    serialized = tf.constant(list(tf.data.TFRecordDataset(records["valid"]).as_numpy_iterator()))
    expected, found = (
        tf.saved_model.load(str(folder / case / "export" / name)).signatures["serving_default"](serialized)
        for folder, _ in (one_device, two_replicas)
    )
    assert found.keys() == expected.keys()
    for output, scores in expected.items():
        np.testing.assert_allclose(found[output], scores, atol=1e-5)
    assert [path.name for path in (two_replicas[0] / case).glob("*temp*")] == []


def test_several_workers_require_a_seed(two_replicas):
    folder, found = two_replicas
    several = len(found) == 2
    message = "`dataset_builder` must have a `seed` for several workers, which must read in the same order, got None."
    assert [process["refused"] for process in found] == [message if several else None] * len(found)
