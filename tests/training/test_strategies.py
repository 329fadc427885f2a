"""Strategies by name, the required TF_CONFIG, and the chief."""

import json
import types

import pytest
import tensorflow as tf

from tfr_smooth import training


def test_strategies_are_found_by_name():
    assert training.get_strategy("none").num_replicas_in_sync == 1
    mirrored = training.get_strategy("mirrored")
    assert isinstance(mirrored, tf.distribute.MirroredStrategy) and training.get_strategy("mirrored") is mirrored
    with pytest.raises(ValueError, match="`name` must be one of 'none', 'mirrored', 'multi_worker', got 'tpu'"):
        training.get_strategy("tpu")


CLUSTER = {"worker": ["localhost:1", "localhost:2"]}


def test_a_wrong_tf_config_is_explained(monkeypatch):
    for config in (
        "",
        {"cluster": CLUSTER},
        {"cluster": CLUSTER, "task": {"type": "worker", "index": 2}},
        {"cluster": {**CLUSTER, "ps": ["localhost:3"]}, "task": {"type": "ps", "index": 0}},
    ):
        monkeypatch.setenv("TF_CONFIG", config if isinstance(config, str) else json.dumps(config))
        message = "TF_CONFIG must describe a cluster of workers, .* as in {.cluster.*, got "
        with pytest.raises(ValueError, match=message):
            training.get_strategy("multi_worker")


def test_there_is_one_chief():
    for jobs, job, index, expected in [
        ({"worker": 2}, "worker", 0, True),
        ({"worker": 2}, "worker", 1, False),
        ({"worker": 2, "chief": 1}, "chief", 0, True),
        ({"worker": 2, "chief": 1}, "worker", 0, False),
    ]:
        spec = tf.train.ClusterSpec({name: [f"{name}{i}:1" for i in range(count)] for name, count in jobs.items()})
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type=job, task_id=index)
        assert training.is_chief(types.SimpleNamespace(cluster_resolver=resolver)) is expected
    assert training.is_chief()
    assert training.is_chief(training.get_strategy("none")) and training.is_chief(training.get_strategy("mirrored"))
