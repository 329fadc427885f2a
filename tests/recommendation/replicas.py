"""Trains a recommender under a strategy and writes its scores; test_replicas.py runs it in new processes.

Usage: replicas.py FOLDER STRATEGY, where "mirrored" has two logical CPUs.
"""

import os
import pathlib
import sys

import numpy as np
import tensorflow as tf

from tfr_smooth import recommendation, training

# The last batch of each epoch has one user, so a replica has none.
NUM_USERS, BATCH_SIZE = 33, 8


def main(folder, name):
    if name == "mirrored":
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = training.get_strategy(name)
    assert strategy.num_replicas_in_sync == (1 if name == "none" else 2)
    random = np.random.default_rng(0)
    matrix = (random.random([NUM_USERS, 40]) < 0.2).astype(int)
    matrix[:, :3] = 1
    interactions = recommendation.Interactions(matrix)
    sizes = {"warm_start_batch_size": BATCH_SIZE, "batch_size": BATCH_SIZE, "dim": 4}
    cases = {
        "catalog": {},
        "negatives": {"negatives": 5},
        "candidates": {"candidates": 10},
        "graph": {"propagation_layers": 2, "negatives": 5},
    }
    found = {}
    for case, options in cases.items():
        recommender = recommendation.Recommender(**sizes, warm_start_epochs=2, epochs=1, verbose=False, **options)
        recommender.fit(interactions, strategy=strategy, checkpoint_dir=folder / name / case)
        found[case] = recommender.scores(np.arange(NUM_USERS))
    task = "" if name != "multi_worker" else str(strategy.cluster_resolver.task_id)
    np.savez(folder / f"{name}{task}.npz", **found)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
