"""A recommender on two logical CPUs and on one, which test_replicas.py runs in a new process."""

import json
import os
import sys

import numpy as np
import tensorflow as tf

from tests.recommendation.groups import likes
from tfr_smooth import recommendation

# The last batch of 24 users has four; each replica has two of them.
OPTIONS = {"dim": 8, "warm_start_epochs": 4, "warm_start_batch_size": 10, "batch_size": 5, "epochs": 2, "refit": False}
CASES = {
    "whole catalog": {},
    "candidates": {"candidates": 4},
    "negatives": {"negatives": 4, "loss": None},
    "a replica without users": {"warm_start_batch_size": 23},
}


def main(path):
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.num_replicas_in_sync == 2
    train, held_out = recommendation.hold_out(recommendation.Interactions(likes()), items=1)
    found = {}
    for case, options in CASES.items():
        one, two = (
            recommendation.Recommender(**{**OPTIONS, **options}, strategy=each, verbose=False)
            .fit(train, validation=held_out)
            .scores(np.arange(24))
            for each in (None, strategy)
        )
        start = recommendation.CatalogFactors(num_users=24, num_items=24, dim=8, temperature=0.15)
        found[case] = {
            "difference": float(np.abs(one - two).max()),
            "training": float(np.abs(one - start.catalog_scores(np.arange(24))).max()),
        }
    with open(path, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
    # Immediately: tf.data tunes the iterators of replicas, and closing one may wait minutes for its thread.
    os._exit(0)
