"""The pipelines on two replicas and in two processes have the weights and metrics of one device."""

import json
import pathlib
from unittest import mock

import pytest

from tests import helpers
from tests.helpers import clusters

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking import pipeline_task  # noqa: E402

# Each run trains two models, on replicas in new processes.
pytestmark = pytest.mark.slow

SCRIPT = pathlib.Path(__file__).absolute().parent / "pipeline_task.py"


def run(strategy, folder):
    """The results of each process of the training run."""
    command = [SCRIPT, strategy, folder]
    if strategy == "none":
        with mock.patch.object(tfr.keras.strategy_utils, "get_strategy", tfr.keras.strategy_utils.get_strategy):
            pipeline_task.main(strategy, folder)
    elif strategy == "MultiWorkerMirroredStrategy":
        with clusters.processes_of({"worker": 2}, command, folder) as processes:
            clusters.finish(processes, folder, timeout=480)
    else:
        helpers.check_run(*command, TF_CONFIG=None)
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    return run("none", tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize(("strategy", "count"), [("MirroredStrategy", 1), ("MultiWorkerMirroredStrategy", 2)])
def test_the_weights_and_metrics_are_those_of_one_device(strategy, count, one_device, tmp_path):
    found = run(strategy, tmp_path)
    assert len(found) == count
    for process in found:
        assert process.keys() == ({"dnn"} if count == 2 else one_device[0].keys())
        for case in process:
            expected = one_device[0][case]
            assert expected["replicas"] == 1 and len(expected["metrics"]) == 1 + (case == "tasks")
            assert process[case]["replicas"] == 2
            helpers.assert_same(process[case]["weights"], expected["weights"], rtol=1e-7, atol=1e-5)
            assert process[case]["metrics"] == pytest.approx(expected["metrics"], abs=1e-5)
