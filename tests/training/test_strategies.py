"""Strategies by name."""

import pytest
import tensorflow as tf

from tfr_smooth import training


def test_by_name():
    assert training.get_strategy("none").num_replicas_in_sync == 1
    assert isinstance(training.get_strategy("mirrored"), tf.distribute.MirroredStrategy)
    with pytest.raises(ValueError, match="`name` must be one of 'none', 'mirrored', got 'tpu'"):
        training.get_strategy("tpu")
