"""The training of feed-forward rankers: settings, and what they define."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from tfr_smooth import _arguments, _keras, losses, metrics, models
from tfr_smooth.models.feed_forward import checked_arguments
from tfr_smooth.training.cluster import is_chief
from tfr_smooth.training.progress import ProgressLog
from tfr_smooth.training.trainer import train
from tfr_smooth.training.validation import Evaluation, ExactValidation
from tfr_smooth.training.warm_start import WarmStart, WarmStartLoss

SELECT_BY = ("smooth", "ndcg")
LABEL_AGGREGATIONS = ("sum", "stochastic")
# Arguments of `Ranker` by the name of a recipe. The default one was selected on validation queries (docs/results.md),
# the other one is the SmoothI paper's.
RECIPES: dict[str, dict[str, Any]] = {
    "default": {
        "members": 8,
        "hidden": (64,),
        "epochs": 12,
        "learning_rate": 0.006,
        "schedule": "cosine",
        "warm_start": 2 / 3,
        "batch_size": 32,
        "normalization": "quantiles",
        "batch_norm": False,
        "dropout": 0.2,
        "weight_decay": 0.3,
    },
    "paper": {
        "members": 1,
        "hidden": (1024,),
        "epochs": 50,
        "learning_rate": 0.001,
        "schedule": "constant",
        "warm_start": 0.0,
        "batch_size": 128,
        "normalization": None,
        "batch_norm": True,
        "dropout": 0.0,
        "weight_decay": 0.0,
    },
}
SCHEDULES = ("cosine", "constant")
# A variable holds the learning rate, and others the state of the random numbers.
_NOT_IN_GRAPH = ("epochs", "learning_rate", "schedule", "batch_size", "select_by", "patience", "seed", "verbose")


def graph_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that shape the graphs of training; runs with equal ones in one process share the graphs.

    Args:
      settings: Settings of a `Recipe` by name, and others.

    Returns:
      All but those that change no graph.

    Example:
      >>> from tfr_smooth.training.recipe import graph_settings
      >>> graph_settings({"dropout": 0.5, "learning_rate": 0.01, "seed": 3})
      {'dropout': 0.5}
    """
    return {name: value for name, value in settings.items() if name not in _NOT_IN_GRAPH}


class Trained(NamedTuple):
    """A trained scorer.

    Attributes:
      scorer: The model with the weights of the best epoch, or of the last epoch without validation.
      history: The training loss and the validation metrics of each epoch, by name.
      best_epoch: Index of the best epoch; None without validation, or if the metric was always NaN.

    Example:
      >>> import tfr_smooth
      >>> scorer = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> tfr_smooth.training.Trained(scorer, {"loss": [0.5, 0.4]}, best_epoch=None).history["loss"][-1]
      0.4
    """

    scorer: models.Scorer
    history: dict[str, list[float]]
    best_epoch: int | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings of the training of a feed-forward ranker, which `Ranker` documents.

    Args:
      loss: The name of a loss for `losses.get`, or a Keras loss.
      loss_options: Hyperparameters of a loss given by its name.
      label_aggregation: "sum" or "stochastic"; see `Ranker`.
      label_weights: The weights of labels [batch, list, objectives] of the validation batches and, for "sum", of the
        training batches. None for labels [batch, list].
      members: Networks whose scores are averaged, >= 1.
      hidden: Widths of the hidden layers, or the name of an architecture of `models.FeedForwardScorer`.
      epochs: Passes over the training queries, >= 1.
      learning_rate: Adam's learning rate, > 0.
      schedule: "cosine" or "constant".
      warm_start: Fraction of the epochs on the softmax loss, in [0, 1).
      batch_size: Queries per step, >= 1.
      normalization: "quantiles", "standardize", "min_max", "log1p" or None.
      batch_norm: Whether to use batch normalization.
      dropout: Dropout rate of the hidden units, in [0, 1).
      weight_decay: AdamW's weight decay of the kernels, >= 0.
      select_by: The validation metric that selects the epoch: "smooth" or "ndcg".
      patience: Epochs without improvement, >= 1, after which training stops, or None.
      seed: Seed of the weights and of dropout, >= 0.
      verbose: Whether to print the progress.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> inputs = {"features": tf.random.normal([8, 5, 3]), "mask": tf.ones([8, 5], tf.bool)}
      >>> lists = tf.data.Dataset.from_tensors((inputs, tf.tile([[2.0, 1.0, 0.0, 0.0, 0.0]], [8, 1])))
      >>> recipe = tfr_smooth.training.Recipe(hidden=[4], members=1, epochs=2, verbose=False)
      >>> trained = recipe.train(lambda finished: lists, lists)
      >>> len(trained.history["loss"]), trained.best_epoch
      (2, None)
    """

    loss: str | tf.keras.losses.Loss = "smoothi_ndcg"
    loss_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    label_aggregation: str = "sum"
    label_weights: Sequence[float] | None = None
    members: int = 8
    hidden: Sequence[int] | str = (64,)
    epochs: int = 12
    learning_rate: float = 0.006
    schedule: str = "cosine"
    warm_start: float = 2 / 3
    batch_size: int = 32
    normalization: str | None = "quantiles"
    batch_norm: bool = False
    dropout: float = 0.2
    weight_decay: float = 0.3
    select_by: str = "smooth"
    patience: int | None = None
    seed: int = 0
    verbose: bool = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("members", "epochs", "batch_size"):
            _arguments.integer(name, getattr(self, name), least=1)
        _arguments.real("learning_rate", self.learning_rate, above=0.0)
        if self.weight_decay != 0.0:
            _arguments.real("weight_decay", self.weight_decay, above=0.0)
        if self.warm_start != 0.0:
            _arguments.real("warm_start", self.warm_start, above=0.0, below=1.0)
        _arguments.choice("schedule", self.schedule, SCHEDULES)
        _arguments.choice("label_aggregation", self.label_aggregation, LABEL_AGGREGATIONS)
        _arguments.choice("select_by", self.select_by, SELECT_BY)
        _arguments.integer_or_none("patience", self.patience, least=1)
        _arguments.integer("seed", self.seed, least=0)
        _arguments.boolean("verbose", self.verbose)
        self.make_loss()
        # No scorer: its dropout creates variables, and clusters must be configured before.
        checked_arguments(**self._of_scorer())

    def make_loss(self) -> tf.keras.losses.Loss:
        """Returns the loss after the warm start."""
        return self._of_labels(self._loss_of_one_label())

    def _warm_start_loss(self) -> WarmStartLoss | None:
        """Returns the loss with its warm start; None if there is none, as for losses of Keras and for softmax."""
        loss = self._loss_of_one_label()
        if not self.warm_start or type(loss) is losses.SoftmaxLoss or not isinstance(loss, losses.RankingLoss):
            return None
        return WarmStartLoss(loss)

    def _of_labels(self, loss: tf.keras.losses.Loss) -> tf.keras.losses.Loss:
        if self.label_weights is None or self.label_aggregation == "stochastic":
            return loss
        if not isinstance(loss, losses.RankingLoss):
            raise ValueError(f"`loss` must be a `losses.RankingLoss` for several labels, got {loss!r}.")
        return losses.MultiObjectiveLoss(loss, weights=self.label_weights)

    def _loss_of_one_label(self) -> tf.keras.losses.Loss:
        if isinstance(self.loss, str):
            known = losses.hyperparameters(_arguments.name("loss", self.loss, losses.NAMES))
            for name in self.loss_options:
                if name not in known:
                    expected = f"an argument of Ranker or a hyperparameter of {self.loss}, such as {', '.join(known)}"
                    raise ValueError(f"`{name}` must be {expected}, got {self.loss_options[name]!r}.")
            return losses.get(self.loss, **self.loss_options)
        if self.loss_options:
            raise ValueError(f"`loss` must be a name to take {sorted(self.loss_options)[0]!r}, got {self.loss!r}.")
        return _arguments.instance("loss", self.loss, tf.keras.losses.Loss)

    def make_scorer(self) -> models.FeedForwardScorer:
        """Returns a scorer with initial weights."""
        return models.FeedForwardScorer(**self._of_scorer())

    def _of_scorer(self) -> dict[str, Any]:
        names = ("hidden", "normalization", "batch_norm", "dropout", "members", "seed")
        return {name: getattr(self, name) for name in names}

    def _make_optimizer(self) -> tf.keras.optimizers.Optimizer:
        if not self.weight_decay:
            return tf.keras.optimizers.Adam(self.learning_rate)
        optimizer = tf.keras.optimizers.AdamW(self.learning_rate, weight_decay=self.weight_decay)
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
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
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if not isinstance(self.loss, str):
            values["loss"] = tf.keras.losses.serialize(self.loss)
        del values["verbose"]
        if self.schedule == "constant" and not self.warm_start:
            del values["epochs"]  # more epochs continue a training run
        return json.loads(json.dumps(values, default=str))

    def _compiled(
        self, num_features: int, further_metrics: Sequence[tf.keras.metrics.Metric], strategy: tf.distribute.Strategy
    ) -> _Compiled:
        """Returns a new compiled model, or the idle one if its graphs are those of this recipe."""
        with strategy.scope():
            # Keras 2 cannot reset the state of dropout.
            reusable = _keras.IS_KERAS_3 and not tf.distribute.has_strategy()
        policy = tf.keras.mixed_precision.global_policy().name
        graph = [graph_settings(vars(self)), num_features, policy, list(further_metrics)]
        key = json.dumps(graph, sort_keys=True, default=id) if reusable else None
        with contextlib.suppress(IndexError):
            idle = _IDLE.pop()
            if idle.key == key:
                return idle
        with strategy.scope():
            model, warm_start = self.make_scorer(), self._warm_start_loss()
            loss = self.make_loss() if warm_start is None else self._of_labels(warm_start)
            model.compile(optimizer=self._make_optimizer(), loss=loss)
            model.build([None, None, num_features])
        evaluation, initial = Evaluation(model, [*self._make_metrics(), *self.of_all_labels(further_metrics)]), []
        if reusable:
            model.optimizer.build(model.trainable_variables)
            initial = [variable.numpy() for variable in model.optimizer.variables]
        return _Compiled(key, self, evaluation, warm_start, initial)

    def train(
        self,
        dataset_fn: Callable[[int], tf.data.Dataset],
        one_epoch: tf.data.Dataset,
        valid: tf.data.Dataset | None = None,
        *,
        further_metrics: Sequence[tf.keras.metrics.Metric] = (),
        steps_per_epoch: int | None = None,
        strategy: tf.distribute.Strategy | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        callbacks: Sequence[tf.keras.callbacks.Callback] = (),
    ) -> Trained:
        """Trains a scorer.

        Args:
          dataset_fn: A function from the number of finished epochs to the batches of all remaining ones.
          one_epoch: The batches of one epoch, for the statistics of the features.
          valid: The validation batches. None uses the last epoch.
          further_metrics: Further metrics of the validation batches.
          steps_per_epoch: Batches per epoch. None if each iteration of the dataset is one epoch.
          strategy: A `tf.distribute` strategy. None trains on one device.
          checkpoint_dir: Directory of checkpoints, `log.csv` and `best.keras`; training resumes from it. None for none.
          settings: Further values, as JSON values, which a resumed training run must have in common.
          callbacks: Further Keras callbacks.

        Returns:
          The trained scorer, outside of the strategy's scope, so that any process can read it.
        """
        strategy = strategy or tf.distribute.get_strategy()
        num_features = one_epoch.element_spec[0]["features"].shape[-1]
        folder = None if checkpoint_dir is None else Path(checkpoint_dir)
        scorer = self.make_scorer()
        scorer.build([None, None, num_features])
        compiled = self._compiled(num_features, further_metrics, strategy)
        if compiled.key is not None:
            compiled.restart(scorer, self.learning_rate)
        model, used = compiled.evaluation.model, compiled.evaluation.metrics
        validation = None
        if valid is not None:
            own = used[: len(used) - len(further_metrics)]
            validation = ExactValidation(
                valid,
                used,
                monitor=own[-1 if self.select_by == "smooth" else 0].name,
                path=None if folder is None else folder / "best.keras",
                patience=self.patience,
            )
            validation.evaluation = compiled.evaluation
        history = tf.keras.callbacks.History()
        schedule = WarmStart(
            self.learning_rate,
            epochs=self.epochs,
            loss=compiled.warm_start,
            warm_epochs=round(self.warm_start * self.epochs),
            constant=self.schedule == "constant",
        )
        shown: list[tf.keras.callbacks.Callback] = [schedule, history, *callbacks]
        if self.verbose:
            shown.append(ProgressLog(None if folder is None or not is_chief(strategy) else folder / "log.csv"))

        def remaining(finished: int) -> tf.data.Dataset:
            if finished and self.verbose:
                print(f"Resuming after {finished} finished epochs in {folder}", flush=True)
            return dataset_fn(finished)

        train(
            model,
            remaining,
            epochs=self.epochs,
            steps_per_epoch=steps_per_epoch,
            validation=validation,
            checkpoint_dir=folder,
            settings={**self.identity(), **(settings or {})},
            prepare=lambda: model.adapt(one_epoch),
            callbacks=shown,
        )
        scorer.set_weights(model.get_weights())
        if compiled.key is not None:
            _IDLE.append(compiled)
        if validation is None:
            return Trained(scorer, history.history, None)
        return Trained(scorer, validation.history, validation.best_epoch)


class _Compiled(NamedTuple):
    """A compiled model and its validation, with what TensorFlow traced for them.

    Attributes:
      key: What shapes the graphs. None if the model cannot be used again.
      recipe: The recipe. It keeps objects alive whose ids are in the key.
      evaluation: The model and its metrics.
      warm_start: The loss with a warm start. None for none.
      initial: The initial values of the variables of the optimizer.
    """

    key: str | None
    recipe: Recipe
    evaluation: Evaluation
    warm_start: WarmStartLoss | None
    initial: list[Any]

    def restart(self, scorer: models.FeedForwardScorer, learning_rate: float) -> None:
        """Sets all variables to those of a new scorer and a new optimizer."""
        model, optimizer = self.evaluation.model, self.evaluation.model.optimizer
        # `variables` includes the state of the random numbers.
        values = [*(variable.numpy() for variable in scorer.variables), *self.initial]
        for variable, value in zip([*model.variables, *optimizer.variables], values, strict=True):
            variable.assign(value)
        optimizer.learning_rate = learning_rate


# The model of the last training run. A run takes it from here and returns it at its end, unless it fails.
_IDLE: collections.deque[_Compiled] = collections.deque(maxlen=1)
