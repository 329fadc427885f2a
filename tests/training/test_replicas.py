"""For each loss: the split of a batch over two replicas of one process does not change the step."""

import json

import pytest

from tests import helpers
from tests.training import replicas

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicas") / "results.json"
    helpers.check_run(replicas.__file__, path, TF_CONFIG=None)
    return json.loads(path.read_text())


@pytest.mark.parametrize("case", replicas.CASES)
def test_a_step_of_two_replicas_equals_that_of_one_device(results, case):
    replicas.check(results[case], case)
