"""Trains TF-Ranking's model in its pipeline with a loss of either library, on LETOR files or TF-Ranking's records.

    python examples/tf_ranking_pipeline.py --model_dir=output/pipeline
    python examples/tf_ranking_pipeline.py --model_dir=output/pipeline --train=Fold1/train.txt --valid=Fold1/vali.txt \
        --loss=smoothi_ndcg --loss_kwargs='{"alpha": 10, "topn": 10}' --best=ndcg_10
    python examples/tf_ranking_pipeline.py --model_dir=output/pipeline --format=elwc --num_features=136 \
        --train='train.tfrecord*' --valid='valid.tfrecord*'

Without files, the script trains on synthetic data, which it writes to MODEL_DIR/data. When restarted, training resumes
after the last finished epoch. Requires TF-Ranking (docs/tf_ranking.md describes the installation) and, with TensorFlow
2.16 or later, TF_USE_LEGACY_KERAS=1 in the environment.
"""

from __future__ import annotations

import json
import os

import startup
import tensorflow as tf
from absl import app, flags

from tfr_smooth import data, losses, tf_ranking
from tfr_smooth.tf_ranking import tfr

_TRAIN = flags.DEFINE_string("train", None, "Training files: a path or a glob pattern. Default: synthetic data.")
_VALID = flags.DEFINE_string("valid", None, "Validation files: a path or a glob pattern.")
_FORMAT = flags.DEFINE_enum("format", "letor", ["letor", "elwc"], "LETOR text, or records written by data.convert.")
_NUM_FEATURES = flags.DEFINE_integer("num_features", None, "Number of features; for --format=elwc.", lower_bound=1)
_MODEL_DIR = flags.DEFINE_string("model_dir", "output/pipeline", "Folder for all output.")
_LOSS = flags.DEFINE_enum(
    "loss", "smoothi_ndcg", [*losses.NAMES, *tfr.keras.losses.RankingLossKey.all_keys()], "Loss to train with."
)
_LOSS_KWARGS = flags.DEFINE_string("loss_kwargs", "{}", 'Arguments of the loss: JSON such as {"alpha": 10, "topn": 5}.')
_METRICS = flags.DEFINE_list("metrics", "ndcg@5,ndcg@10,map", "Validation metrics; tfr/NAME for TF-Ranking's.")
_BEST = flags.DEFINE_string("best", "ndcg_10", "Metric that selects the best epoch: loss, or a metric with _K for @K.")
_SCORER = flags.DEFINE_enum("scorer", "dnn", ["dnn", "gam"], "TF-Ranking's scorer.")
_HIDDEN = flags.DEFINE_list("hidden", "64,32", "Widths of the hidden layers.")
_LEARNING_RATE = flags.DEFINE_float("learning_rate", 0.01, "Learning rate of the optimizer.")
_OPTIMIZER = flags.DEFINE_string("optimizer", "adam", "Keras optimizer.")
_EPOCHS = flags.DEFINE_integer("epochs", 10, "Passes over the training set.", lower_bound=1)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Queries per batch.", lower_bound=1)
_SIGNATURE = flags.DEFINE_enum("signature", "predict", ["predict", "regress", "raw"], "Default serving signature.")
_STRATEGY = flags.DEFINE_enum(
    "strategy", None, ["MirroredStrategy", "MultiWorkerMirroredStrategy"], "Distribution strategy. Default: one device."
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the weights and of the order of the lists.")


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    tf.keras.utils.set_random_seed(_SEED.value)
    builder, example_feature_spec = dataset_builder()
    hidden = [int(width) for width in _HIDDEN.value]
    if _SCORER.value == "dnn":
        scorer = tfr.keras.model.DNNScorer(hidden_layer_dims=hidden, output_units=1, dropout=0.0)
    else:
        scorer = tfr.keras.model.GAMScorer(example_hidden_layer_dims=hidden, dropout=0.0)
    model_builder = tfr.keras.model.ModelBuilder(
        input_creator=tfr.keras.model.FeatureSpecInputCreator({}, example_feature_spec),
        preprocessor=tfr.keras.model.PreprocessorWithSpec(),
        scorer=scorer,
        mask_feature_name=builder.mask_feature_name,
    )
    hparams = tf_ranking.PipelineHparams(
        model_dir=_MODEL_DIR.value,
        num_epochs=_EPOCHS.value,
        learning_rate=_LEARNING_RATE.value,
        optimizer=_OPTIMIZER.value,
        loss=_LOSS.value,
        loss_kwargs=json.loads(_LOSS_KWARGS.value),
        metrics=_METRICS.value,
        export_best_model=True,
        best_exporter_metric=_BEST.value,
        default_signature=_SIGNATURE.value,
        strategy=_STRATEGY.value,
    )
    tf_ranking.SimplePipeline(model_builder, builder, hparams).train_and_validate(verbose=2)
    print(f"Exported to {os.path.join(_MODEL_DIR.value, 'export')}")


def dataset_builder() -> tuple[tfr.keras.pipeline.AbstractDatasetBuilder, dict[str, tf.io.FixedLenFeature]]:
    """Returns the dataset builder and the specs of the features of a document."""
    train, valid = _TRAIN.value, _VALID.value
    if (train is None) != (valid is None):
        raise app.UsageError("--train and --valid must be given together.")
    if train is None:
        if _FORMAT.value != "letor":
            raise app.UsageError("--format=elwc requires --train and --valid.")
        folder = os.path.join(_MODEL_DIR.value, "data")
        print(f"No files given: writing synthetic data to {folder}")
        paths = data.write_synthetic_letor(folder, seed=_SEED.value)
        train, valid = str(paths["train"]), str(paths["valid"])
    files = tfr.keras.pipeline.DatasetHparams(
        train_input_pattern=train,
        valid_input_pattern=valid,
        train_batch_size=_BATCH_SIZE.value,
        valid_batch_size=_BATCH_SIZE.value,
    )
    # A GAM takes one input per feature.
    names = "custom_features_{}" if _SCORER.value == "gam" else "features"
    if _FORMAT.value == "letor":
        builder = tf_ranking.LetorDatasetBuilder(files, features=names, seed=_SEED.value)
        return builder, builder.example_feature_spec
    if _NUM_FEATURES.value is None:
        raise app.UsageError("--format=elwc requires --num_features.")
    spec = data.ElwcSchema(features=names).feature_spec(_NUM_FEATURES.value)
    label = ("utility", tf.io.FixedLenFeature([1], tf.float32, -1.0))
    return tf_ranking.SimpleDatasetBuilder({}, spec, "mask", label, files, seed=_SEED.value), spec


if __name__ == "__main__":
    startup.run(main, resume="The same command resumes after the last finished epoch.")
