"""Two replicas of one process train, evaluate and take steps like one device."""

import json

import numpy as np
import pytest

from tests import helpers
from tests.training import replicas
from tfr_smooth import _keras

pytestmark = [pytest.mark.slow, pytest.mark.keras_2]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicas") / "results.json"
    helpers.check_run(replicas.__file__, path, TF_CONFIG=None)  # also checks that they share a temperature
    return json.loads(path.read_text())


def test_a_step_of_two_replicas_equals_that_of_one_device(results):
    assert list(results["steps"]) == list(replicas.CASES)
    for case, result in results["steps"].items():
        replicas.check(result, case)


def test_two_replicas_train_and_evaluate_like_one_device(results):
    assert list(results["fits"]) == list(replicas.FITS)
    for case, result in results["fits"].items():
        assert result["start"] == 0.0 and result["step"] > 1e-3, case
        # An empty replica of Keras 2 keeps its moving statistics, and the variable is the mean over replicas.
        halves = not _keras.IS_KERAS_3 and case in replicas.WITH_EMPTY_REPLICA
        assert (result["difference"] < 1e-6) != halves, case
        if not halves:
            alone, together = result["shown"]  # loss and NDCG of `fit` and of `evaluate`
            np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6, err_msg=case)
