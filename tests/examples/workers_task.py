"""What test_train_on_workers.py trains on two workers of an engine."""

import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[2] / "examples"))

import train_on_workers

OPTIONS = {"members": 1, "epochs": 3, "dropout": 0.0, "trees": False, "verbose": False}
NAMES = {"query": "query", "label": "label"}
RUN = {"Ray": train_on_workers.run_on_ray, "Spark": train_on_workers.run_on_spark}


def index():
    return json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def killed(config):
    """Trains a ranker, and kills worker 1 in the middle of the second epoch, once."""
    os.environ.pop("TF_USE_LEGACY_KERAS", None)
    import tfr_smooth
    from tests.training.replicas import InTheMiddle

    marker = pathlib.Path(config["output_dir"], "killed")

    def kill():
        if index() == 1 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    fit = tfr_smooth.Ranker.fit
    tfr_smooth.Ranker.fit = lambda self, *given, **named: fit(self, *given, **named, callbacks=[InTheMiddle(1, kill)])
    train_on_workers.train(config)


def shards(config):
    """Trains a Keras model of which each worker reads its own queries."""
    os.environ.pop("TF_USE_LEGACY_KERAS", None)
    import numpy as np

    from tfr_smooth import training

    strategy = training.get_strategy("multi_worker")
    lists, model = numbers_of(config["train"]), model_of(strategy)

    def own(context):
        shard = lists.shard(context.input_pipeline_id, context.num_input_pipelines)
        return shard.batches(context.get_per_replica_batch_size(8), num_epochs=None, list_size=8)

    model.fit(strategy.distribute_datasets_from_function(own), epochs=2, steps_per_epoch=8, verbose=0)
    if training.is_chief(strategy):
        np.savez(os.path.join(config["output_dir"], "weights"), *model.get_weights())


def numbers_of(paths):
    from tfr_smooth import data

    return data.read_files(paths, **NAMES, features=["age", "score"], stack=True)


def model_of(strategy):
    import tensorflow as tf

    from tfr_smooth import losses, models

    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = models.FeedForwardScorer(hidden=[8])
        model.compile(optimizer=tf.keras.optimizers.Adam(0.01, epsilon=1e-3), loss=losses.SmoothINDCGLoss())
        model.build((None, None, 2))
    return model
