"""The plan of the training of a `Ranker`: what its arguments and its data define."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, data, losses, metrics, models
from tfr_smooth._estimator import check_shared, digest, loss_of, settings_of
from tfr_smooth.columns import TableFeatures
from tfr_smooth.models.encoded_scorer import EncodedScorer
from tfr_smooth.models.feed_forward import checked_arguments
from tfr_smooth.ranker.epochs import SelectedEpoch
from tfr_smooth.training.lazy_adamw import LazyAdamW
from tfr_smooth.training.softmax_first import softmax_first
from tfr_smooth.training.trainer import train
from tfr_smooth.training.validation import Evaluation, ExactValidation

_LABEL_AGGREGATIONS = ("sum", "stochastic")
_SCHEDULES = ("cosine", "constant")
_OF_SCORER = ("hidden", "normalization", "batch_norm", "dropout", "members", "seed")
# Validation queries of two tables with ids prefer lower rates for embeddings.
_EMBEDDING_RATE = 0.3
# Without it, functions of single features fit noise: validation queries of MQ2007 and of made-up races.
_L1 = {"rises": 0.3}
_STEPS, _LEAST_EPOCHS, _MOST_EPOCHS = 2000, 5, 20  # of a training without `epochs`


class Trained(NamedTuple):
    """A trained scorer.

    Attributes:
      scorer: The model with the weights of the best epoch, or of the last epoch without validation.
      history: The training loss and the validation metrics of each epoch, by name.
      best_epoch: The selected epoch, from 1 on; None without validation, or if the metric was always NaN.
    """

    scorer: EncodedScorer
    history: dict[str, list[float]]
    best_epoch: int | None


def split_queries(lists: data.Lists, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns the indices of the training queries, and of the held-out ones; None for a fraction of 0."""
    if not fraction:
        return np.arange(len(lists)), None
    if len(lists) < 2:
        raise ValueError(f"`validation_fraction` must be 0 for fewer than two queries, got {fraction} for 1.")
    return lists.split_queries(fraction, seed=seed)


