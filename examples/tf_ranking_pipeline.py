"""Trains TF-Ranking's model in its pipeline with a loss of either library.

    python examples/tf_ranking_pipeline.py --model_dir=output/pipeline
    python examples/tf_ranking_pipeline.py --model_dir=output/pipeline --num_features=136 --train='train.tfrecord*' \
        --valid='valid.tfrecord*' --loss=smoothi_ndcg --loss_kwargs='{"alpha": 10, "topn": 10}' --best=ndcg_10

Reads TF-Ranking's records with features as one vector, as `data.write_records` writes them. Without
files, the script trains on synthetic data, which it writes to MODEL_DIR/data. Requires TF-Ranking (docs/tf_ranking.md
describes the installation) and, with TensorFlow 2.16 or later, TF_USE_LEGACY_KERAS=1 in the environment.
"""

from __future__ import annotations

import json
import os

import startup
import tensorflow as tf
from absl import app, flags

from tfr_smooth import data, losses, tf_ranking
from tfr_smooth.tf_ranking import tfr

_TRAIN = flags.DEFINE_string("train", None, "Training records: a path or a glob pattern. Default: synthetic data.")
_VALID = flags.DEFINE_string("valid", None, "Validation records: a path or a glob pattern.")
_NUM_FEATURES = flags.DEFINE_integer("num_features", 136, "Number of features of the records.", lower_bound=1)
_MODEL_DIR = flags.DEFINE_string("model_dir", "output/pipeline", "Folder for all output.")
_LOSS = flags.DEFINE_enum(
    "loss", "smoothi_ndcg", [*losses.NAMES, *tfr.keras.losses.RankingLossKey.all_keys()], "Loss to train with."
)
_LOSS_KWARGS = flags.DEFINE_string("loss_kwargs", "{}", 'Arguments of the loss: JSON such as {"alpha": 10, "topn": 5}.')
_METRICS = flags.DEFINE_list("metrics", "ndcg@5,ndcg@10,map", "Validation metrics; tfr/NAME for TF-Ranking's.")
_BEST = flags.DEFINE_string("best", "ndcg_10", "Metric whose highest value selects the best epoch, with _K for @K.")
_HIDDEN = flags.DEFINE_list("hidden", "64,32", "Widths of the hidden layers.")
_LEARNING_RATE = flags.DEFINE_float("learning_rate", 0.01, "Learning rate of the optimizer.")
_EPOCHS = flags.DEFINE_integer("epochs", 10, "Passes over the training set.", lower_bound=1)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Queries per batch.", lower_bound=1)
_STRATEGY = flags.DEFINE_enum(
    "strategy", None, ["MirroredStrategy", "MultiWorkerMirroredStrategy"], "Distribution strategy. Default: one device."
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the weights and of the synthetic data.")


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    tf.keras.utils.set_random_seed(_SEED.value)
    train, valid, num_features = records()
    # TF-Ranking parses padding, too, so the features need default values.
    specs = {"features": tf.io.FixedLenFeature([num_features], tf.float32, [0.0] * num_features)}
    hparams = tf_ranking.PipelineHparams(
        model_dir=_MODEL_DIR.value,
        num_epochs=_EPOCHS.value,
        steps_per_epoch=batches(train),
        validation_steps=batches(valid),
        learning_rate=_LEARNING_RATE.value,
        loss=_LOSS.value,
        loss_kwargs=json.loads(_LOSS_KWARGS.value),
        metrics=_METRICS.value,
        export_best_model=True,
        best_exporter_metric=_BEST.value,
        best_exporter_metric_higher_better=True,
        strategy=_STRATEGY.value,
    )
    model_builder = tfr.keras.model.ModelBuilder(
        input_creator=tfr.keras.model.FeatureSpecInputCreator({}, specs),
        preprocessor=tfr.keras.model.PreprocessorWithSpec(),
        scorer=tfr.keras.model.DNNScorer(
            hidden_layer_dims=[int(width) for width in _HIDDEN.value], output_units=1, dropout=0.0
        ),
        mask_feature_name="mask",
    )
    # The label of padding is -1.
    label = ("label", tf.io.FixedLenFeature([1], tf.float32, -1.0))
    files = tfr.keras.pipeline.DatasetHparams(train, valid, _BATCH_SIZE.value, _BATCH_SIZE.value)
    dataset_builder = tfr.keras.pipeline.SimpleDatasetBuilder({}, specs, "mask", label, files)
    tf_ranking.SimplePipeline(model_builder, dataset_builder, hparams).train_and_validate(verbose=2)
    print(f"Exported to {os.path.join(_MODEL_DIR.value, 'export')}")


def records() -> tuple[str, str, int]:
    """Returns the patterns of the records, and their number of features."""
    if (_TRAIN.value is None) != (_VALID.value is None):
        raise app.UsageError("--train and --valid must be given together.")
    if _TRAIN.value is not None:
        return _TRAIN.value, _VALID.value, _NUM_FEATURES.value
    folder = os.path.join(_MODEL_DIR.value, "data")
    print(f"No files given: writing synthetic data to {folder}")
    text = data.write_synthetic_letor(folder, seed=_SEED.value)
    lists = {part: data.read_letor(text[part], cache_dir=folder) for part in ("train", "valid")}
    for part, each in lists.items():
        data.write_records(each, os.path.join(folder, f"{part}.tfrecord"))
    return *(os.path.join(folder, f"{part}.tfrecord*") for part in lists), lists["train"].num_features


def batches(pattern: str) -> int:
    """Returns the number of batches in one pass over the records."""
    lists = tf.data.TFRecordDataset(tf.io.gfile.glob(pattern)).reduce(0, lambda count, _: count + 1)
    return -(-int(lists) // _BATCH_SIZE.value)


if __name__ == "__main__":
    startup.run(main)
