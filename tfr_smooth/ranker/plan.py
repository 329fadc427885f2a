"""The plan of the training of a `Ranker`: what its arguments and its data define."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _keras, losses, metrics, models
from tfr_smooth._estimator import digest, loss_of, settings_of
from tfr_smooth.columns import TableFeatures
from tfr_smooth.models.encoded_scorer import EncodedScorer
from tfr_smooth.training.lazy_adamw import LazyAdamW
from tfr_smooth.training.softmax_first import SoftmaxFirst, SoftmaxFirstLoss, softmax_first
from tfr_smooth.training.validation import SelectedEpoch

OF_SCORER = ("hidden", "normalization", "batch_norm", "dropout", "members", "seed")
# Validation queries of two tables with ids prefer lower rates for embeddings.
_EMBEDDING_RATE = 0.3
# Without it, functions of single features fit noise: validation queries of MQ2007 and of made-up races.
_L1 = {"rises": 0.3}
# Of a training without `epochs`. On 6,000 queries, 10 epochs rank as well as 20 (NDCG@10 0.8179 and 0.8166).
_STEPS, _LEAST_EPOCHS, _MOST_EPOCHS = 2000, 5, 20
_MOST_KEPT = 4  # models and their losses, the last ones that trained, by `TrainingPlan._settings_of_step`
_KEPT: dict[str, tuple[EncodedScorer, SoftmaxFirstLoss | None]] = {}


class TrainingPlan:
    """What the arguments of a `Ranker` and its training queries define.

    Args:
      params: The arguments of the constructor, with the hyperparameters of the loss.
      loss_options: The names of these hyperparameters.

    Attributes:
      label_weights: The weights of labels [batch, list, objectives] of the validation batches and, for
        `label_aggregation="sum"`, of the training batches. None for labels [batch, list].
      epochs: Passes over the training queries, the most if the data choose the number.
      loss: The loss after the epochs on softmax.
      loss_of_one_label: The same, of one of several labels.

    Raises:
      ValueError: If the loss does not exist.
    """

    label_weights: Sequence[float] | None = None

    def __init__(self, params: Mapping[str, Any], loss_options: Sequence[str] = ()) -> None:
        self._params, self.epochs, self._loss_options = params, params["epochs"] or _MOST_EPOCHS, loss_options
        self.loss = loss_of("Ranker", params["loss"], {name: params[name] for name in loss_options})
        self.loss_of_one_label = self.loss

    def of_data(self, label_weights: Sequence[float] | None, num_queries: int | None = None) -> TrainingPlan:
        """Returns the plan for the weights of several labels, and for the number of training queries if it is known.

        Raises:
          ValueError: If the loss cannot have several labels.
        """
        plan = copy.copy(self)
        plan.label_weights = label_weights
        plan.loss = plan._of_labels(self.loss_of_one_label)
        if self._params["epochs"] is None and num_queries is not None:
            steps_per_epoch = math.ceil(num_queries / self._params["batch_size"])
            plan.epochs = min(max(math.ceil(_STEPS / steps_per_epoch), _LEAST_EPOCHS), _MOST_EPOCHS)
        return plan

    def shorter(self) -> TrainingPlan:
        """Returns the plan of a fifth of the epochs, which is better if labels are mostly noise."""
        plan = copy.copy(self)
        plan.epochs = max(2, round(self.epochs / 5))
        return plan

    @property
    def scores_lists(self) -> bool:
        """Whether the score of a document may depend on the others of its query."""
        return self._params["normalization"] == "min_max" or self._params["network"] is not None

    def _of_labels(self, loss: tf.keras.losses.Loss) -> tf.keras.losses.Loss:
        if self.label_weights is None or self._params["label_aggregation"] == "stochastic":
            return loss
        if not isinstance(loss, losses.RankingLoss):
            raise ValueError(f"`loss` must be a `losses.RankingLoss` for several labels, got {loss!r}.")
        return losses.MultiObjectiveLoss(loss, weights=self.label_weights)

    def make_scorer(self, layer: TableFeatures, initial: EncodedScorer | None = None) -> EncodedScorer:
        """Returns a new scorer of the features of a layer, with its weights; the initial one has the same offset."""
        network = self._params["network"]
        blocks: dict[str, Any] = {"embeddings": layer.embeddings, "vectors": layer.vectors}
        shift_invariant = getattr(self.loss_of_one_label, "shift_invariant", False)
        if initial is not None:
            blocks["offset"] = initial.get_config()["offset"]
        elif layer.trees and shift_invariant:  # Others compare scores with labels, of another scale than the trees'.
            blocks["offset"] = layer.num_features - 1
        scorer: EncodedScorer
        if network is None:
            options = {name: self._params[name] for name in OF_SCORER}
            options.update(weak=layer.weak, output_bias=not shift_invariant)
            scorer = models.FeedForwardScorer(**options, **blocks)
        else:  # Each training starts with new weights.
            options = {name: self._params[name] for name in ("normalization", "seed")}
            scorer = models.NetworkScorer(type(network).from_config(network.get_config()), **options, **blocks)
        scorer.build([None, None, layer.num_features])
        return scorer

    def identity(self) -> dict[str, Any]:
        """Returns the settings that a resumed training run must have in common, as JSON values."""
        kinds = dict(self._params["kinds"] or {})
        encoders = {name: kind for name, kind in kinds.items() if isinstance(kind, tf.keras.layers.Layer)}
        kinds.update((name, digest(encoder.get_weights())) for name, encoder in encoders.items())
        values = settings_of({**self._params, "kinds": kinds, "epochs": self.epochs}, label_weights=self.label_weights)
        if values["schedule"] == "constant" and not values["softmax_epochs"]:
            del values["epochs"]  # more epochs continue a training run
        return values

    def compiled(self, model: EncodedScorer) -> tuple[EncodedScorer, SoftmaxFirst]:
        """Returns a compiled model with the variables of a new one, and the callback of its learning rate.

        It is that of an earlier training of the process if `keep` kept one, whose step need not be traced again.
        """
        p = self._params
        rate, decay = p["learning_rate"], p["weight_decay"]
        stages = {"learning_rate": rate, "epochs": self.epochs, "constant": p["schedule"] == "constant"}
        kept, kept_loss = _KEPT.pop(self._settings_of_step(model), (None, None))
        loss, schedule = softmax_first(self.loss_of_one_label, p["softmax_epochs"], **stages)
        if kept is not None:
            schedule.loss = kept_loss
            for variable, value in zip(kept.variables, model.variables, strict=True):
                variable.assign(value)
            for variable in kept.optimizer.variables:
                variable.assign(tf.zeros_like(variable))
            return kept, schedule
        optimizer = LazyAdamW(rate, weight_decay=decay, sparse_rate=_EMBEDDING_RATE, l1=_L1)
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "embeddings"])
        model.compile(optimizer=optimizer, loss=self._of_labels(loss))
        return model, schedule

    def keep(self, model: EncodedScorer, schedule: SoftmaxFirst) -> None:
        """Keeps a compiled model and its callback, which nothing else uses, for later trainings with the same step."""
        if settings := self._settings_of_step(model):
            _KEPT[settings] = model, schedule.loss
            if len(_KEPT) > _MOST_KEPT:
                _KEPT.pop(next(iter(_KEPT)), None)

    def _settings_of_step(self, model: EncodedScorer) -> str:
        """Returns all that a traced step depends on, or "" if this is not known."""
        p, loss, default = self._params, self.loss_of_one_label, tf.distribute.get_strategy()
        known = _keras.IS_KERAS_3 and isinstance(model, models.FeedForwardScorer) and isinstance(p["loss"], str)
        # A loss that draws numbers draws the same ones only in its first training.
        if not known or "seed" in loss.get_config() or model.distribute_strategy is not default:
            return ""
        chosen = {name: p[name] for name in ("loss", "label_aggregation", "weight_decay", *self._loss_options)}
        chosen |= {"label_weights": self.label_weights, "softmax_first": bool(p["softmax_epochs"])}
        config = {name: value for name, value in model.get_config().items() if name not in ("name", "seed")}
        try:
            return json.dumps([config, model.num_features, chosen, tf.keras.mixed_precision.global_policy().name])
        except TypeError:  # a loss with functions or variables
            return ""

    def validation(
        self,
        valid: tf.data.Dataset,
        further_metrics: Sequence[tf.keras.metrics.Metric],
        folder: Path | None,
        *,
        only_shows: bool,
    ) -> SelectedEpoch:
        """Returns the validation that selects the epoch, or shows it, by trec_eval's NDCG or another metric."""
        loss, select_by = self.loss_of_one_label, self._params["select_by"]
        made = [metrics.of_trec_eval("ndcg")]
        # The programs of the smooth metric take longer to compile than small tables to train.
        if isinstance(loss, losses.MeasureLoss) and (not only_shows or select_by == "smooth"):
            of_loss = {"no_relevant": "skip", "ragged": loss.ragged, "name": loss.name.removesuffix("_loss")}
            made.append(metrics.MeasureMetric(loss.measure, ranking=loss.ranking, **of_loss))
        if select_by not in ("smooth", "last", "ndcg"):
            made.append(metrics.of_trec_eval(select_by))
        place = 0 if select_by in ("ndcg", "last") else len(made) - 1
        made += further_metrics
        if self.label_weights is not None:
            made = [metrics.MultiObjectiveMetric(metric, weights=self.label_weights) for metric in made]
        options: dict[str, Any] = {"monitor": made[place].name, "patience": self._params["patience"]}
        options["path"] = None if folder is None else folder / "best.keras"
        mode = "last" if only_shows or select_by == "last" else "max"
        return SelectedEpoch(valid, made, mode=mode, **options)
