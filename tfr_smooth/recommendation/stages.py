"""The training of a `Recommender`: a stage with the softmax loss, and a stage with its own loss."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, losses, training
from tfr_smooth.recommendation.batches import candidate_batches, dense_labels, user_batches
from tfr_smooth.recommendation.best_items import BestItemsLoss
from tfr_smooth.recommendation.evaluation import evaluate
from tfr_smooth.recommendation.factors import CatalogFactors, check_given_with
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.propagation import PropagatedFactors


class Stage(NamedTuple):
    """A stage of the training; `prefix` is that of its arguments."""

    prefix: str
    loss: losses.RankingLoss
    epochs: int
    learning_rate: float
    batch_size: int

    def checked(self) -> Stage:
        """Returns the stage if its numbers are valid."""
        start = f"{self.prefix}_" if self.prefix else ""
        _arguments.integer(f"{start}epochs", self.epochs, least=0 if start else 1)
        _arguments.real(f"{start}learning_rate", self.learning_rate, above=0.0)
        _arguments.integer(f"{start}batch_size", self.batch_size, least=1)
        return self


@dataclasses.dataclass(frozen=True)
class Training:
    """The settings of a training, which are those of `Recommender`.

    Args:
      stages: The stages with at least one epoch.
      factors: Arguments of `CatalogFactors`.
      encoders: Further ones, by name; None for factors.
      propagation_layers: See `Recommender`, like the others.
      negatives: The number of items, or None.
      candidates: The number of items, or None.
      patience: The number of epochs.
      verbose: Whether to print the progress.
    """

    stages: Sequence[Stage]
    factors: dict[str, Any]
    encoders: dict[str, tf.keras.layers.Layer | None]
    propagation_layers: int
    negatives: int | None
    candidates: int | None
    patience: int
    verbose: bool

    def run(
        self,
        train: Interactions,
        validation: Interactions | None,
        features: dict[str, Any],
        strategy: tf.distribute.Strategy,
        checkpoint_dir: str | os.PathLike[str] | None,
        epochs: Sequence[int] | None = None,
    ) -> tuple[CatalogFactors, list[Any]]:
        """Trains a model.

        Args:
          train: The interactions to train on.
          validation: Those that choose the epochs, or None.
          features: The features of "users" and "items", or None.
          strategy: A `tf.distribute` strategy.
          checkpoint_dir: Directory of checkpoints, or None.
          epochs: The numbers of epochs of the stages without a validation.

        Returns:
          The model, outside of the strategy's scope, so that any process can use it, and the `training.Validation` of
          each stage.
        """
        with strategy.scope():
            model = self._model(train, features)
        watched = []
        for place, stage in enumerate(self.stages):
            stage = stage if epochs is None else stage._replace(epochs=epochs[place])
            watched.append(self._run_part(model, stage, train, validation, checkpoint_dir))
        if strategy is not tf.distribute.get_strategy():
            trained = self._model(train, features)
            trained.set_weights(model.get_weights())
            model = trained
        return _without_graph(model), [each for each in watched if each is not None]

    def _model(self, train: Interactions, features: dict[str, Any]) -> CatalogFactors:
        columns = {}
        for what, values in features.items():
            name, encoder = f"{what[:-1]}_features", f"{what[:-1]}_encoder"
            shape = None if values is None else np.shape(values)
            check_given_with(name, shape, encoder, self.encoders[encoder])
            # `set_features` checks the shape.
            columns[f"num_{name}"] = None if shape is None else max(1, math.prod(shape[1:]))
        options: dict[str, Any] = {**self.factors, **self.encoders, **columns}
        if self.propagation_layers:
            model: CatalogFactors = PropagatedFactors(train, self.propagation_layers, **options)
        else:
            model = CatalogFactors(num_users=train.num_users, num_items=train.num_items, **options)
        model.set_features(**features)
        model(tf.zeros([1], tf.int32))
        return model

    def _run_part(
        self,
        model: CatalogFactors,
        stage: Stage,
        train: Interactions,
        validation: Interactions | None,
        checkpoint_dir: str | os.PathLike[str] | None,
    ) -> training.Validation | None:
        seed, is_warm_start = self.factors["seed"], stage.prefix != ""
        negatives, loss = self.negatives, stage.loss
        if self.candidates is not None and not is_warm_start:
            negatives, loss = None, BestItemsLoss(loss, self.candidates)
        with model.distribute_strategy.scope():
            # The softmax of a catalog is bound by memory, and XLA has fewer arrays. Encoders may not support XLA, the
            # product with a graph does not, samples would need a program for each number of items, and replicas cannot
            # share a program.
            is_table = not any(self.encoders.values()) and not self.propagation_layers
            is_compiled = is_warm_start and negatives is None and is_table
            is_compiled = is_compiled and _compiled.has_xla() and not tf.distribute.has_strategy()
            model.compile(tf.keras.optimizers.Adam(stage.learning_rate), loss, jit_compile=is_compiled)
        watched = None
        if validation is not None:
            watched = training.Validation(
                lambda model: {"ndcg_cut_20": _quality(model, train, validation)},
                monitor="ndcg_cut_20",
                patience=self.patience,
            )

        def batches(finished: int) -> tf.data.Dataset:
            remaining = stage.epochs - finished
            options = {"batch_size": stage.batch_size, "seed": seed, "num_epochs": remaining, "first_epoch": finished}
            if negatives is None:
                dataset = user_batches(train, **options).map(
                    lambda users, items: (users, dense_labels(items, train.num_items))
                )
            else:
                dataset = candidate_batches(train, negatives=negatives, **options)
            return dataset if is_warm_start else dataset.map(_without_offsets)

        name = f"{stage.prefix or 'loss'}_{'all' if validation is None else 'held_out'}"
        training.train(
            model,
            batches,
            epochs=stage.epochs,
            steps_per_epoch=-(-int((train.items_per_user > 0).sum()) // stage.batch_size),
            validation=watched,
            checkpoint_dir=None if checkpoint_dir is None else os.path.join(checkpoint_dir, name),
            settings={
                **model.get_config(),
                "name": None,
                "loss": losses.serialize(stage.loss),
                "learning_rate": stage.learning_rate,
                "negatives": negatives,
                "candidates": None if is_warm_start else self.candidates,
            },
            callbacks=[training.ProgressLog()] if self.verbose else [],
        )
        return watched


def _quality(model: CatalogFactors, train: Interactions, validation: Interactions) -> float:
    result = evaluate(_without_graph(model).catalog_scores, validation, seen=train, measures="ndcg_cut_20")
    return result.means["ndcg_cut_20"].mean


def _without_graph(model: CatalogFactors) -> CatalogFactors:
    return model.without_graph() if isinstance(model, PropagatedFactors) else model


def _without_offsets(inputs: Any, labels: tf.Tensor) -> tuple[Any, ...]:
    """Offsets are for sums over items, not for their ranks."""
    return (inputs | {"offsets": tf.zeros_like(labels)} if isinstance(inputs, dict) else inputs), labels
