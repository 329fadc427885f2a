"""Replicas, in one process or two, train a recommender like one device."""

import pathlib

import numpy as np
import pytest

from tests.helpers.clusters import finish, processes_of
from tests.recommendation import replicas

pytestmark = pytest.mark.slow

SCRIPT = pathlib.Path(replicas.__file__).absolute()


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    with processes_of({"chief": 1}, [SCRIPT, folder, "none"], folder) as processes:
        finish(processes, folder)
    return np.load(folder / "none.npz")


@pytest.mark.parametrize("strategy", ["mirrored", "multi_worker"])
def test_replicas_train_like_one_device(strategy, one_device, tmp_path):
    jobs = {"worker": 2} if strategy == "multi_worker" else {"chief": 1}
    with processes_of(jobs, [SCRIPT, tmp_path, strategy], tmp_path) as processes:
        finish(processes, tmp_path)
    written = sorted(tmp_path.glob(f"{strategy}*.npz"))
    assert len(written) == sum(jobs.values())
    for path in written:
        found = np.load(path)
        assert [*found] == (replicas.OF_PROCESSES if strategy == "multi_worker" else [*replicas.CASES])
        for case in found:
            np.testing.assert_allclose(found[case], one_device[case], atol=1e-3, err_msg=case)
