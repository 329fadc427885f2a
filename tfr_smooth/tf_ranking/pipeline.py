"""TF-Ranking's pipelines with the losses of both libraries, exact validation and complete resuming."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
import warnings
from typing import Any, cast

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth import _arguments, _files
from tfr_smooth.data.batches import share_by_data
from tfr_smooth.tf_ranking.callbacks import BestCheckpoint, EarlyStopping, ReduceLROnPlateau, States
from tfr_smooth.tf_ranking.datasets import EpochDatasets
from tfr_smooth.tf_ranking.hparams import PipelineHparams
from tfr_smooth.tf_ranking.names import get, get_metric
from tfr_smooth.tf_ranking.signatures import raw_signature
from tfr_smooth.training import ResumableTraining
from tfr_smooth.training.cluster import path_to_save

_METRIC, _WEIGHTED = "metric/", "weighted_metric/"
_DEFAULT_METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "ndcg")
_SIGNATURE_KEYS = {"predict": tf.saved_model.PREDICT_METHOD_NAME, "regress": tf.saved_model.REGRESS_METHOD_NAME}
# Lower is better for these.
_LOWER_BETTER = ("loss", "arp")
# Hyperparameters that may change when a training is resumed.
_NO_SETTINGS = ("model_dir", "num_epochs", "strategy", "cluster_resolver", "variable_partitioner", "tpu")


class _Pipeline(tfr.keras.pipeline.ModelFitPipeline):
    """Base class of the two pipelines: everything except losses and metrics."""

    def __init__(
        self,
        model_builder: tfr.keras.model.AbstractModelBuilder,
        dataset_builder: tfr.keras.pipeline.AbstractDatasetBuilder,
        hparams: tfr.keras.pipeline.PipelineHparams,
    ) -> None:
        hparams = PipelineHparams.of(hparams)
        super().__init__(model_builder, dataset_builder, hparams)
        self._monitor = "val_" + hparams.best_exporter_metric
        several = isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if several and isinstance(dataset_builder, EpochDatasets) and dataset_builder.seed is None:
            raise ValueError(
                "`dataset_builder` must have a `seed` for several workers, which must read in the same order, got None."
            )

    def build_optimizer(self) -> tf.keras.optimizers.Optimizer:
        """Returns the optimizer of the hyperparameters.

        Returns:
          The optimizer.
        """
        # Keras's default, a legacy optimizer, cannot restore its state before the first step.
        config = {"learning_rate": self._hparams.learning_rate, "is_legacy_optimizer": False}
        return tf.keras.optimizers.get({"class_name": self._hparams.optimizer, "config": config})

    def _build_metric_list(self, prefix: str) -> list[tf.keras.metrics.Metric]:
        """Returns the metrics of the hyperparameters, for one output."""
        given = _DEFAULT_METRICS if self._hparams.metrics is None else self._hparams.metrics
        built = []
        for metric in given:
            arguments = {"metric": metric} if isinstance(metric, str) else dict(metric)
            if self._hparams.ragged:
                arguments["ragged"] = True
            name = arguments.get("name") or get_metric(**arguments).name
            built.append(get_metric(**{**arguments, "name": prefix + name}))
        for name, count in collections.Counter(metric.name for metric in built).items():
            if count > 1:
                raise ValueError(f"`metrics` must have unique names, got {name.removeprefix(prefix)!r} twice.")
        return built

    def _by_output(self, prefix: str) -> Any:
        tasks = self._hparams.loss
        if isinstance(tasks, dict):
            return {task: self._build_metric_list(prefix) for task in tasks}
        return self._build_metric_list(prefix)

    def build_metrics(self) -> Any:
        """Returns the metrics of the hyperparameters.

        Returns:
          A list of metrics, or one for each task in a dict.

        Raises:
          ValueError: If a metric is unknown, an argument is invalid, or two metrics have the same name.
        """
        return self._by_output(_METRIC)

    def build_weighted_metrics(self) -> Any:
        """Returns the metrics of the hyperparameters, for use with sample weights.

        Returns:
          A list of metrics, or one for each task in a dict.

        Raises:
          ValueError: As in `build_metrics`.
        """
        return self._by_output(_WEIGHTED)

    def build_callbacks(self) -> list[tf.keras.callbacks.Callback]:
        """Returns the callbacks: TensorBoard's and those of the hyperparameters. Override it to add callbacks.

        Returns:
          The callbacks.
        """
        hparams = self._hparams
        mode = "max" if self._higher_better() else "min"
        callbacks = [tf.keras.callbacks.TensorBoard(hparams.model_dir)]
        if hparams.export_best_model:
            callbacks.append(BestCheckpoint(os.path.join(hparams.model_dir, "best_checkpoint"), self._monitor, mode))
        if hparams.automatic_reduce_lr:
            callbacks.append(ReduceLROnPlateau(monitor="val_loss", min_delta=0.01 * hparams.learning_rate))
        if hparams.early_stopping_patience:
            patience, min_delta = hparams.early_stopping_patience, hparams.early_stopping_min_delta
            callbacks.append(EarlyStopping(self._monitor, min_delta=min_delta, patience=patience, mode=mode))
        return callbacks

    def _higher_better(self) -> bool:
        given, metric = self._hparams.best_exporter_metric_higher_better, self._hparams.best_exporter_metric
        lower = any(metric == name or metric.endswith(("/" + name, "_" + name)) for name in _LOWER_BETTER)
        return not lower if given is None else given

    def _check_monitor(self, model: tf.keras.Model, metrics: Any, weighted_metrics: Any) -> None:
        """Looks up `best_exporter_metric` among the names in the logs."""
        tasks = list(self._hparams.loss) if isinstance(self._hparams.loss, dict) else model.output_names or []
        known = {"loss": "loss"}
        for task in tasks if len(tasks) > 1 else [None]:
            if task is not None:
                known[f"{task}/loss"] = f"{task}_loss"
            for given, kind in ((metrics, ""), (weighted_metrics, "weighted_")):
                for metric in tf.nest.flatten(given.get(task, []) if isinstance(given, dict) and task else given or []):
                    short = kind + metric.name.removeprefix(_WEIGHTED).removeprefix(_METRIC)
                    name = metric.name if task is None else f"{task}_{metric.name}"
                    known[short if task is None else f"{task}/{short}"] = name
        metric = self._hparams.best_exporter_metric
        if metric not in known.values():
            metric = known[_arguments.choice("best_exporter_metric", metric, tuple(known))]
        self._monitor = "val_" + metric
        if metric != "loss" and self._hparams.best_exporter_metric_higher_better is False:
            warnings.warn(
                f"The lowest {metric} selects the best epoch; set `best_exporter_metric_higher_better` to None or True "
                "if higher is better.",
                stacklevel=3,
            )

    def _signatures(self, model: tf.keras.Model) -> dict[str, Any] | None:
        """Returns the dataset builder's signatures with the default signature of the hyperparameters."""
        default = self._hparams.default_signature
        signatures = self._dataset_builder.build_signatures(model)
        if default is None:
            return signatures
        signatures = dict(signatures or {})
        if default == "raw":
            chosen = raw_signature(model, getattr(self._dataset_builder, "mask_feature_name", None))
        else:
            if _SIGNATURE_KEYS[default] not in signatures:
                builder = type(self._dataset_builder).__name__
                raise ValueError(f"`default_signature` must be None or 'raw' for {builder}, got {default!r}.")
            chosen = signatures[_SIGNATURE_KEYS[default]]
        return {**signatures, tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: chosen}

    def export_saved_model(
        self, model: tf.keras.Model, export_to: str, checkpoint: tf.train.Checkpoint | str | None = None
    ) -> None:
        """Exports a model with its signatures; atomically replaces an existing folder.

        Args:
          model: The model.
          export_to: The folder to write.
          checkpoint: The checkpoint to load the weights from; None exports the current weights.

        Raises:
          ValueError: If the default signature cannot be built.
        """
        if checkpoint:
            model.load_weights(checkpoint).expect_partial()
        with _files.replacing(export_to) as unfinished:
            model.save(os.fspath(unfinished), signatures=self._signatures(model))

    def train_and_validate(self, verbose: int | str = 0) -> tf.keras.Model:
        """Trains the model, or resumes an interrupted training, and exports the model.

        Writes to `model_dir`: `export/latest_model`, with `export_best_model` also `export/best_model_by_metric`,
        TensorBoard's logs, and the checkpoints for resuming. A finished training resumes if `num_epochs` is increased.
        With several workers, only the chief writes: TF_CONFIG's chief, or worker 0 without a chief.

        Args:
          verbose: The argument `verbose` of `tf.keras.Model.fit`.

        Returns:
          The model of the best epoch with `export_best_model`, else of the last epoch.

        Raises:
          ValueError: Before training, if `best_exporter_metric` is not a metric of the validation, the default
            signature cannot be built, a dataset is empty or infinite without a number of steps, or `model_dir` contains
            a training with other hyperparameters. After training, if `best_exporter_metric` was always NaN.
        """
        hparams = self._hparams
        with contextlib.nullcontext() if self._strategy is None else self._strategy.scope():
            model = self._model_builder.build()
            metrics = self.build_metrics()
            weighted_metrics = self.build_weighted_metrics() if hparams.use_weighted_metrics else None
            self._check_monitor(model, metrics, weighted_metrics)
            model.compile(
                optimizer=self.build_optimizer(),
                loss=self.build_loss(),
                metrics=metrics,
                loss_weights=hparams.loss_weights,
                weighted_metrics=weighted_metrics,
                steps_per_execution=hparams.steps_per_execution,
            )
            valid, validation_steps = self._validation_dataset()
            if not model.built:  # A subclassed model creates its weights in the first call.
                model(next(iter(valid))[0], training=False)
            if hparams.default_signature is not None:
                self._signatures(model)  # Fail before the training rather than after it.
            callbacks = self.build_callbacks()
            resumable = ResumableTraining(
                os.path.join(hparams.model_dir, "checkpoints"),
                validation=cast(Any, States(callbacks)),
                settings=_settings(hparams),
            )
            start = resumable.restore(model)
            stopped = any(isinstance(c, EarlyStopping) and c.stopped_epoch for c in callbacks)
            if start < hparams.num_epochs and not stopped:
                train, steps_per_epoch = self._train_dataset(start)
                model.fit(
                    train,
                    initial_epoch=start,
                    epochs=hparams.num_epochs,
                    steps_per_epoch=steps_per_epoch,
                    validation_data=valid,
                    validation_steps=validation_steps,
                    callbacks=[*callbacks, resumable],
                    verbose=verbose,
                )
            with path_to_save(model.distribute_strategy, os.path.join(hparams.model_dir, "export")) as export:
                self.export_saved_model(model, os.path.join(export, "latest_model"))
                for best in callbacks:
                    if isinstance(best, BestCheckpoint):
                        if best.best_epoch is None:
                            raise ValueError(
                                f"`best_exporter_metric` must be a number, got {self._monitor} = NaN only."
                            )
                        folder = os.path.join(export, "best_model_by_metric")
                        self.export_saved_model(model, folder, best.path(best.best_epoch))
        return model

    def _validation_dataset(self) -> tuple[tf.data.Dataset, int | None]:
        """Returns (dataset, steps); a finite dataset contains each list once."""
        dataset, steps = self._dataset_builder.build_valid_dataset(), self._hparams.validation_steps
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            if steps is None:
                raise ValueError(
                    "`validation_steps` must be an integer for an infinite validation dataset, such as that of "
                    "TF-Ranking's builders, got None. The builders of tfr_smooth.tf_ranking return finite ones."
                )
            warnings.warn(
                f"The validation dataset is infinite: {steps} batches of it may count a list twice or never. "
                "The dataset builders of tfr_smooth.tf_ranking count each list once.",
                stacklevel=3,
            )
            return share_by_data(dataset), steps
        if steps is not None:
            dataset = dataset.take(steps)
        return share_by_data(_counted(dataset)), None

    def _train_dataset(self, start: int) -> tuple[tf.data.Dataset, int]:
        """Returns (infinite dataset, batches per epoch) for a training that has finished `start` epochs."""
        builder, steps = self._dataset_builder, self._hparams.steps_per_epoch
        if isinstance(builder, EpochDatasets):
            steps = steps or builder.train_batches()
            return share_by_data(builder.build_train_dataset(first_batch=start * steps)), steps
        dataset = builder.build_train_dataset()
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            if steps is None:
                raise ValueError("`steps_per_epoch` must be an integer for an infinite training dataset, got None.")
        elif steps is None:
            dataset = _counted(dataset)
            steps = int(dataset.cardinality())
        return share_by_data(dataset.repeat()), steps


