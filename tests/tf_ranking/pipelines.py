"""Model builders, hyperparameters and observed pipelines for the tests of `tfr_smooth.tf_ranking`."""

import numpy as np
import tensorflow as tf

from tests import helpers
from tfr_smooth import data

tfr = helpers.tf_ranking(module=True)
from tfr_smooth import tf_ranking  # noqa: E402

SPEC = data.ElwcSchema(features="custom_features_{}").feature_spec(3)


def scalar(default):
    return tf.io.FixedLenFeature([1], tf.float32, default)


LABEL = ("utility", scalar(0.0))
# Not tensors: they would start TensorFlow before a program chooses its devices.
LABELS = np.float32([[2.0, 0.0, 1.0, -1.0], [0.0, 1.0, -1.0, -1.0], [0.0, 0.0, 0.0, 0.0]])
SCORES = np.float32([[0.3, 1.2, -0.4, 9.0], [0.1, -0.2, 9.0, 9.0], [0.5, 0.1, 0.2, 0.3]])


class Scorer(tfr.keras.model.UnivariateScorer):
    """A linear scorer, with an output for each task."""

    def __init__(self, tasks=None):
        self._tasks = tasks

    def _score_flattened(self, context_features, example_features):
        inputs = tf.concat([example_features[name] for name in sorted(example_features)], 1)

        def dense():
            return tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)(inputs)

        return {task: dense() for task in self._tasks} if self._tasks else dense()


def model_builder(builder, scorer=None, spec=SPEC):
    return tfr.keras.model.ModelBuilder(
        tfr.keras.model.FeatureSpecInputCreator({}, getattr(builder, "example_feature_spec", spec)),
        tfr.keras.model.PreprocessorWithSpec(),
        scorer or Scorer(),
        mask_feature_name="mask",
    )


def files(paths, **options):
    return tfr.keras.pipeline.DatasetHparams(paths["train"], paths["valid"], 4, 4, **options)


def simple(paths, label=LABEL, mask="mask", **options):
    return tf_ranking.SimpleDatasetBuilder({}, SPEC, mask, label, files(paths), **options)


def letor_builder(paths, features="custom_features_{}", seed=None, **options):
    return tf_ranking.LetorDatasetBuilder(files(paths, **options), features=features, seed=seed)


def hparams(folder, **arguments):
    # The loss and metric whose graphs are built fastest.
    defaults = {"num_epochs": 2, "learning_rate": 0.1, "loss": "list_net", "metrics": ["ndcg@5"]}
    return tf_ranking.PipelineHparams(**{"model_dir": str(folder), **defaults, **arguments})


class Stop(Exception):
    """Simulates an interruption."""


class Watch(tf.keras.callbacks.Callback):
    """Records the logs, and sets the weights at the start of given epochs."""

    def __init__(self, weights=None):
        super().__init__()
        self.logs, self._weights = {}, weights or {}

    def on_epoch_begin(self, epoch, logs=None):
        if epoch in self._weights:
            self.model.set_weights(self._weights[epoch])

    def on_epoch_end(self, epoch, logs=None):
        self.logs[epoch] = dict(logs)


def watched(pipeline, watch, stop=None):
    """A pipeline that is watched, raises `Stop` before the epoch `stop`, and writes no exports."""

    def interrupt(epoch, logs):
        if epoch == stop:
            raise Stop

    class Watched(pipeline):
        def build_callbacks(self):
            return [watch, *super().build_callbacks(), tf.keras.callbacks.LambdaCallback(on_epoch_begin=interrupt)]

        def export_saved_model(self, model, export_to, checkpoint=None):
            return model.load_weights(checkpoint).expect_partial() if checkpoint else None

    return Watched


def train(builder, chosen, model=None, pipeline=tf_ranking.SimplePipeline, weights=None, **options):
    """Returns the model and the logs of the epochs; the weights are set at the start of the given epochs."""
    watch = Watch(weights)
    trained = watched(pipeline, watch, **options)(model or model_builder(builder), builder, chosen).train_and_validate()
    return trained, watch.logs


GOOD, BAD = np.array([[1.0], [0.0], [0.0]], np.float32), np.array([[-1.0], [0.0], [0.0]], np.float32)
BEST = {"export_best_model": True, "learning_rate": 1e-9, "num_epochs": 3}
