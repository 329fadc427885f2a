"""Makes losses that draw random numbers repeatable, and runs functions without graphs."""

# The main process of pytest-xdist reads this file, too, and does not need TensorFlow.
import pytest


def repeatable_noise(like, sample_size, seed):
    """Replaces `gumbel_noise`: equal for equal labels, so that properties of single documents and lists hold."""
    import tensorflow as tf

    noise = tf.sin(5.0 * like[:, tf.newaxis] + tf.range(sample_size, dtype=like.dtype)[:, tf.newaxis])
    return tf.round(noise * 256.0) / 256.0  # The sine depends on the place in a vector by rounding.


@pytest.fixture(autouse=True)
def _repeatable_noise(monkeypatch):
    from tfr_smooth.losses import gumbel

    monkeypatch.setattr(gumbel, "gumbel_noise", repeatable_noise)
    monkeypatch.setattr(gumbel, "uniform_noise", lambda *args: 0.5 + 0.5 * repeatable_noise(*args))


@pytest.fixture
def eagerly():
    """Runs functions without graphs, where few small steps take less time than the graphs of several trainings."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
