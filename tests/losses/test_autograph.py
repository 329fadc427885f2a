"""AutoGraph converts no function of the library: it would take seconds, and print that it could not."""

import logging

import pytest
import tensorflow as tf

from tests.helpers.modes import step
from tests.losses.test_weights import NAMES, QUICK, batch, get
from tfr_smooth import _compiled


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK | {"smoothi_map"} else pytest.mark.slow) for name in NAMES]
)
def test_a_loss_in_a_function_of_the_user_prints_nothing(name, caplog, monkeypatch):
    monkeypatch.setattr(_compiled, "_cores", lambda: 2)  # Then programs of part of a batch are in loops.
    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    try:
        tf.function(step(get(name))).get_concrete_function(*map(tf.constant, batch(name)))
    finally:
        logger.removeHandler(caplog.handler)
    assert "AutoGraph" not in caplog.text
