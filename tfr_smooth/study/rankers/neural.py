"""Neural rankers: a feed-forward scorer trained with a loss."""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import losses, metrics, models, rankings
from tfr_smooth._compiled import padded_length
from tfr_smooth.data.batches import prefetched, seeded_epochs
from tfr_smooth.study.folds import Fold, padded
from tfr_smooth.study.rankers.base import Fitted, Ranker
from tfr_smooth.study.rankers.ridge import fit_ridge
from tfr_smooth.study.recipe import DEFAULTS, Recipe, split_settings
from tfr_smooth.study.scorer import DocumentScorer

# Settings that do not change the graph: jobs that differ only in these share it.
_NOT_IN_GRAPH = (
    "learning_rate",
    "epochs",
    "batch_size",
    "normalization",
    "select_by",
    "schedule",
    "patience",
    "members",
)
_LEARNING_RATES = (0.01, 0.001)


class Neural(Ranker):
    """A `models.FeedForwardScorer` trained with a loss, as in `examples/train_letor.py`.

    The settings are the fields of `Recipe` and the hyperparameters of the loss. A study searches the learning rate and
    the first hyperparameter that the papers search for the loss.

    Args:
      loss: Name of the loss.
    """

    randomized = True
    is_neural = True

    def __init__(self, loss: str) -> None:
        self._loss = loss

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """The settings with their default values."""
        return {**DEFAULTS, **losses.hyperparameters(self._loss)}

    def grid(self) -> dict[str, tuple[Any, ...]]:
        """Returns the values that a study searches."""
        searched = dict(list(losses.TABLE[self._loss].searched.items())[:1])
        return {**searched, "learning_rate": _LEARNING_RATES}

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises a `ValueError` if the ranker does not have these settings."""
        super().check(settings)
        recipe, arguments = split_settings(settings)
        models.FeedForwardScorer(hidden=recipe.hidden)
        _loss(self._loss, arguments)

    def canonical(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings without the recipe's defaults, so that new fields of `Recipe` change no old result."""
        recipe, arguments = split_settings(settings)
        return {**recipe.changes(), **arguments}

    def affinity(self, settings: Mapping[str, Any]) -> Any:
        """Returns the settings that change the graph."""
        return {name: value for name, value in self.canonical(settings).items() if name not in _NOT_IN_GRAPH}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Trains the network."""
        recipe, _ = split_settings(settings)
        graph = json.dumps(self.affinity(settings), sort_keys=True)
        trainer = _trainer(self._loss, graph, fold.parts["train"].num_features)
        if recipe.members == 1:
            return trainer.fit(fold, recipe, seed)
        members = [trainer.fit(fold, recipe, seed * recipe.members + member) for member in range(recipe.members)]
        valid, test = (np.mean([getattr(member, part) for member in members], axis=0) for part in ("valid", "test"))
        return Fitted(valid, test, details={"members": [member.details for member in members]})


def _loss(name: str, arguments: Mapping[str, Any]) -> losses.RankingLoss:
    """Returns a loss; a discount {"alpha": x} is a `ShallowDiscount`."""
    discount = arguments.get("discount")
    if isinstance(discount, Mapping):
        arguments = {**arguments, "discount": rankings.ShallowDiscount(**discount)}
    return losses.get(name, **arguments)


@functools.lru_cache(maxsize=1)
def _trainer(loss: str, graph: str, num_features: int) -> _Trainer:
    """Returns the trainer of the jobs that share a graph."""
    recipe, arguments = split_settings(json.loads(graph))
    return _Trainer(loss, arguments, recipe, num_features)


class _Lists(NamedTuple):
    """Queries on the device: features [documents, F]; document indices and labels [queries, list], -1 for padding."""

    features: tf.Tensor
    documents: tf.Tensor
    labels: tf.Tensor


_QUERIES = tf.TensorSpec([None], tf.int64)
_SEED = tf.TensorSpec([2], tf.int32)


class _Trainer:
    """Trains any number of models with the same graph.

    Args:
      loss: Name of the loss.
      arguments: Its hyperparameters.
      recipe: The recipe; only the settings that change the graph are used.
      num_features: Number of features.
    """

    def __init__(self, loss: str, arguments: Mapping[str, Any], recipe: Recipe, num_features: int) -> None:
        self._loss = _loss(loss, arguments)
        self._mixture = [(losses.get(name), weight) for name, weight in recipe.mixture.items()]
        self._average = recipe.average_weights
        self._scorer = DocumentScorer(recipe, num_features)
        self._averages = [tf.Variable(variable, trainable=False) for variable in self._scorer.variables]
        self._metrics = {"ndcg": metrics.NDCGMetric(gain="linear")}
        if isinstance(self._loss, losses.MeasureLoss):
            self._metrics["smooth"] = metrics.MeanOverLists(self._loss.ranking, self._loss.measure, no_relevant="skip")
            # The same metric of the exact ranking, which the smooth metric approximates.
            self._metrics["exact"] = metrics.MeanOverLists(
                rankings.ExactRanking(), self._loss.measure, no_relevant="skip"
            )
        self._optimizer = _optimizer(recipe)
        self._optimizer.build(self._scorer.trainable_variables)
        # Created here, so that the graphs are freed with the trainer.
        lists = _Lists(
            tf.TensorSpec([None, num_features]), tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None])
        )
        self._step = tf.function(self._train, input_signature=[lists, _QUERIES, _SEED], autograph=False)
        self._evaluation = tf.function(self._evaluate, input_signature=[lists, _QUERIES], autograph=False)

    def fit(self, fold: Fold, recipe: Recipe, seed: int) -> Fitted:
        """Trains a model and returns the scores of its best epoch."""
        lists = {part: self._lists(fold, part, recipe.normalization) for part in fold.parts}
        self._restart(fold, recipe, seed)
        size = len(lists["train"].labels)
        batches = _batches(size, recipe, seed)
        steps = math.ceil(size / recipe.batch_size)
        monitor = recipe.select_by if "smooth" in self._metrics else "ndcg"
        best_epoch, best_value, best = -1, -math.inf, None
        curves: dict[str, list[float]] = {}
        for epoch in range(recipe.epochs):
            start = time.process_time()
            total = tf.constant(0.0)
            for step in range(epoch * steps, (epoch + 1) * steps):
                self._optimizer.learning_rate = _learning_rate(recipe, step / (recipe.epochs * steps))
                queries = next(batches)
                total += self._step(lists["train"], queries, tf.constant([seed, step])) * len(queries)
            row = {"loss": float(total) / size, "train_seconds": time.process_time() - start}
            with _Averaged(self._scorer.variables, self._averages if self._average else []):
                valid, values = self._scores(lists["valid"], recipe.batch_size)
                row |= {f"valid_{name}": value for name, value in values.items()}
                if values[monitor] > best_value:
                    best_epoch, best_value = epoch, values[monitor]
                    best = valid, [variable.numpy() for variable in self._scorer.variables]
            for name, value in row.items():
                curves.setdefault(name, []).append(value)
            if recipe.patience is not None and epoch - best_epoch >= recipe.patience:
                break
        if best is None:  # NaN in every epoch
            valid, test = (np.zeros(len(fold.parts[part].labels), np.float32) for part in ("valid", "test"))
            return Fitted(valid, test, curves, {"best_epoch": None})
        valid, weights = best
        _assign(self._scorer.variables, weights)
        test, _ = self._scores(lists["test"], recipe.batch_size)
        return Fitted(valid, test, curves, {"best_epoch": best_epoch, "monitor": monitor})

    def _lists(self, fold: Fold, part: str, normalization: str) -> _Lists:
        features = fold.features(normalization)[part]
        return _Lists(*map(tf.constant, (features, *padded(fold.parts[part], padded_length(fold.longest)))))

    def _restart(self, fold: Fold, recipe: Recipe, seed: int) -> None:
        """Initializes the weights and resets the optimizer and the averages."""
        regression = None
        if recipe.linear_path is not None:
            train = fold.features(recipe.normalization)["train"]
            regression = fit_ridge(train, fold.parts["train"].labels)
        self._scorer.restart(seed, regression)
        _assign(self._averages, self._scorer.variables)
        for variable in self._optimizer.variables:
            variable.assign(tf.zeros_like(variable))

    def _padded_scores(self, lists: _Lists, queries: tf.Tensor, seed: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the labels and scores of some queries, [batch, list]; `seed` is None except for training steps."""
        documents = tf.gather(lists.documents, queries)
        real = documents >= 0
        scores = self._scorer(tf.gather(lists.features, tf.boolean_mask(documents, real)), real, seed)
        padding = tf.fill(tf.shape(documents), models.PADDING_SCORE)
        return tf.gather(lists.labels, queries), tf.tensor_scatter_nd_update(padding, tf.where(real), scores)

    def _train(self, lists: _Lists, queries: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            labels, scores = self._padded_scores(lists, queries, seed)
            loss = self._loss(labels, scores)
            for other, weight in self._mixture:
                loss += weight * other(labels, scores)
        variables = self._scorer.trainable_variables
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        if self._average:
            for average, variable in zip(self._averages, self._scorer.variables, strict=True):
                average.assign(self._average * average + (1.0 - self._average) * tf.convert_to_tensor(variable))
        return loss

    def _evaluate(self, lists: _Lists, queries: tf.Tensor) -> tf.Tensor:
        labels, scores = self._padded_scores(lists, queries, None)
        for metric in self._metrics.values():
            metric.update_state(labels, scores)
        return tf.boolean_mask(scores, labels >= 0.0)

    def _scores(self, lists: _Lists, batch_size: int) -> tuple[np.ndarray, dict[str, float]]:
        """Returns the scores of all documents, [documents], and the metric values."""
        for metric in self._metrics.values():
            metric.reset_state()
        size = len(lists.labels)
        starts = range(0, size, batch_size)
        parts = [
            self._evaluation(lists, tf.range(start, min(start + batch_size, size), dtype=tf.int64)) for start in starts
        ]
        values = {name: float(metric.result()) for name, metric in self._metrics.items()}
        return tf.concat(parts, axis=0).numpy(), values


class _Averaged:
    """Context in which the variables have the values of their averages, if any."""

    def __init__(self, variables: Sequence[Any], averages: Sequence[Any]) -> None:
        self._variables, self._averages = variables, averages

    def __enter__(self) -> None:
        if self._averages:
            self._own = [variable.numpy() for variable in self._variables]
            _assign(self._variables, self._averages)

    def __exit__(self, *_: object) -> None:
        if self._averages:
            _assign(self._variables, self._own)


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(tf.convert_to_tensor(value))


def _batches(size: int, recipe: Recipe, seed: int) -> Any:
    """Yields the indices of the queries of each batch, in the order of `data.read_letor`."""
    places = tf.data.Dataset.range(size)
    batches = seeded_epochs(places, size, seed, 0, recipe.epochs, lambda epoch, _: epoch.batch(recipe.batch_size))
    return iter(prefetched(batches))


def _learning_rate(recipe: Recipe, progress: float) -> float:
    if recipe.schedule == "cosine":
        return recipe.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))
    return recipe.learning_rate


def _optimizer(recipe: Recipe) -> tf.keras.optimizers.Optimizer:
    if not recipe.weight_decay:
        return tf.keras.optimizers.Adam()
    optimizer = tf.keras.optimizers.AdamW(weight_decay=recipe.weight_decay)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer
