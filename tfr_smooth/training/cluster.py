"""What the processes of one training must agree on: who writes, and where they are."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

import tensorflow as tf

from tfr_smooth import _keras


def is_chief(strategy: tf.distribute.Strategy | None = None) -> bool:
    """Tells whether this process is the one that writes the files of a training.

    Args:
      strategy: The strategy of the training; None for the current one.

    Returns:
      True for the chief, or worker 0 where there is no chief, and for a training in one process.

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
    """Returns when all workers of the training have called it, in a training of one process at once.

    Args:
      strategy: The strategy of the training.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.training.wait_for_workers(tfr_smooth.training.get_strategy("none"))
    """
    number_by_worker(strategy, 0)


def number_by_worker(strategy: tf.distribute.Strategy, number: int) -> list[int]:
    """Returns what each worker (more precisely each of its replicas) called this with."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return [number]

    @tf.function
    def gather(numbers: tf.Tensor) -> tf.Tensor:
        return strategy.gather(strategy.run(tf.identity, args=(numbers,)), axis=0)

    return [int(found) for found in gather(tf.constant([number], tf.int64)).numpy()]


def check_readable(model: tf.keras.Model) -> None:
    """Raises a `ValueError` if only all workers together can read the variables of a model.

    Keras 2 keeps the moving statistics of batch normalization for each worker, and reads their mean. TensorFlow aborts
    all workers if one of them does that alone.
    """
    strategy = model.distribute_strategy
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return
    cluster = strategy.cluster_resolver.cluster_spec()
    if sum(cluster.num_tasks(job) for job in cluster.jobs) < 2:
        return
    for variable in _keras.tensorflow_variables(model.variables):
        if variable.synchronization == tf.VariableSynchronization.ON_READ:
            raise ValueError(
                "`model` must be loaded from its file, outside of the strategy's scope: only all workers together can "
                f"read a variable such as {variable.name!r}."
            )


@contextlib.contextmanager
def path_to_save(strategy: tf.distribute.Strategy, path: str) -> Iterator[str]:
    """The path for what all workers must save together, and one alone may write.

    Reading a variable may take all workers (the moving statistics of batch normalization are a mean over them), so
    each of them saves: the chief under `path`, the others under a temporary path that is removed after.
    """
    if is_chief(strategy):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, os.path.basename(path))
