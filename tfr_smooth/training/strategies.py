"""Distribution strategies by name, and the coordination of the processes of a distributed training run."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Iterator
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
        return _Keras3MultiWorkerStrategy() if _keras.IS_KERAS_3 else tf.distribute.MultiWorkerMirroredStrategy()
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
        is_valid = "worker" in cluster and cluster.keys() <= {"chief", "worker"} and 0 <= index < len(cluster[job])
    except (ValueError, LookupError, TypeError, AttributeError):
        is_valid = False
    if not is_valid:
        raise ValueError(
            "The environment variable TF_CONFIG must describe a cluster of workers, with or without a chief, and the "
            f"task of this process for 'multi_worker', as in {_EXAMPLE}, got {text!r}."
        )


def is_chief(strategy: tf.distribute.Strategy | None = None) -> bool:
    """Returns whether this process writes the files of the training run.

    Args:
      strategy: The strategy of the training run. None uses the current strategy.

    Returns:
      True for the chief, for worker 0 if there is no chief, and for training in one process.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.training.is_chief(tfr_smooth.training.get_strategy("none"))
      True
    """
    resolver = (strategy or tf.distribute.get_strategy()).cluster_resolver
    if resolver is None or resolver.task_type in (None, "", "chief"):
        return True
    with_chief = "chief" in resolver.cluster_spec().as_dict()
    return resolver.task_type == "worker" and resolver.task_id == 0 and not with_chief


def wait_for_workers(strategy: tf.distribute.Strategy) -> None:
    """Blocks until all workers have called this function; returns immediately when training in one process.

    Args:
      strategy: The strategy of the training run.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.training.wait_for_workers(tfr_smooth.training.get_strategy("none"))
    """
    number_by_worker(strategy, 0)


def number_by_worker(strategy: tf.distribute.Strategy, number: int) -> list[int]:
    """Returns the argument of this call on each worker (more precisely, on each of its replicas)."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return [number]

    @tf.function
    def gather(numbers: tf.Tensor) -> tf.Tensor:
        return strategy.gather(strategy.run(tf.identity, args=(numbers,)), axis=0)

    return [int(found) for found in gather(tf.constant([number], tf.int64)).numpy()]


@contextlib.contextmanager
def path_to_save(strategy: tf.distribute.Strategy, path: str) -> Iterator[str]:
    """Returns the path for a file that all workers must save but only the chief may write.

    Reading a variable may require all workers (the moving statistics of batch normalization are a mean over workers),
    so each worker saves: the chief to `path`, other workers to a temporary path that is removed afterwards.
    """
    if is_chief(strategy):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, os.path.basename(path))
