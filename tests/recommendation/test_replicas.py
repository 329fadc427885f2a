"""A recommender trained on two replicas of one process is that of one device."""

import json

import pytest

from tests import helpers
from tests.recommendation import replicas

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicas") / "results.json"
    helpers.check_run(replicas.__file__, path, TF_CONFIG=None)
    return json.loads(path.read_text())


@pytest.mark.parametrize("case", replicas.CASES)
def test_two_replicas_train_like_one_device(results, case):
    assert results[case]["difference"] < 1e-3 and results[case]["training"] > 1.0