def _counted(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the dataset with a known number of batches, which Keras requires for `steps_per_execution` > 1."""
    if dataset.cardinality() != tf.data.UNKNOWN_CARDINALITY:
        return dataset
    count = dataset.reduce(tf.constant(0, tf.int64), lambda n, *_: n + 1)
    return dataset.apply(tf.data.experimental.assert_cardinality(count))


def _settings(hparams: PipelineHparams) -> dict[str, Any]:
    """Returns the hyperparameters that must not change when a training is resumed, as JSON values."""
    values = {field.name: getattr(hparams, field.name) for field in dataclasses.fields(hparams)}
    values = {name: value for name, value in values.items() if name not in _NO_SETTINGS}
    return cast("dict[str, Any]", json.loads(json.dumps(values, default=lambda value: type(value).__name__)))


class SimplePipeline(_Pipeline, tfr.keras.pipeline.SimplePipeline):
    """TF-Ranking's `SimplePipeline` for the losses and metrics of both libraries.

    A drop-in replacement: TF-Ranking's model builders, dataset builders, hyperparameters and subclasses work unchanged.
    Differences:

    - `hparams.loss` may be any loss of either library, with arguments in `loss_kwargs`; see `PipelineHparams`.
    - Validation counts each list once if the dataset is finite, as with this library's dataset builders.
    - Any validation metric can select the best epoch, including weighted metrics and those of a task. An unknown name
      is an error before training.
    - An interrupted training resumes after its last finished epoch, with its best epoch, patience and learning rate.

    Args:
      model_builder: A `tfr.keras.model.AbstractModelBuilder`.
      dataset_builder: A `tfr.keras.pipeline.AbstractDatasetBuilder`.
      hparams: `PipelineHparams`, or TF-Ranking's own.

    Raises:
      ValueError: If a hyperparameter is out of its range, or a dataset builder of this library has no seed for several
        workers.

    Example:
      >>> import tempfile
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import data, tf_ranking
      >>> paths = data.write_synthetic_letor(tempfile.mkdtemp(), num_queries=(8, 4, 2))
      >>> files = tfr.keras.pipeline.DatasetHparams(str(paths["train"]), str(paths["valid"]), 4, 4)
      >>> builder = tf_ranking.LetorDatasetBuilder(files)
      >>> model_builder = tfr.keras.model.ModelBuilder(
      ...     tfr.keras.model.FeatureSpecInputCreator(builder.context_feature_spec, builder.example_feature_spec),
      ...     tfr.keras.model.PreprocessorWithSpec(),
      ...     tfr.keras.model.DNNScorer(hidden_layer_dims=[4], output_units=1),
      ...     mask_feature_name=builder.mask_feature_name,
      ... )
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir=tempfile.mkdtemp(), num_epochs=1, learning_rate=0.01, loss="smoothi_ndcg",
      ...     loss_kwargs={"alpha": 10.0}, metrics=["ndcg@5", "tfr/mrr"], export_best_model=True,
      ...     best_exporter_metric="ndcg_5",
      ... )
      >>> model = tf_ranking.SimplePipeline(model_builder, builder, hparams).train_and_validate()
    """

    def build_loss(self) -> tf.keras.losses.Loss:
        """Returns the loss of the hyperparameters.

        Returns:
          The loss.

        Raises:
          ValueError: If `loss` is not the name of a loss, or `loss_kwargs` are not arguments of this loss.
        """
        hparams = self._hparams
        if not isinstance(hparams.loss, str):
            raise ValueError(f"`loss` must be the name of a loss in a SimplePipeline, got {hparams.loss!r}.")
        return _loss(hparams.loss, hparams, hparams.loss_kwargs)


class MultiTaskPipeline(_Pipeline, tfr.keras.pipeline.MultiTaskPipeline):
    """TF-Ranking's `MultiTaskPipeline` for the losses and metrics of both libraries.

    It has the differences that `SimplePipeline` lists. `hparams.loss` and `hparams.loss_kwargs` are dicts by task.

    Args:
      model_builder: A `tfr.keras.model.AbstractModelBuilder` of a model with one output per task.
      dataset_builder: A `tfr.keras.pipeline.AbstractDatasetBuilder`, such as `MultiLabelDatasetBuilder`.
      hparams: `PipelineHparams`, or TF-Ranking's own.

    Raises:
      ValueError: If a hyperparameter is out of its range, or a dataset builder of this library has no seed for several
        workers.

    Example:
      >>> import tempfile
      >>> import tensorflow as tf
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import tf_ranking
      >>> scalar = tf.io.FixedLenFeature([1], tf.float32, 0.0)
      >>> files = tfr.keras.pipeline.DatasetHparams("train*", "valid*", train_batch_size=32, valid_batch_size=32)
      >>> labels = {"click": ("click", scalar), "sale": ("sale", scalar)}
      >>> builder = tf_ranking.MultiLabelDatasetBuilder({}, {"price": scalar}, "mask", labels, files)
      >>> model_builder = tfr.keras.model.ModelBuilder(
      ...     tfr.keras.model.FeatureSpecInputCreator({}, {"price": scalar}),
      ...     tfr.keras.model.PreprocessorWithSpec(),
      ...     tfr.keras.model.DNNScorer(hidden_layer_dims=[4], output_units=2),
      ...     mask_feature_name="mask",
      ... )
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir=tempfile.mkdtemp(), num_epochs=1, learning_rate=0.01,
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
          ValueError: If `loss` is not a dict of task to name, or `loss_kwargs` are not arguments of these losses.
        """
        hparams = self._hparams
        if not isinstance(hparams.loss, dict):
            raise ValueError(f"`loss` must be a dict of task to name in a MultiTaskPipeline, got {hparams.loss!r}.")
        arguments = hparams.loss_kwargs or {}
        return {task: _loss(name, hparams, arguments.get(task)) for task, name in hparams.loss.items()}


def _loss(name: str, hparams: PipelineHparams, arguments: dict[str, Any] | None) -> tf.keras.losses.Loss:
    ragged = {"ragged": True} if hparams.ragged else {}
    return get(name, **{"reduction": hparams.loss_reduction, **ragged, **(arguments or {})})
