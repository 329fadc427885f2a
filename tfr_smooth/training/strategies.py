"""Where a training runs."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth import _arguments

STRATEGIES = ("none", "mirrored")


def get_strategy(name: str) -> tf.distribute.Strategy:
    """Makes a `tf.distribute` strategy by name: build and compile the model in its `scope()`.

    Args:
      name: "none" for one device, "mirrored" for all GPUs of this machine (its CPU if it has none), each with a share
        of every batch.

    Returns:
      The strategy.

    Raises:
      ValueError: If there is no such strategy.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.training.get_strategy("none").num_replicas_in_sync
      1
    """
    if _arguments.choice("name", name, STRATEGIES) == "mirrored":
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()
