"""Coordination of the processes of a distributed training run."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

import tensorflow as tf

from tfr_smooth import _keras


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


def check_readable(model: tf.keras.Model) -> None:
    """Raises a `ValueError` if a single worker cannot read the variables of a model.

    Keras 2 stores the moving statistics of batch normalization on each worker and reads their mean. TensorFlow aborts
    all workers if a single worker reads them.
    """
    strategy = model.distribute_strategy
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return
    cluster = strategy.cluster_resolver.cluster_spec()
    if sum(cluster.num_tasks(job) for job in cluster.jobs) < 2:
        return
    for variable in _keras.tensorflow_variables(model.variables):
        if variable.synchronization == tf.VariableSynchronization.ON_READ:
            reason = f"a single worker cannot read variables such as {variable.name!r}"
            raise ValueError(f"`model` must be loaded from its file, outside the strategy's scope: {reason}.")


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
