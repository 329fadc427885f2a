"""Trains with TF-Ranking's pipelines on one device, on two replicas, or as one of two workers that TF_CONFIG describes.

test_strategies.py starts it: `python pipeline_task.py STRATEGY TRAIN VALID FOLDER`. It writes FOLDER/INDEX.json, and
one model directory for each case.
"""

import functools
import json
import os
import sys

import tensorflow as tf

from tests.tf_ranking.pipelines import Scorer, model_builder
from tfr_smooth import data, tf_ranking
from tfr_smooth.tf_ranking import tfr

NUM_FEATURES = 3
SPEC = data.ElwcSchema().feature_spec(NUM_FEATURES)
LABEL = ("utility", tf.io.FixedLenFeature([1], tf.float32, -1.0))
TASKS = {"click": LABEL, "sale": LABEL}
# Without batch normalization, which has separate statistics on each replica.
SCORERS = {
    "dnn": lambda: tfr.keras.model.DNNScorer(
        hidden_layer_dims=[4], output_units=1, activation=tf.nn.tanh, use_batch_norm=False, dropout=0.0
    ),
    "gam": lambda: tfr.keras.model.GAMScorer(
        example_hidden_layer_dims=[4], activation=tf.nn.tanh, use_batch_norm=False, dropout=0.0
    ),
    "tasks": lambda: Scorer(TASKS),
}


def a_pipeline(case, strategy, files, folder, seed=7):
    several = case == "tasks"
    builder = (tf_ranking.MultiLabelDatasetBuilder if several else tf_ranking.SimpleDatasetBuilder)(
        {}, SPEC, "mask", TASKS if several else LABEL, tfr.keras.pipeline.DatasetHparams(*files, 4, 4), seed=seed
    )
    hparams = tf_ranking.PipelineHparams(
        model_dir=os.path.join(folder, case),
        num_epochs=2,
        learning_rate=0.1,
        optimizer="sgd",
        loss=dict.fromkeys(TASKS, "smoothi_ndcg") if several else "smoothi_ndcg",
        metrics=["ndcg@5"],
        export_best_model=True,
        best_exporter_metric="click/ndcg_5" if several else "ndcg_5",
        default_signature="predict",
        strategy=strategy,
    )
    pipeline = tf_ranking.MultiTaskPipeline if several else tf_ranking.SimplePipeline
    return pipeline(model_builder(builder, SCORERS[case](), SPEC), builder, hparams)


class ValidationMetrics(tf.keras.callbacks.Callback):
    """Records the validation metrics of each epoch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_epoch_end(self, epoch, logs=None):
        self.found += [value for name, value in sorted(logs.items()) if name.startswith("val_")]


def refused(strategy, files, folder):
    """The error for a builder without a seed, or None."""
    try:
        a_pipeline("dnn", strategy, files, folder, seed=None)
    except ValueError as error:
        return str(error)
    return None


def main(strategy, train, valid, folder):
    strategy = None if strategy == "none" else strategy
    if strategy == "MirroredStrategy":
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        tf.distribute.MirroredStrategy = functools.partial(tf.distribute.MirroredStrategy, ["CPU:0", "CPU:1"])
    # One for all pipelines: the collectives of several in one process interfere.
    tfr.keras.strategy_utils.get_strategy = functools.cache(tfr.keras.strategy_utils.get_strategy)
    found = {"refused": refused(strategy, [train, valid], folder)}
    for case in SCORERS:
        tf.keras.utils.set_random_seed(1)
        pipeline, validation = a_pipeline(case, strategy, [train, valid], folder), ValidationMetrics()
        callbacks = pipeline.build_callbacks
        pipeline.build_callbacks = lambda callbacks=callbacks, validation=validation: [*callbacks(), validation]
        model = pipeline.train_and_validate()
        found[case] = {
            "replicas": model.distribute_strategy.num_replicas_in_sync,
            "validation": validation.found,
            "weights": [weight.tolist() for weight in model.get_weights()],
        }
    index = json.loads(os.environ.get("TF_CONFIG") or '{"task": {"index": 0}}')["task"]["index"]
    with open(os.path.join(folder, f"{index}.json"), "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
    # Immediately: tf.data tunes the iterators of replicas, and closing one may wait minutes for its thread.
    os._exit(0)
