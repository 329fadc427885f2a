"""The losses and metrics of both libraries by name, and TF-Ranking's pipelines with them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth import _arguments, _lookup, keras_ranking, metrics

# Prefix of TF-Ranking's metrics: both libraries have an "ndcg".
TFR_PREFIX = "tfr/"


def get(
    loss: str, reduction: str = "auto", lambda_weight: Any = None, name: str | None = None, **kwargs: Any
) -> tf.keras.losses.Loss:
    """Creates a loss of either library, as a drop-in replacement for `tfr.keras.losses.get`.

    Args:
      loss: A name that `tfr_smooth.losses.get` takes ("smoothi_ndcg") or a `tfr.keras.losses.RankingLossKey`
        ("approx_ndcg_loss"), which is TF-Ranking's loss.
      reduction: A `tf.keras.losses.Reduction`: "auto" or "sum_over_batch_size", "sum", or "none".
      lambda_weight: A lambda weight of TF-Ranking, for those of its losses that take one; None for no weight.
      name: Name of the loss; None for its default name.
      **kwargs: Further arguments of the loss, such as `alpha`, `topn` or `ragged`.

    Returns:
      The loss.

    Raises:
      ValueError: If no loss has this name, or an argument is out of its range.
      TypeError: If the loss has no such argument.

    Example:
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import tf_ranking
      >>> tf_ranking.get("smoothi_ndcg", alpha=10.0, topn=5).name
      'smoothi_ndcg_loss'
      >>> weight = tfr.keras.losses.NDCGLambdaWeight(topn=5)
      >>> type(tf_ranking.get("pairwise_logistic_loss", lambda_weight=weight)).__module__
      'tensorflow_ranking.python.keras.losses'
    """
    if loss in tfr.keras.losses.RankingLossKey.all_keys():
        return tfr.keras.losses.get(loss, reduction, lambda_weight, name, **kwargs)
    return keras_ranking.get_loss(loss, reduction, lambda_weight, name, **kwargs)


def get_metric(metric: str, name: str | None = None, **kwargs: Any) -> tf.keras.metrics.Metric:
    """Creates a metric of either library.

    Args:
      metric: A name that `tfr_smooth.metrics.get` takes ("ndcg"), or "tfr/" followed by a
        `tfr.keras.metrics.RankingMetricKey` ("tfr/mrr"). The suffix "@K" means `topn=K`: "ndcg@10".
      name: Name of the metric; None for its name without "tfr/", followed by the cutoff, such as "ndcg_10" or "mrr".
      **kwargs: Further arguments of the metric, such as `topn`, `gain` or `ragged`.

    Returns:
      The metric.

    Raises:
      ValueError: If no metric has this name, or an argument is invalid.
      TypeError: If the metric has no such argument.

    Example:
      >>> from tfr_smooth import tf_ranking
      >>> [tf_ranking.get_metric(metric).name for metric in ("ndcg@10", "map", "tfr/mrr@5")]
      ['ndcg_10', 'map', 'mrr_5']
    """
    if not metric.startswith(TFR_PREFIX):
        return metrics.get(metric, name=name, **kwargs)
    key, options = _lookup.with_cutoff("metric", metric, kwargs)
    key = key.removeprefix(TFR_PREFIX)
    cutoff = f"_{options['topn']}" if options.get("topn") else ""
    return tfr.keras.metrics.get(key, name=name or key + cutoff, **options)


@dataclasses.dataclass(kw_only=True)
class PipelineHparams(tfr.keras.pipeline.PipelineHparams):
    """TF-Ranking's `PipelineHparams` with arguments of the loss, and with metrics.

    The other attributes are TF-Ranking's. `loss` may be a loss of either library, see `tf_ranking.get`.

    Attributes:
      loss_kwargs: Further arguments of the loss, such as {"alpha": 10.0, "topn": 5}; for `MultiTaskPipeline`, a dict of
        task to such a dict. None for no arguments.
      metrics: The metrics (of each task): names as `tf_ranking.get_metric` takes them ("ndcg@10", "tfr/mrr"), or dicts
        with "metric" and other arguments ({"metric": "ndcg", "gain": "linear"}).
      ragged: Whether labels and scores are `tf.RaggedTensor`.

    Raises:
      ValueError: If `loss_kwargs` is not a dict, or not one of dicts by task if `loss` is a dict.

    Example:
      >>> from tfr_smooth import tf_ranking
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir="/tmp/model", num_epochs=2, steps_per_epoch=100, validation_steps=10, learning_rate=0.01,
      ...     loss="smoothi_ndcg", loss_kwargs={"alpha": 10.0},
      ... )
      >>> hparams.optimizer
      'adam'
    """

    loss_kwargs: dict[str, Any] | None = None
    metrics: Sequence[str | dict[str, Any]] = ("ndcg@1", "ndcg@5", "ndcg@10", "ndcg")
    ragged: bool = False

    def __post_init__(self) -> None:
        """Checks the new attributes."""
        _arguments.boolean("ragged", self.ragged)
        if not isinstance(self.loss_kwargs, (dict, type(None))):
            raise ValueError(f"`loss_kwargs` must be a dict or None, got {self.loss_kwargs!r}.")
        if isinstance(self.loss, dict):
            for task, arguments in (self.loss_kwargs or {}).items():
                if task not in self.loss or not isinstance(arguments, dict):
                    expected = f"a dict of the tasks {sorted(self.loss)} to dicts"
                    raise ValueError(f"`loss_kwargs` must be {expected}, got {task!r}: {arguments!r}.")


class _Pipeline(tfr.keras.pipeline.ModelFitPipeline):
    """Losses and metrics from `PipelineHparams`; TF-Ranking's own hyperparameters have the defaults."""

    def _option(self, name: str) -> Any:
        return getattr(self._hparams, name, getattr(PipelineHparams, name))

    def _loss(self, loss: str, arguments: dict[str, Any] | None) -> tf.keras.losses.Loss:
        ragged = {"ragged": True} if self._option("ragged") else {}
        return get(loss, **{"reduction": self._hparams.loss_reduction, **ragged, **(arguments or {})})

    def _metrics(self, prefix: str) -> list[tf.keras.metrics.Metric]:
        """Returns the metrics of one output."""
        built = []
        for metric in self._option("metrics"):
            arguments = {"metric": metric} if isinstance(metric, str) else dict(metric)
            if self._option("ragged"):
                arguments["ragged"] = True
            name = arguments.get("name") or get_metric(**arguments).name
            built.append(get_metric(**{**arguments, "name": prefix + name}))
        for name, count in collections.Counter(metric.name for metric in built).items():
            if count > 1:
                raise ValueError(f"`metrics` must have unique names, got {name.removeprefix(prefix)!r} twice.")
        return built

    def _metrics_by_output(self, prefix: str) -> Any:
        tasks = self._hparams.loss
        return {task: self._metrics(prefix) for task in tasks} if isinstance(tasks, dict) else self._metrics(prefix)

    def build_metrics(self) -> Any:
        """Returns the metrics of the hyperparameters.

        Returns:
          A list of metrics, or one for each task in a dict.

        Raises:
          ValueError: If a metric is unknown, an argument is invalid, or two metrics have the same name.
        """
        return self._metrics_by_output("metric/")

    def build_weighted_metrics(self) -> Any:
        """Returns the metrics of the hyperparameters, for use with sample weights.

        Returns:
          A list of metrics, or one for each task in a dict.

        Raises:
          ValueError: As in `build_metrics`.
        """
        return self._metrics_by_output("weighted_metric/")


