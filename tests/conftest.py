"""Makes losses that draw random numbers repeatable."""

import pytest
import tensorflow as tf

from tfr_smooth.losses import gumbel


def repeatable_noise(like, sample_size, seed):
    """Replaces `gumbel_noise`: equal for equal labels, so that properties of single documents and lists hold."""
    noise = tf.sin(5.0 * like[:, tf.newaxis] + tf.range(sample_size, dtype=like.dtype)[:, tf.newaxis])
    return tf.round(noise * 256.0) / 256.0  # The sine depends on the place in a vector by rounding.


@pytest.fixture(autouse=True)
def _repeatable_noise(monkeypatch):
    monkeypatch.setattr(gumbel, "gumbel_noise", repeatable_noise)
