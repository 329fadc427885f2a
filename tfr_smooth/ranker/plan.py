"""The training of a `Ranker`: what its arguments define, and the compiled model that a later `fit` uses again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from tfr_smooth import _arguments, _keras, losses, metrics, models
from tfr_smooth._estimator import digest, loss_of, settings_of
from tfr_smooth.models.encoded_scorer import EncodedScorer
from tfr_smooth.models.feed_forward import checked_arguments
from tfr_smooth.training.lazy_adamw import LazyAdamW
from tfr_smooth.training.softmax_first import SoftmaxFirst, SoftmaxFirstLoss, softmax_first_loss
from tfr_smooth.training.trainer import train
from tfr_smooth.training.validation import Evaluation, ExactValidation

_SELECT_BY = ("smooth", "ndcg", "last")
_LABEL_AGGREGATIONS = ("sum", "stochastic")
_SCHEDULES = ("cosine", "constant")
_OF_SCORER = ("hidden", "normalization", "batch_norm", "dropout", "members", "seed")
# Validation queries of two tables with ids prefer lower rates for embeddings.
_EMBEDDING_RATE = 0.3
# A variable holds the learning rate, and others the state of the random numbers.
_NOT_IN_GRAPH = (
    *("epochs", "learning_rate", "schedule", "batch_size", "select_by", "patience", "seed", "verbose"),
    *("validation_fraction", "max_categories"),
)


class Trained(NamedTuple):
    """A trained scorer.

    Attributes:
      scorer: The model with the weights of the best epoch, or of the last epoch without validation.
      history: The training loss and the validation metrics of each epoch, by name.
      best_epoch: Index of the best epoch; None without validation, or if the metric was always NaN.
    """

    scorer: EncodedScorer
    history: dict[str, list[float]]
    best_epoch: int | None


class Compiled(NamedTuple):
    """A compiled model and its validation, with what TensorFlow traced for them.

    Attributes:
      key: What shapes the graphs, as JSON with the ids of objects. None if the model cannot be used again.
      graph: The same as objects, which live as long as their ids are in the key.
      evaluation: The model and its metrics.
      warm_start: The loss with a warm start. None for none.
      initial: The initial values of the variables of the optimizer.
    """

    key: str | None
    graph: list[Any]
    evaluation: Evaluation
    warm_start: SoftmaxFirstLoss | None
    initial: list[Any]

    def restart(self, scorer: EncodedScorer) -> None:
        """Sets all variables to those of a new scorer and a new optimizer."""
        model = self.evaluation.model
        # `variables` includes the state of the random numbers.
        values = [*(variable.numpy() for variable in scorer.variables), *self.initial]
        for variable, value in zip([*model.variables, *model.optimizer.variables], values, strict=True):
            variable.assign(value)


class RankerTraining:
    """What the arguments of a `Ranker` define.

    Args:
      params: The arguments of the constructor, with the hyperparameters of the loss.
      loss_options: The names of these hyperparameters.
      label_weights: The weights of labels [batch, list, objectives] of the validation batches and, for
        `label_aggregation="sum"`, of the training batches. None for labels [batch, list].
      **blocks: The arguments `embeddings` and `vectors` of the scorer.

    Raises:
      ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        loss_options: Sequence[str],
        label_weights: Sequence[float] | None = None,
        **blocks: Any,
    ) -> None:
        self._params, self.label_weights, self._blocks = params, label_weights, blocks
        self._loss_options = {name: params[name] for name in loss_options}
        for name in ("members", "epochs", "batch_size", "max_categories"):
            _arguments.integer(name, params[name], least=1)
        _arguments.real("learning_rate", params["learning_rate"], above=0.0)
        for name, below in (("weight_decay", math.inf), ("warm_start", 1.0), ("validation_fraction", 1.0)):
            _arguments.real(name, params[name], least=0.0, below=below)
        for name, known in (
            ("label_aggregation", _LABEL_AGGREGATIONS),
            ("select_by", _SELECT_BY),
            ("schedule", _SCHEDULES),
        ):
            _arguments.choice(name, params[name], known)
        _arguments.integer_or_none("patience", params["patience"], least=1)
        _arguments.integer("seed", params["seed"], least=0)
        _arguments.boolean("verbose", params["verbose"])
        if params["columns"] is not None:
            _arguments.instance("columns", params["columns"], Mapping)
        if params["network"] is not None:
            _arguments.instance("network", params["network"], tf.keras.layers.Layer)
        self.make_loss()
        # No scorer: its dropout creates variables, and clusters must be configured before.
        checked_arguments(**self._of_scorer())

    def make_loss(self) -> tf.keras.losses.Loss:
        """Returns the loss after the warm start."""
        return self._of_labels(self._loss_of_one_label())

    def _of_labels(self, loss: tf.keras.losses.Loss) -> tf.keras.losses.Loss:
        if self.label_weights is None or self._params["label_aggregation"] == "stochastic":
            return loss
        if not isinstance(loss, losses.RankingLoss):
            raise ValueError(f"`loss` must be a `losses.RankingLoss` for several labels, got {loss!r}.")
        return losses.MultiObjectiveLoss(loss, weights=self.label_weights)

    def _loss_of_one_label(self) -> tf.keras.losses.Loss:
        return loss_of("Ranker", self._params["loss"], self._loss_options)

    def _make_scorer(self) -> EncodedScorer:
        network = self._params["network"]
        if network is None:
            return models.FeedForwardScorer(**self._of_scorer())
        # Each training starts with new weights.
        copy = type(network).from_config(network.get_config())
        options = {name: self._params[name] for name in ("normalization", "seed")}
        return models.NetworkScorer(copy, **options, **self._blocks)

    def _of_scorer(self) -> dict[str, Any]:
        return {**{name: self._params[name] for name in _OF_SCORER}, **self._blocks}

    def _make_optimizer(self) -> tf.keras.optimizers.Optimizer:
        rate, decay = self._params["learning_rate"], self._params["weight_decay"]
        optimizer = LazyAdamW(rate, weight_decay=decay, sparse_rate=_EMBEDDING_RATE)
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "embeddings"])
        return optimizer

    def _make_metrics(self) -> list[tf.keras.metrics.Metric]:
        """Returns exact NDCG as trec_eval computes it, and the smooth metric if the loss is one minus such a metric."""
        loss = self._loss_of_one_label()
        made: list[tf.keras.metrics.Metric] = [metrics.NDCGMetric(gain="linear")]
        if isinstance(loss, losses.MeasureLoss):
            name = loss.name.removesuffix("_loss")
            options = {"no_relevant": "skip", "ragged": loss.ragged, "name": name}
            made.append(metrics.MeasureMetric(loss.measure, ranking=loss.ranking, **options))
        return self.of_all_labels(made)

    def of_all_labels(self, of_one: Sequence[tf.keras.metrics.Metric]) -> list[tf.keras.metrics.Metric]:
        """Returns metrics of the labels of the validation batches.

        Args:
          of_one: Metrics of one label.

        Returns:
          The metrics, for several labels their weighted means over these.
        """
        if self.label_weights is None:
            return list(of_one)
        return [metrics.MultiObjectiveMetric(metric, weights=self.label_weights) for metric in of_one]

    def identity(self) -> dict[str, Any]:
        """Returns the settings that a resumed training run must have in common, as JSON values."""
        columns = dict(self._params["columns"] or {})
        encoders = {name: kind for name, kind in columns.items() if isinstance(kind, tf.keras.layers.Layer)}
        columns.update((name, digest(encoder.get_weights())) for name, encoder in encoders.items())
        values = settings_of({**self._params, "columns": columns}, label_weights=self.label_weights)
        if values["schedule"] == "constant" and not values["warm_start"]:
            del values["epochs"]  # more epochs continue a training run
        return values

    def compiled(
        self,
        previous: Compiled | None,
        num_features: int,
        further_metrics: Sequence[tf.keras.metrics.Metric],
        strategy: tf.distribute.Strategy,
    ) -> Compiled:
        """Returns a new compiled model, or the previous one if its graphs are the same."""
        values = {name: value for name, value in self._params.items() if name not in _NOT_IN_GRAPH}
        policy = tf.keras.mixed_precision.global_policy().name
        graph = [values, self.label_weights, self._blocks, num_features, policy, list(further_metrics)]
        with strategy.scope():
            # Keras 2 cannot reset the state of dropout.
            reusable = _keras.IS_KERAS_3 and not tf.distribute.has_strategy()
        key = json.dumps(graph, sort_keys=True, default=id) if reusable else None
        if previous is not None and previous.key == key is not None:
            return previous
        with strategy.scope():
            warm_start = softmax_first_loss(self._loss_of_one_label(), self._params["warm_start"])
            model = self._make_scorer()
            loss = self.make_loss() if warm_start is None else self._of_labels(warm_start)
            model.compile(optimizer=self._make_optimizer(), loss=loss)
            model.build([None, None, num_features])
        evaluation, initial = Evaluation(model, [*self._make_metrics(), *self.of_all_labels(further_metrics)]), []
        if reusable:
            model.optimizer.build(model.trainable_variables)
            initial = [variable.numpy() for variable in model.optimizer.variables]
        return Compiled(key, graph, evaluation, warm_start, initial)

    def run(
        self,
        compiled: Compiled,
        dataset_fn: Callable[[int], tf.data.Dataset],
        one_epoch: tf.data.Dataset,
        valid: tf.data.Dataset | None,
        *,
        initial_weights: Sequence[Any] | None,
        num_further: int,
        steps_per_epoch: int | None,
        checkpoint_dir: str | os.PathLike[str] | None,
        settings: Mapping[str, Any] | None,
        callbacks: Sequence[tf.keras.callbacks.Callback],
    ) -> Trained:
        """Trains a scorer; the other arguments are those of `Ranker.fit`.

        Args:
          compiled: The compiled model.
          dataset_fn: A function from the number of finished epochs to the batches of all remaining ones.
          one_epoch: The batches of one epoch, for the statistics of the features.
          valid: The validation batches. None uses the last epoch.
          initial_weights: The weights of a scorer to continue from. None for random ones and new statistics.
          num_further: The number of further metrics of the compiled model.
          steps_per_epoch: Batches per epoch. None if each iteration of the dataset is one epoch.
          checkpoint_dir: Directory of checkpoints, `log.csv` and `best.keras`; training resumes from it. None for none.
          settings: Further values, as JSON values, which a resumed training run must have in common.
          callbacks: Further Keras callbacks.

        Returns:
          The trained scorer, outside of the strategy's scope, so that any process can read it.
        """
        p, folder = self._params, None if checkpoint_dir is None else Path(checkpoint_dir)
        model, used = compiled.evaluation.model, compiled.evaluation.metrics
        scorer = self._make_scorer()
        scorer.build([None, None, model.num_features])
        if initial_weights is not None:
            if [w.shape for w in scorer.get_weights()] != [w.shape for w in initial_weights]:
                raise ValueError("`init_model` must have the same arguments of the network, such as `hidden`.")
            scorer.set_weights(initial_weights)
            model.set_weights(initial_weights)
        if compiled.key is not None:
            compiled.restart(scorer)
        validation = None
        if valid is not None:
            own = used[: len(used) - num_further]
            validation = ExactValidation(
                valid,
                used,
                monitor=own[-1 if p["select_by"] == "smooth" else 0].name,
                mode="last" if p["select_by"] == "last" else "max",
                path=None if folder is None else folder / "best.keras",
                patience=p["patience"],
            )
            validation.evaluation = compiled.evaluation
        schedule = SoftmaxFirst(
            p["learning_rate"],
            epochs=p["epochs"],
            loss=compiled.warm_start,
            softmax_epochs=round(p["warm_start"] * p["epochs"]),
            constant=p["schedule"] == "constant",
        )
        history = train(
            model,
            dataset_fn,
            epochs=p["epochs"],
            steps_per_epoch=steps_per_epoch,
            validation=validation,
            checkpoint_dir=folder,
            settings={**self.identity(), **(settings or {})},
            prepare=lambda: None if initial_weights is not None else model.adapt(one_epoch),
            callbacks=[schedule, *callbacks],
            verbose=p["verbose"],
        )
        scorer.set_weights(model.get_weights())
        return Trained(scorer, history, None if validation is None else validation.best_epoch)
