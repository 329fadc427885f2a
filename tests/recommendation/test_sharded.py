"""Factors that are divided among parameter servers train on a loss of the library."""

import json
import pathlib

import pytest

from tests.clusters import finish, processes_of
from tfr_smooth import _keras

SCRIPT = pathlib.Path(__file__).absolute().parent / "sharded.py"


@pytest.mark.slow
@pytest.mark.skipif(_keras.IS_KERAS_3, reason="Keras 3 does not support parameter servers")
def test_factors_on_two_parameter_servers_learn_the_items_of_users(tmp_path):
    with processes_of({"ps": 2, "worker": 1, "chief": 1}, [SCRIPT, tmp_path], tmp_path) as processes:
        finish({("chief", 0): processes["chief", 0]}, tmp_path)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["last"] < 0.5 * found["first"]
    assert found["shapes"] == [[20, 8]] * 4
    places = [device.split("/job:ps/")[1].split("/task:")[1].split("/")[0] for device in found["devices"]]
    assert sorted(places) == ["0", "0", "1", "1"]
