"""Where a training runs."""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras

STRATEGIES = ("none", "mirrored", "multi_worker", "parameter_server")

_EXAMPLE = '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'


class _Keras3MultiWorkerStrategy(tf.distribute.MultiWorkerMirroredStrategy):
    """Runs the `fit` of Keras 3, which asks for the mean of a step's figures along an axis that scalars lack.

    https://github.com/keras-team/keras/issues/20585. The mean over replicas alone is what is meant.
    """

    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        parts = self.experimental_local_results(value)
        scalars = all(tf.convert_to_tensor(part).shape.rank == 0 for part in parts)
        return super().reduce(reduce_op, value, None if scalars else axis)


def get_strategy(name: str) -> tf.distribute.Strategy:
    """Makes a `tf.distribute` strategy by name: build and compile the model in its `scope()`.

    Call it at the start of the program: processes find each other before TensorFlow does anything else. Those of
    "multi_worker" and "parameter_server" read their addresses and which of them they are from the environment variable
    TF_CONFIG, and wait for each other here.

    Args:
      name: One of
        "none": one device;
        "mirrored": all GPUs of this machine (its CPU if it has none), each with a share of every batch;
        "multi_worker": the same over several processes, TF_CONFIG's workers. All run the same program. The weights
          after a step are those of one device;
        "parameter_server": Keras 2 alone. TF_CONFIG's chief runs the program; in a worker or parameter server this
          call serves the chief and never returns. The workers train independently of each other, so no run is like
          another. They need data that can be read without Python: `data.read_letor(..., cache=True)`.

    Returns:
      The strategy.

    Raises:
      ValueError: If there is no such strategy, Keras does not support it, or TF_CONFIG is missing or wrong.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.training.get_strategy("none").num_replicas_in_sync
      1
    """
    _arguments.choice("name", name, STRATEGIES)
    if name == "mirrored":
        return tf.distribute.MirroredStrategy()
    if name == "multi_worker":
        _check_tf_config(name, needed=("worker",), allowed=("chief", "worker"))
        if _keras.IS_KERAS_3:
            return _Keras3MultiWorkerStrategy()
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "parameter_server":
        if _keras.IS_KERAS_3:
            raise ValueError(
                "`name` must be 'none', 'mirrored' or 'multi_worker' with Keras 3, whose `fit` has no parameter "
                "servers (TensorFlow 2.15 with Keras 2 has), got 'parameter_server'."
            )
        _check_tf_config(name, needed=("chief", "ps", "worker"), allowed=("chief", "ps", "worker"))
        return _parameter_server_strategy()
    return tf.distribute.get_strategy()


def _parameter_server_strategy() -> tf.distribute.Strategy:
    # So that the chief hears of a worker or parameter server that failed; TensorFlow's guide asks for it.
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()
    return tf.distribute.ParameterServerStrategy(resolver)


def _check_tf_config(name: str, *, needed: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    """Raises a `ValueError` that says what is wrong; TensorFlow would hang, or train alone without a word."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        cluster = {job: list(addresses) for job, addresses in config["cluster"].items()}
        job, index = config["task"]["type"], int(config["task"]["index"])
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(
            f"The environment variable TF_CONFIG must say for {name!r} who is in the cluster and which of them this "
            f"process is, as in {_EXAMPLE}, got {text!r}."
        ) from None
    for problem, wrong in (
        (f"must have the jobs {', '.join(needed)}", not set(needed) <= set(cluster)),
        (f"must have no jobs but {', '.join(allowed)}", not set(cluster) <= set(allowed)),
        (f"must have a task of the cluster, not {job} {index}", not 0 <= index < len(cluster.get(job, []))),
    ):
        if wrong:
            raise ValueError(f"The environment variable TF_CONFIG {problem} for {name!r}, got {text!r}.")