class SimplePipeline(_Pipeline, tfr.keras.pipeline.SimplePipeline):
    """TF-Ranking's `SimplePipeline` for the losses and metrics of both libraries.

    A drop-in replacement: model builders, dataset builders, hyperparameters and subclasses are TF-Ranking's. Only
    `build_loss`, `build_metrics` and `build_weighted_metrics` differ.

    The constructor takes a `tfr.keras.model.AbstractModelBuilder`, a `tfr.keras.pipeline.AbstractDatasetBuilder`, and
    `PipelineHparams` or TF-Ranking's own hyperparameters.

    Example:
      >>> import tempfile
      >>> import tensorflow as tf
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import data, tf_ranking
      >>> paths = data.write_synthetic_letor(tempfile.mkdtemp(), num_queries=(8, 4, 2), num_features=32)
      >>> files = [data.read_letor(str(paths[part]), num_features=32).batches(4) for part in ("train", "valid")]
      >>> dataset_builder = tfr.keras.pipeline.NullDatasetBuilder(*files)
      >>> model_builder = tfr.keras.model.ModelBuilder(
      ...     tfr.keras.model.FeatureSpecInputCreator({}, {"features": tf.io.FixedLenFeature([32], tf.float32)}),
      ...     tfr.keras.model.PreprocessorWithSpec(),
      ...     tfr.keras.model.DNNScorer(hidden_layer_dims=[4], output_units=1),
      ...     mask_feature_name="mask",
      ... )
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir=tempfile.mkdtemp(), num_epochs=1, steps_per_epoch=2, validation_steps=1, learning_rate=0.01,
      ...     loss="smoothi_ndcg", loss_kwargs={"alpha": 10.0}, metrics=["ndcg@5", "tfr/mrr"],
      ... )
      >>> tf_ranking.SimplePipeline(model_builder, dataset_builder, hparams).train_and_validate()
    """

    def build_loss(self) -> tf.keras.losses.Loss:
        """Returns the loss of the hyperparameters.

        Returns:
          The loss.

        Raises:
          ValueError: If `loss` is not the name of a loss, or an argument in `loss_kwargs` is out of its range.
          TypeError: If the loss has no such argument.
        """
        if not isinstance(self._hparams.loss, str):
            raise ValueError(f"`loss` must be the name of a loss in a SimplePipeline, got {self._hparams.loss!r}.")
        return self._loss(self._hparams.loss, self._option("loss_kwargs"))