class TrainingPlan:
    """What the arguments of a `Ranker` and its training queries define, made once per `fit`.

    Args:
      params: The arguments of the constructor, with the hyperparameters of the loss.
      loss_options: The names of these hyperparameters.
      label_weights: The weights of labels [batch, list, objectives] of the validation batches and, for
        `label_aggregation="sum"`, of the training batches. None for labels [batch, list].
      num_queries: The number of training queries. None if they are not known yet.

    Attributes:
      epochs: Passes over the training queries, the most if the data choose the number.

    Raises:
      ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        loss_options: Sequence[str],
        label_weights: Sequence[float] | None = None,
        num_queries: int | None = None,
    ) -> None:
        self._params, self.label_weights = params, label_weights
        self._loss_options = {name: params[name] for name in loss_options}
        for name in ("members", "max_categories"):
            _arguments.integer(name, params[name], least=1)
        select_by = params["select_by"]
        check_shared({**params, "epochs": params["epochs"] or _MOST_EPOCHS}, select_by=("smooth", "last"))
        shown = select_by in ("smooth", "last", "ndcg")
        self._selected = None if shown else metrics.of_trec_eval(select_by, argument="select_by")
        self.epochs = _arguments.integer_or_none("epochs", params["epochs"], least=1) or _MOST_EPOCHS
        if params["epochs"] is None and num_queries is not None:
            steps_per_epoch = math.ceil(num_queries / params["batch_size"])
            self.epochs = min(max(math.ceil(_STEPS / steps_per_epoch), _LEAST_EPOCHS), _MOST_EPOCHS)
        _arguments.real("weight_decay", params["weight_decay"], least=0.0)
        _arguments.count_or_fraction("softmax_epochs", params["softmax_epochs"])
        for name, known in (("label_aggregation", _LABEL_AGGREGATIONS), ("schedule", _SCHEDULES)):
            _arguments.choice(name, params[name], known)
        if params["kinds"] is not None:
            _arguments.instance("kinds", params["kinds"], Mapping)
        if params["network"] is not None:
            _arguments.instance("network", params["network"], tf.keras.layers.Layer)
        self.make_loss()
        # No scorer: its dropout creates variables, and clusters must be configured before.
        checked_arguments(**self._of_scorer())

    @property
    def scores_lists(self) -> bool:
        """Whether the score of a document may depend on the others of its query."""
        return self._params["normalization"] == "min_max" or self._params["network"] is not None

    def make_loss(self) -> tf.keras.losses.Loss:
        """Returns the loss after the epochs on softmax."""
        return self._of_labels(self._loss_of_one_label())

    def _of_labels(self, loss: tf.keras.losses.Loss) -> tf.keras.losses.Loss:
        if self.label_weights is None or self._params["label_aggregation"] == "stochastic":
            return loss
        if not isinstance(loss, losses.RankingLoss):
            raise ValueError(f"`loss` must be a `losses.RankingLoss` for several labels, got {loss!r}.")
        return losses.MultiObjectiveLoss(loss, weights=self.label_weights)

    def _loss_of_one_label(self) -> tf.keras.losses.Loss:
        return loss_of("Ranker", self._params["loss"], self._loss_options)

    def make_scorer(self, layer: TableFeatures) -> EncodedScorer:
        """Returns a new scorer of the features of a layer, with its weights."""
        network = self._params["network"]
        blocks: dict[str, Any] = {"embeddings": layer.embeddings, "vectors": layer.vectors}
        scorer: EncodedScorer
        if network is None:
            output_bias = not getattr(self._loss_of_one_label(), "shift_invariant", False)
            scorer = models.FeedForwardScorer(**self._of_scorer(), **blocks, output_bias=output_bias)
        else:  # Each training starts with new weights.
            copy = type(network).from_config(network.get_config())
            options = {name: self._params[name] for name in ("normalization", "seed")}
            scorer = models.NetworkScorer(copy, **options, **blocks)
        scorer.build([None, None, layer.num_features])
        return scorer

    def _of_scorer(self) -> dict[str, Any]:
        return {name: self._params[name] for name in _OF_SCORER}

    def _make_metrics(self) -> list[tf.keras.metrics.Metric]:
        """Returns exact NDCG as trec_eval computes it, and the smooth metric if the loss is one minus such a metric."""
        loss = self._loss_of_one_label()
        made: list[tf.keras.metrics.Metric] = [metrics.of_trec_eval("ndcg")]
        if isinstance(loss, losses.MeasureLoss):
            name = loss.name.removesuffix("_loss")
            options = {"no_relevant": "skip", "ragged": loss.ragged, "name": name}
            made.append(metrics.MeasureMetric(loss.measure, ranking=loss.ranking, **options))
        return self.of_all_labels([*made, *([] if self._selected is None else [self._selected])])

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
        kinds = dict(self._params["kinds"] or {})
        encoders = {name: kind for name, kind in kinds.items() if isinstance(kind, tf.keras.layers.Layer)}
        kinds.update((name, digest(encoder.get_weights())) for name, encoder in encoders.items())
        values = settings_of({**self._params, "kinds": kinds, "epochs": self.epochs}, label_weights=self.label_weights)
        if values["schedule"] == "constant" and not values["softmax_epochs"]:
            del values["epochs"]  # more epochs continue a training run
        return values

    def compiled(
        self, layer: TableFeatures, further_metrics: Sequence[tf.keras.metrics.Metric], strategy: tf.distribute.Strategy
    ) -> Evaluation:
        """Returns a new compiled model, with the metrics of its validation, the further ones last."""
        with strategy.scope():
            p = self._params
            stages = {"epochs": self.epochs, "constant": p["schedule"] == "constant"}
            loss = self._loss_of_one_label()
            loss, self._schedule = softmax_first(loss, p["softmax_epochs"], learning_rate=p["learning_rate"], **stages)
            model, decay = self.make_scorer(layer), p["weight_decay"]
            optimizer = LazyAdamW(p["learning_rate"], weight_decay=decay, sparse_rate=_EMBEDDING_RATE, l1=_L1)
            optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "embeddings"])
            model.compile(optimizer=optimizer, loss=self._of_labels(loss))
        return Evaluation(model, [*self._make_metrics(), *self.of_all_labels(further_metrics)])

    def run(
        self,
        layer: TableFeatures,
        dataset_fn: Callable[[int], tf.data.Dataset],
        one_epoch: tf.data.Dataset,
        *,
        valid: tf.data.Dataset | None = None,
        epochs: int | None = None,
        initial_weights: Sequence[Any] | None = None,
        further_metrics: Sequence[tf.keras.metrics.Metric] = (),
        strategy: tf.distribute.Strategy | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        callbacks: Sequence[tf.keras.callbacks.Callback] = (),
    ) -> Trained:
        """Trains a scorer; the other arguments are those of `Ranker.fit`.

        Args:
          layer: The features.
          dataset_fn: A function from the number of finished epochs to the batches of all remaining ones.
          one_epoch: The batches of one epoch, for the statistics of the features.
          valid: The validation batches. None uses the last epoch.
          epochs: The number of epochs, of the schedule of `self.epochs`. None for all.
          initial_weights: The weights of a scorer to continue from. None for random ones and new statistics.
          further_metrics: Further metrics of the validation set.
          strategy: The strategy. None for that of the scope.
          checkpoint_dir: Directory of checkpoints, `log.csv` and `best.keras`; training resumes from it. None for none.
          settings: Further values, as JSON values, which a resumed training run must have in common.
          callbacks: Further Keras callbacks.

        Returns:
          The trained scorer, outside of the strategy's scope, so that any process can read it.
        """
        p, folder = self._params, None if checkpoint_dir is None else Path(checkpoint_dir)
        evaluation = self.compiled(layer, further_metrics, strategy or tf.distribute.get_strategy())
        model, scorer = evaluation.model, self.make_scorer(layer)
        if initial_weights is not None:
            if [w.shape for w in scorer.get_weights()] != [w.shape for w in initial_weights]:
                raise ValueError("`init_model` must have the same arguments of the network, such as `hidden`.")
            model.set_weights(initial_weights)
        validation: ExactValidation | None = None
        if valid is not None:
            own = evaluation.metrics[: len(evaluation.metrics) - len(further_metrics)]
            metric = own[0 if p["select_by"] in ("ndcg", "last") else -1]  # the first is exact NDCG
            file = None if folder is None else folder / "best.keras"
            options: dict[str, Any] = {"path": file, "patience": p["patience"]}
            if p["select_by"] == "last":
                validation = ExactValidation(valid, evaluation.metrics, monitor=metric.name, mode="last", **options)
                validation.evaluation = evaluation
            else:
                copy = type(metric).from_config(metric.get_config())
                validation = SelectedEpoch(valid, copy, evaluation, **options)
        history = train(
            model,
            dataset_fn,
            epochs=epochs or self.epochs,
            steps_per_epoch=int(one_epoch.cardinality()),
            validation=validation,
            checkpoint_dir=folder,
            settings={**self.identity(), **(settings or {})},
            prepare=lambda: None if initial_weights is not None else model.adapt(one_epoch),
            callbacks=[self._schedule, *callbacks],
            verbose=p["verbose"],
        )
        scorer.set_weights(model.get_weights())
        return Trained(scorer, history, None if validation is None else validation.best_epoch)
