"""Trains a recommender under a strategy and writes its scores; test_replicas.py runs it in new processes.

Usage: replicas.py FOLDER STRATEGY, where "mirrored" has two logical CPUs and trains on one device, too.
"""

import os
import pathlib
import sys

import numpy as np
import tensorflow as tf
from scipy import sparse

from tfr_smooth import recommendation, training
from tfr_smooth.recommendation import stages, tables

# No batch divides evenly by two replicas, and the last batch of each epoch has one user.
NUM_USERS, BATCH_SIZE = 36, 7
CASES = {
    "table": {"loss": "approx_ndcg", "hard_negatives": 10},
    "sparse_steps": {"negatives": 5, "refit": True},
    "sequence": {"history_items": "sequence", "history_length": 5, "dropout": 0.0},
}


# Two processes sum gradients of whole variables and of rows of them in other ways.
IN_PROCESSES = ["sparse_steps", "sequence"]


def scores(strategy, folder, cases=tuple(CASES)):
    """Returns the scores of a recommender that is trained under this strategy, by case."""
    random = np.random.default_rng(0)
    matrix = (random.random([NUM_USERS, 40]) < 0.2).astype(int)
    matrix[:, :3] = 1
    times = np.tile(np.arange(40.0), [NUM_USERS, 1])[matrix > 0]
    interactions = recommendation.Interactions(sparse.csr_array(matrix), times=times)
    sizes = {"softmax_batch_size": BATCH_SIZE, "batch_size": BATCH_SIZE, "dim": 4}
    table = {"item": list(range(40)), "number": random.normal(size=40)}
    found = {}
    for case in cases:
        changed = CASES[case]
        stages._SPARSE_USERS = 1 if case == "sparse_steps" else 100_000
        options = {"loss": None, "softmax_epochs": 1, "epochs": 1, "refit": False, "verbose": False}
        recommender = recommendation.Recommender(**sizes, **{**options, **changed})
        recommender.fit(
            interactions,
            items=table if case == "table" else None,
            strategy=strategy,
            checkpoint_dir=folder / case,
        )
        found[case] = recommender.predict(np.arange(NUM_USERS))
    return found


def main(folder, name):
    tables._STEPS = 20
    if name == "mirrored":
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        np.savez(folder / "none.npz", **scores(training.get_strategy("none"), folder / "none"))
    strategy = training.get_strategy(name)
    assert strategy.num_replicas_in_sync == 2
    task = "" if name == "mirrored" else str(strategy.cluster_resolver.task_id)
    cases = CASES if name == "mirrored" else IN_PROCESSES
    np.savez(folder / f"{name}{task}.npz", **scores(strategy, folder / name, cases))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
