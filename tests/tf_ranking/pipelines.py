"""Lists, model builders, hyperparameters and observed training for the tests of `tfr_smooth.tf_ranking`."""

import numpy as np
import tensorflow as tf

from tests import helpers

tfr = helpers.tf_ranking(module=True)
from tfr_smooth import tf_ranking  # noqa: E402

SPEC = {name: tf.io.FixedLenFeature([1], tf.float32, 0.0) for name in "abc"}
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


def model_builder(scorer=None):
    return tfr.keras.model.ModelBuilder(
        tfr.keras.model.FeatureSpecInputCreator({}, SPEC),
        tfr.keras.model.PreprocessorWithSpec(),
        scorer or Scorer(),
        mask_feature_name="mask",
    )


def lists(count, seed):
    """Features and labels of lists of 1 to 6 documents, some without a relevant one. Labels increase with feature a."""
    random = np.random.RandomState(seed)
    features = random.normal(size=(count, 6, 3)).astype(np.float32)
    mask = np.arange(6) < random.randint(1, 7, size=(count, 1))
    labels = np.where(mask, np.floor(np.clip(features[..., 0] + 1.0, 0.0, 3.0)), -1.0).astype(np.float32)
    return {**{name: features[..., i : i + 1] for i, name in enumerate(SPEC)}, "mask": mask}, labels


def datasets(tasks=None, weight=None):
    """A dataset builder with 22 lists to train, repeated, and 13 for validation, in batches of 4."""

    def batches(part):
        inputs, labels = part
        found = (inputs, labels if tasks is None else {task: labels for task in tasks})
        weights = () if weight is None else (np.full_like(labels, weight),)
        dataset = tf.data.Dataset.from_tensor_slices((*found, *weights)).batch(4)
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        return dataset.with_options(options)

    return tfr.keras.pipeline.NullDatasetBuilder(batches(lists(22, seed=1)).repeat(), batches(lists(13, seed=2)))


def hparams(folder, **arguments):
    # The loss and metric whose graphs are built fastest.
    defaults = {"num_epochs": 2, "learning_rate": 0.1, "loss": "list_net", "metrics": ["ndcg@5"]}
    steps = {"steps_per_epoch": 6, "validation_steps": 4}
    return tf_ranking.PipelineHparams(**{"model_dir": str(folder), **steps, **defaults, **arguments})


class Watch(tf.keras.callbacks.Callback):
    """Records the logs, and sets the weights at the start of given epochs."""

    def __init__(self, weights=None):
        super().__init__()
        self.logs, self._weights = [], weights or {}

    def on_epoch_begin(self, epoch, logs=None):
        if epoch in self._weights:
            self.model.set_weights(self._weights[epoch])

    def on_epoch_end(self, epoch, logs=None):
        self.logs.append(dict(logs))


def train(chosen, builder=None, scorer=None, pipeline=tf_ranking.SimplePipeline, weights=None):
    """Returns the model and the logs of the epochs; the weights are set at the start of the given epochs."""
    watch = Watch(weights)

    class Watched(pipeline):
        def build_callbacks(self):
            return [watch, *super().build_callbacks()]

    Watched(model_builder(scorer), builder or datasets(), chosen).train_and_validate()
    return watch.model, watch.logs
