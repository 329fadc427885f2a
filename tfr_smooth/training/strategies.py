"""Distribution strategies by name."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras

STRATEGIES = ("none", "mirrored", "multi_worker")

_EXAMPLE = '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'


class _Keras3MultiWorkerStrategy(tf.distribute.MultiWorkerMirroredStrategy):
    """Supports `fit` of Keras 3, which averages the scalar metrics of a step along an axis that scalars lack.

    See https://github.com/keras-team/keras/issues/20585. This strategy averages scalars over replicas only.
    """

    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        if isinstance(value, (tuple, list, dict)):  # Keras reduces batches, too, of which TensorFlow takes one tensor
            return tf.nest.map_structure(lambda each: self.reduce(reduce_op, each, axis), value)
        parts = self.experimental_local_results(value)
        scalars = all(tf.convert_to_tensor(part).shape.rank == 0 for part in parts)
        return super().reduce(reduce_op, value, None if scalars else axis)


def get_strategy(name: str) -> tf.distribute.Strategy:
    """Creates a `tf.distribute` strategy by name. Build and compile the model in its `scope()`.

    Call this function at the start of the program, because processes must connect before TensorFlow does anything else.
    "multi_worker" reads the addresses of the processes and the task of this process from the environment variable
    TF_CONFIG, and waits here for all processes.

    Args:
      name: One of
        "none": one device;
        "mirrored": all GPUs of this machine (the CPU if there are none), each with a shard of every batch;
        "multi_worker": the same over several processes, the workers in TF_CONFIG. All run the same program. The weights
          after a step are those of training on one device.

    Returns:
      The strategy.

    Raises:
      ValueError: If the name is unknown, or TF_CONFIG is missing or invalid.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.training.get_strategy("none").num_replicas_in_sync
      1
    """
    _arguments.choice("name", name, STRATEGIES)
    if name == "mirrored":
        return _mirrored()
    if name == "multi_worker":
        _check_tf_config()
        if _keras.IS_KERAS_3:
            return _Keras3MultiWorkerStrategy()
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.get_strategy()


@functools.cache
def _mirrored() -> tf.distribute.Strategy:
    """Returns the strategy, one per process: the collectives of two would have the same keys."""
    return tf.distribute.MirroredStrategy()


def _check_tf_config() -> None:
    """Raises a `ValueError` if TF_CONFIG is invalid; TensorFlow would hang, or silently train on one worker."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        cluster = {job: list(addresses) for job, addresses in config["cluster"].items()}
        job, index = config["task"]["type"], int(config["task"]["index"])
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(
            "The environment variable TF_CONFIG must describe the cluster and the task of this process for "
            f"'multi_worker', as in {_EXAMPLE}, got {text!r}."
        ) from None
    for problem, wrong in (
        ("must have the job worker", "worker" not in cluster),
        ("must have no jobs except chief, worker", not set(cluster) <= {"chief", "worker"}),
        (f"must have a task in the cluster, not {job} {index}", not 0 <= index < len(cluster.get(job, []))),
    ):
        if wrong:
            raise ValueError(f"The environment variable TF_CONFIG {problem} for 'multi_worker', got {text!r}.")