class MultiTaskPipeline(_Pipeline, tfr.keras.pipeline.MultiTaskPipeline):
    """TF-Ranking's `MultiTaskPipeline` for the losses and metrics of both libraries.

    A drop-in replacement, as `SimplePipeline` is. `hparams.loss` and `hparams.loss_kwargs` are dicts by task.

    The constructor takes a `tfr.keras.model.AbstractModelBuilder` of a model with one output per task, a
    `tfr.keras.pipeline.AbstractDatasetBuilder`, such as TF-Ranking's `MultiLabelDatasetBuilder`, and `PipelineHparams`
    or TF-Ranking's own hyperparameters.

    Example:
      >>> import tempfile
      >>> import tensorflow as tf
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import tf_ranking
      >>> scalar = tf.io.FixedLenFeature([1], tf.float32, -1.0)
      >>> files = tfr.keras.pipeline.DatasetHparams("train*", "valid*", train_batch_size=32, valid_batch_size=32)
      >>> labels = {"click": ("click", scalar), "sale": ("sale", scalar)}
      >>> builder = tfr.keras.pipeline.MultiLabelDatasetBuilder({}, {"price": scalar}, "mask", labels, files)
      >>> model_builder = tfr.keras.model.ModelBuilder(
      ...     tfr.keras.model.FeatureSpecInputCreator({}, {"price": scalar}),
      ...     tfr.keras.model.PreprocessorWithSpec(),
      ...     tfr.keras.model.DNNScorer(hidden_layer_dims=[4], output_units=2),
      ...     mask_feature_name="mask",
      ... )
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir=tempfile.mkdtemp(), num_epochs=1, steps_per_epoch=10, validation_steps=10, learning_rate=0.01,
      ...     loss={"click": "smoothi_ndcg", "sale": "approx_ndcg_loss"}, loss_kwargs={"click": {"alpha": 10.0}},
      ... )
      >>> pipeline = tf_ranking.MultiTaskPipeline(model_builder, builder, hparams)
      >>> sorted(pipeline.build_loss())
      ['click', 'sale']
    """

    def build_loss(self) -> dict[str, tf.keras.losses.Loss]:
        """Returns the loss of each task.

        Returns:
          The losses by task.

        Raises:
          ValueError: If `loss` is not a dict of task to name, or an argument in `loss_kwargs` is out of its range.
          TypeError: If a loss has no such argument.
        """
        tasks = self._hparams.loss
        if not isinstance(tasks, dict):
            raise ValueError(f"`loss` must be a dict of task to name in a MultiTaskPipeline, got {tasks!r}.")
        arguments = self._option("loss_kwargs") or {}
        return {task: self._loss(name, arguments.get(task)) for task, name in tasks.items()}
