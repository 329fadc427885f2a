"""Replicas, in one process or two, train a recommender like one device."""

import pathlib

import numpy as np
import pytest

from tests import helpers
from tests.helpers.clusters import finish, processes_of
from tests.recommendation import replicas

pytestmark = pytest.mark.slow

SCRIPT = pathlib.Path(replicas.__file__).absolute()


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    helpers.check_run(SCRIPT, folder, "mirrored", TF_CONFIG=None)
    return folder


def assert_like_one_device(path, folder, cases):
    found, one_device = np.load(path), np.load(folder / "none.npz")
    assert [*found] == [*cases]
    for case in cases:
        np.testing.assert_allclose(found[case], one_device[case], atol=1e-3, err_msg=case)


def test_replicas_of_one_process_train_like_one_device(in_one_process):
    assert_like_one_device(in_one_process / "mirrored.npz", in_one_process, replicas.CASES)


def test_two_processes_train_like_one_device(in_one_process, tmp_path):
    with processes_of({"worker": 2}, [SCRIPT, tmp_path, "multi_worker"], tmp_path) as processes:
        finish(processes, tmp_path)
    for task in range(2):
        assert_like_one_device(tmp_path / f"multi_worker{task}.npz", in_one_process, replicas.IN_PROCESSES)
