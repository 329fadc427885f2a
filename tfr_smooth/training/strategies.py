"""Distribution strategies by name."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras

STRATEGIES = ("none", "mirrored", "multi_worker", "parameter_server")

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
    "multi_worker" and "parameter_server" read the addresses of the processes and the task of this process from the
    environment variable TF_CONFIG, and wait here for all processes.

    Args:
      name: One of
        "none": one device;
        "mirrored": all GPUs of this machine (the CPU if there are none), each with a shard of every batch;
        "multi_worker": the same over several processes, the workers in TF_CONFIG. All run the same program. The weights
          after a step are those of training on one device;
        "parameter_server": only with Keras 2. The chief in TF_CONFIG runs the program; in a worker or parameter server,
          this call serves the chief and never returns. Workers train asynchronously, so runs are not reproducible. The
          data must be readable without Python: `data.Lists.batches(..., portable=True)`.

    Returns:
      The strategy.

    Raises:
      ValueError: If the name is unknown, Keras does not support the strategy, or TF_CONFIG is missing or invalid.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.training.get_strategy("none").num_replicas_in_sync
      1
    """
    _arguments.choice("name", name, STRATEGIES)
    if name == "mirrored":
        return _mirrored()
    if name == "multi_worker":
        _check_tf_config(name, needed=("worker",), allowed=("chief", "worker"))
        if _keras.IS_KERAS_3:
            return _Keras3MultiWorkerStrategy()
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "parameter_server":
        if _keras.IS_KERAS_3:
            raise ValueError(
                "`name` must be 'none', 'mirrored' or 'multi_worker' with Keras 3, which does not support "
                "parameter servers (TensorFlow 2.15 with Keras 2 does), got 'parameter_server'."
            )
        _check_tf_config(name, needed=("chief", "ps", "worker"), allowed=("chief", "ps", "worker"))
        return _parameter_server_strategy()
    return tf.distribute.get_strategy()


@functools.cache
def _mirrored() -> tf.distribute.Strategy:
    """Returns the strategy, one per process: the collectives of two would have the same keys."""
    return tf.distribute.MirroredStrategy()


def _parameter_server_strategy() -> tf.distribute.Strategy:
    # Reports failures of workers and parameter servers to the chief, as TensorFlow's guide recommends.
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
    # Training hangs with one thread between operations, TensorFlow's default on one core.
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(max(4, os.cpu_count() or 1)))
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()
    return tf.distribute.ParameterServerStrategy(resolver)


def _check_tf_config(name: str, *, needed: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    """Raises a `ValueError` if TF_CONFIG is invalid; TensorFlow would hang, or silently train on one worker."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        cluster = {job: list(addresses) for job, addresses in config["cluster"].items()}
        job, index = config["task"]["type"], int(config["task"]["index"])
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(
            f"The environment variable TF_CONFIG must describe the cluster and the task of this process for {name!r}, "
            f"as in {_EXAMPLE}, got {text!r}."
        ) from None
    for problem, wrong in (
        (f"must have the jobs {', '.join(needed)}", not set(needed) <= set(cluster)),
        (f"must have no jobs except {', '.join(allowed)}", not set(cluster) <= set(allowed)),
        (f"must have a task in the cluster, not {job} {index}", not 0 <= index < len(cluster.get(job, []))),
    ):
        if wrong:
            raise ValueError(f"The environment variable TF_CONFIG {problem} for {name!r}, got {text!r}.")
