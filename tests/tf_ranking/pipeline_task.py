"""Trains with TF-Ranking's pipelines on one device, on two replicas, or as one of two workers that TF_CONFIG describes.

test_strategies.py starts it: `python pipeline_task.py STRATEGY FOLDER`. It writes FOLDER/INDEX.json.
"""

import functools
import json
import os
import sys

import tensorflow as tf

from tests.tf_ranking.pipelines import Scorer, datasets, hparams, train
from tfr_smooth import tf_ranking
from tfr_smooth.tf_ranking import tfr

TASKS = ("click", "sale")


def main(strategy, folder):
    strategy = None if strategy == "none" else strategy
    if strategy == "MirroredStrategy":
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        tf.distribute.MirroredStrategy = functools.partial(tf.distribute.MirroredStrategy, ["CPU:0", "CPU:1"])
    # One for all pipelines, as the collectives of several in one process interfere, and before the datasets.
    created = tfr.keras.strategy_utils.get_strategy(strategy)
    tfr.keras.strategy_utils.get_strategy = lambda *_: created
    # Without batch normalization, which has separate statistics on each replica.
    network = {"activation": tf.nn.tanh, "use_batch_norm": False, "dropout": 0.0}
    dnn = tfr.keras.model.DNNScorer(hidden_layer_dims=[4], output_units=1, **network)
    found = {}
    cases = {"dnn": (None, dnn), "tasks": (TASKS, Scorer(TASKS))}
    # Workers differ from the replicas of one process by the strategy only.
    if strategy == "MultiWorkerMirroredStrategy":
        del cases["tasks"]
    for case, (tasks, scorer) in cases.items():
        tf.keras.utils.set_random_seed(1)
        loss = dict.fromkeys(tasks, "smoothi_ndcg") if tasks else "smoothi_ndcg"
        chosen = hparams(os.path.join(folder, case), optimizer="sgd", loss=loss, strategy=strategy)
        pipeline = tf_ranking.MultiTaskPipeline if tasks else tf_ranking.SimplePipeline
        model, logs = train(chosen, datasets(tasks), scorer, pipeline)
        found[case] = {
            "replicas": model.distribute_strategy.num_replicas_in_sync,
            "metrics": [logs[-1][name] for name in sorted(logs[-1]) if "val_" in name and "loss" not in name],
            "weights": [weight.tolist() for weight in model.get_weights()],
        }
    index = json.loads(os.environ.get("TF_CONFIG") or '{"task": {"index": 0}}')["task"]["index"]
    with open(os.path.join(folder, f"{index}.json"), "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
    # Immediately: tf.data tunes the iterators of replicas, and closing one may wait minutes for its thread.
    os._exit(0)
