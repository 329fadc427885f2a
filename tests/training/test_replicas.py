"""For each loss: the split of a batch over two replicas of one process does not change the step."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.training import replicas

# tests/test_models.py has fast tests of two replicas.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicas") / "results.json"
    script = pathlib.Path(__file__).absolute().parent / "replicas.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CUDA_VISIBLE_DEVICES": "-1"}
    environment.pop("TF_CONFIG", None)
    run = subprocess.run([sys.executable, script, path], env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-4000:]
    return json.loads(path.read_text())


@pytest.mark.parametrize("case", replicas.CASES)
def test_a_step_of_two_replicas_equals_that_of_one_device(results, case):
    replicas.check(results[case], case)
