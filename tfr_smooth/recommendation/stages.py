"""The training of a `Recommender`: a stage with the softmax loss, and a stage with its own loss."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _keras, losses, measures, training
from tfr_smooth._estimator import check_shared, loss_of, settings_of
from tfr_smooth.recommendation import baseline_scores
from tfr_smooth.recommendation.baseline_scores import BaselineScores, Counts
from tfr_smooth.recommendation.batches import (
    SequenceBatches,
    candidate_batches,
    dense_labels,
    expected_candidates,
    user_batches,
)
from tfr_smooth.recommendation.catalog_losses import BestItemsLoss, CompiledLoss
from tfr_smooth.recommendation.catalog_sequences import CatalogSequences
from tfr_smooth.recommendation.evaluation import evaluate
from tfr_smooth.recommendation.factors import SIMILARITIES, CatalogFactors, CatalogModel
from tfr_smooth.recommendation.fit_data import FitData
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.sequences import SequenceEncoder
from tfr_smooth.recommendation.tables import Table, TableEncoder
from tfr_smooth.training.validation import selecting

# Hyperparameters of the default loss: chosen on a tenth of the training items of MovieLens-1M.
_SMOOTHI = {"alpha": 3.0, "delta": 0.01, "topn": 50}
_LEAST = {"dim": 1, "softmax_epochs": 0, "epochs": 1, "softmax_batch_size": 1, "history_length": 1, "hard_negatives": 1}
# The part of the catalog that candidates may be: an item costs twice as much among them as in a compiled step of all.
_MOST_CANDIDATES = 0.4
# Users from which a step changes only those of its batch. With fewer, dense steps cost little and are better: NDCG@20
# of held-out items is .001 to .002 higher on MovieLens-1M, and .0008 on Gowalla.
_SPARSE_USERS = 100_000
_OF_MODEL = ("similarity", "temperature", "item_bias", "seed")
# The most epochs of the stages that continue from a model without held-out items. Not tuned.
_UPDATE_EPOCHS = {"softmax_": 5, "": 1}
# Users who select the epochs, at most: with more, the validation takes more than a fifth of the time of training.
_VALIDATED = 5000
# A model to continue from, and the places of its users and of its items; None for new factors.
Start: TypeAlias = "tuple[CatalogModel, np.ndarray, np.ndarray] | None"


class Trained(NamedTuple):
    """A trained model, outside of the strategy's scope, so that any process can use it.

    Attributes:
      model: The model.
      history: The training loss and the validation metrics of each epoch of all stages, by name.
      epochs: The number of epochs until the selected one, of each stage; empty without validation.
      best_epoch: The selected epoch of the history, from 1 on; None without validation.
    """

    model: CatalogModel
    history: dict[str, list[float]]
    epochs: list[int]
    best_epoch: int | None


class RecommenderTraining:
    """What the arguments of a `Recommender` define; a subclass has the kind of users.

    Args:
      params: The arguments of the constructor, with the hyperparameters of the loss.
      loss_options: The names of these hyperparameters.

    Attributes:
      defaults: The values of arguments that are None.
      default_loss: The loss "auto".
      held_out_by: How interactions are held out, as of `hold_out`.

    Raises:
      ValueError: If an argument is out of its range.
    """

    defaults: ClassVar[Mapping[str, Any]]
    default_loss: ClassVar[str | None]
    held_out_by: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = baseline_scores.DEFAULTS

    def __init__(self, params: Mapping[str, Any], loss_options: Sequence[str]) -> None:
        params = {**params, **{name: value for name, value in self.defaults.items() if params[name] is None}}
        if params["loss"] == "auto":
            params["loss"] = self.default_loss
        self._params = params
        self._counts = functools.cache(lambda data, train: Counts(train, self._length(train), data.similar))
        for name, least in _LEAST.items():
            _arguments.integer(name, params[name], least=least)
        check_shared(params)
        _arguments.integer_or_none("negatives", params["negatives"], least=1)
        for name in ("temperature", "softmax_learning_rate"):
            _arguments.real(name, params[name], above=0.0)
        _arguments.real("dropout", params["dropout"], least=0.0, below=1.0)
        for name in ("item_bias", "refit", "baselines"):
            _arguments.boolean(name, params[name])
        _arguments.choice("similarity", params["similarity"], SIMILARITIES)
        loss, options = params["loss"], {name: params[name] for name in loss_options}
        defaults = _SMOOTHI if loss == "smoothi_ndcg" else None
        checks: dict[str, Any] = {"kind": losses.RankingLoss, "optional": True}
        self.loss = loss_of("Recommender", loss, options, defaults=defaults, **checks)
        if self.loss is None and params["softmax_epochs"] == 0:
            raise ValueError("`softmax_epochs` must be an integer >= 1 without a loss, got 0.")

    def run(
        self,
        data: FitData,
        *,
        epochs: Sequence[int] | None = None,
        strategy: tf.distribute.Strategy | None,
        checkpoint_dir: str | os.PathLike[str] | None,
        callbacks: Sequence[tf.keras.callbacks.Callback],
    ) -> Trained:
        """Trains a model; the other arguments are those of `Recommender.fit`.

        Args:
          data: The data.
          epochs: The numbers of epochs of the stages, to train again on all interactions. None: those of the arguments,
            of which held-out items may choose earlier ones.
          strategy: The strategy.
          checkpoint_dir: The directory.
          callbacks: Further Keras callbacks.

        Returns:
          The trained model.
        """
        p, start, optimized = self._params, data.start, getattr(self.loss, "measure", None)
        train, validation = (data.train, data.validation) if epochs is None else (data.whole, None)
        if train.weights is not None and isinstance(optimized, measures.BinaryMeasure) and train.weights.min() < 1.0:
            expected = f"weights >= 1 for the loss {self.loss.name!r}, whose relevant items have labels >= 1"
            raise ValueError(f"`interactions` must have {expected}, got {train.weights.min():g}.")
        with (strategy or tf.distribute.get_strategy()).scope():
            model = self._model(data, train, validation is not None)
            if start is not None:
                model.continue_from(*start)
                model.start_new(train, start[1])
        learned = train if data.users is None else train.keeping(data.users[train.pairs()["users"]])
        settings = settings_of(p, data=data.digest)
        history: dict[str, list[float]] = {}
        planned, best_epochs, best_epoch = iter(epochs or ()), [], None
        stages = [("softmax_", losses.SoftmaxLoss()), ("", self.loss)]
        stages = [(prefix, loss) for prefix, loss in stages if loss is not None and p[f"{prefix}epochs"]]
        of = "all interactions" if validation is None else "without held-out interactions"
        for place, (prefix, loss) in enumerate(stages, 1):
            number = next(planned, p[f"{prefix}epochs"])
            if start is not None and validation is None and not epochs:
                number = min(number, _UPDATE_EPOCHS[prefix])
            folder, watched = None, None
            if checkpoint_dir is not None:
                folder = Path(checkpoint_dir, f"{prefix or 'loss_'}{'all' if validation is None else 'held_out'}")
            if validation is not None:
                quality = functools.partial(_quality, train=train, validation=_sample(validation, p["seed"]))
                watched = selecting(p, "ndcg_cut_20", quality, folder)
            batches, steps = self._batches(model, learned, prefix, loss, number)
            logs = training.train(
                model,
                batches,
                epochs=number,
                steps_per_epoch=steps,
                validation=watched,
                checkpoint_dir=folder,
                settings={**settings, "stage_epochs": number},
                callbacks=callbacks,
                verbose=p["verbose"],
                title=f"Stage {place} of {len(stages)}, {of}: {loss.name}, epochs: {number}",
            )
            if watched is not None and watched.best_epoch is not None:
                best_epochs.append(watched.best_epoch)
                best_epoch = len(history.get("loss", [])) + watched.best_epoch
                watched.best_weights = None  # The model has them. They may take gigabytes.
            for name, values in logs.items():
                history.setdefault(name, []).extend(values)
        return Trained(model.renewed(), history, best_epochs, best_epoch)

    def encoders(self, tables: Mapping[str, Table]) -> dict[str, TableEncoder]:
        """Returns new encoders of the tables of "users" and "items", if there are any."""
        p = self._params
        return {what: TableEncoder(table, p["dim"], p["seed"]) for what, table in tables.items()}

    def completed(self, trained: CatalogModel, first: CatalogModel, data: FitData, has_vectors: bool) -> CatalogModel:
        """Returns the trained model with what is added after the training.

        Args:
          trained: The model, trained on `data.learned`.
          first: The model of the training with held-out items, or the same.
          data: The data.
          has_vectors: Whether items without interactions will have vectors.
        """
        if self._params["baselines"]:
            settings = settings_before(data.start, self.settings)
            if data.validation is not None:
                first.set_sequences(data.train)
                of_train = first.catalog_scores, self._counts(data, data.train), data.train
                if settings["order"]:
                    settings = baseline_scores.learned(settings, *of_train, data.validation, seed=self._params["seed"])
                if (measure := self._params["select_by"]) != "last":
                    held_out = {"train": data.train, "validation": _sample(data.validation, self._params["seed"])}
                    quality = functools.partial(_quality, measure=measure, **held_out)
                    settings = baseline_scores.selected(settings, *of_train, quality)
            num_new = int((data.learned.users_per_item == 0).sum()) if has_vectors else 0
            trained = self._with(trained, self._counts(data, data.learned).layer(settings, num_new), data)
        trained.set_sequences(data.whole)
        return trained

    def _length(self, train: Interactions) -> int:
        """Returns the number of the latest items of a user that EASE sees."""
        return train.num_items

    def _with(self, model: Any, baselines: BaselineScores, data: FitData) -> CatalogModel:
        """Returns a new model with baselines."""
        return model.renewed(baselines)

    def _model(self, data: FitData, train: Interactions, is_validated: bool) -> CatalogModel:
        """Returns a new model."""
        raise NotImplementedError

    def _dataset(self, train: Interactions, prefix: str, negatives: int | None, epochs: int) -> Any:
        """Returns a function from the number of finished epochs to the other batches, and the batches per epoch."""
        raise NotImplementedError

    def _of_batches(self, prefix: str) -> dict[str, Any]:
        """Returns the arguments that all batches have."""
        return {"batch_size": self._params[f"{prefix}batch_size"], "seed": self._params["seed"]}

    def _negatives(self, train: Interactions) -> int | None:
        """Returns the number of sampled items of the first stage, or None for the whole catalog."""
        return self._params["negatives"]

    def _batches(self, model: CatalogModel, train: Interactions, prefix: str, loss: Any, epochs: int) -> Any:
        """Compiles the model, and returns what `_dataset` does."""
        p, negatives = self._params, self._negatives(train) if prefix else None
        if not prefix:
            loss = BestItemsLoss(loss, p["hard_negatives"])
        with model.distribute_strategy.scope():
            # The softmax of a catalog is bound by memory, and XLA has fewer arrays. Encoders may not support XLA,
            # samples would need a program for each number of items, and replicas cannot share a program.
            is_compiled = bool(prefix) and negatives is None and model.supports_jit and _compiled.has_xla()
            is_compiled = is_compiled and not tf.distribute.has_strategy()
            users = model.get_layer("users")
            users.is_sparse = model.supports_jit and _keras.IS_KERAS_3 and train.num_users >= _SPARSE_USERS
            optimizer: Any = tf.keras.optimizers.Adam(p[f"{prefix}learning_rate"])
            if users.is_sparse:
                optimizer = training.LazyAdamW(p[f"{prefix}learning_rate"], weight_decay=0.0, by_gap=True)
                optimizer.exclude_from_weight_decay(var_names=[""])
                if is_compiled:  # A program of the whole step would copy the table of users and its moments.
                    loss, is_compiled = CompiledLoss(loss), False
            model.compile(optimizer, loss, jit_compile=is_compiled)
        return self._dataset(train, prefix, negatives, epochs)


class FactorsTraining(RecommenderTraining):
    """The training of users who have factors; the defaults were chosen as those of the loss."""

    defaults = {"dim": 256, "temperature": 0.2, "softmax_learning_rate": 0.01, "softmax_batch_size": 256}
    defaults |= {"batch_size": 64, "hard_negatives": 300}
    default_loss = "smoothi_ndcg"
    held_out_by = "random"

    settings = baseline_scores.OF_FACTORS

    def _with(self, model: Any, baselines: BaselineScores, data: FitData) -> CatalogModel:
        return model.renewed(baselines, data.whole.num_interactions)

    def _model(self, data: FitData, train: Interactions, is_validated: bool) -> CatalogModel:
        p = self._params
        options: dict[str, Any] = {name: p[name] for name in ("dim", *_OF_MODEL)}
        return CatalogFactors(num_users=train.num_users, num_items=train.num_items, **options)

    def _negatives(self, train: Interactions) -> int | None:
        negatives, size = self._params["negatives"], self._params["softmax_batch_size"]
        is_slow = negatives and expected_candidates(train, negatives, size) >= _MOST_CANDIDATES * train.num_items
        return None if is_slow else negatives

    def _dataset(self, train: Interactions, prefix: str, negatives: int | None, epochs: int) -> Any:
        own = self._of_batches(prefix)

        def batches(finished: int) -> tf.data.Dataset:
            options = {**own, "num_epochs": epochs - finished, "first_epoch": finished}
            if negatives is None:
                return user_batches(train, **options).map(
                    lambda users, items, weights: (users, dense_labels(items, train.num_items, weights))
                )
            return candidate_batches(train, negatives=negatives, **options)

        return batches, -(-int((train.items_per_user > 0).sum()) // own["batch_size"])


class SequencesTraining(RecommenderTraining):
    """The training of users who are sequences of items.

    The defaults were chosen on the last but one items of MovieLens-100K and of Toys and Games
    (`benchmarks/sequences.py`).
    """

    defaults = {"dim": 128, "temperature": 0.07, "softmax_learning_rate": 0.005, "softmax_batch_size": 5}
    defaults |= {"batch_size": 5, "hard_negatives": 100}
    default_loss = None
    held_out_by = "time"

    def __init__(self, params: Mapping[str, Any], loss_options: Sequence[str]) -> None:
        super().__init__(params, loss_options)
        _arguments.choice("history_items", params["history_items"], ("sequence",))

    def _length(self, train: Interactions) -> int:
        return self._params["history_length"]

    def encoders(self, tables: Mapping[str, Table]) -> dict[str, TableEncoder]:
        """Returns new encoders of tables of items; users have none."""
        if "users" in tables:
            raise ValueError("`users` must be None with `history_items`, got a table.")
        return super().encoders(tables)

    def _model(self, data: FitData, train: Interactions, is_validated: bool) -> CatalogModel:
        p = self._params
        options: dict[str, Any] = {name: p[name] for name in _OF_MODEL}
        sizes = {"size": p["dim"], "num_features": p["history_length"]}
        options["user_encoder"] = SequenceEncoder(**sizes, dropout=p["dropout"], seed=p["seed"])
        if p["baselines"] and is_validated:  # They are no part of the training.
            options["baselines"] = self._counts(data, train).layer(settings_before(data.start, self.settings))
        model = CatalogSequences(num_users=train.num_users, num_items=train.num_items, **options)
        model.set_sequences(train)
        return model

    def _dataset(self, train: Interactions, prefix: str, negatives: int | None, epochs: int) -> Any:
        own = self._of_batches(prefix)
        sequences = SequenceBatches(train, length=self._params["history_length"], negatives=negatives, **own)
        return lambda finished: sequences.dataset(epochs - finished, finished), sequences.steps


def _quality(scorer: Any, measure: str, *, train: Interactions, validation: Interactions) -> float:
    """Returns a measure of a model, or of a function as for `evaluate`, of held-out items."""
    scorer = getattr(scorer, "catalog_scores", scorer)
    return evaluate(scorer, validation, seen=train, measures=measure).means[measure].mean


def _sample(validation: Interactions, seed: int) -> Interactions:
    """Returns the held-out items of at most `_VALIDATED` users."""
    users = np.random.default_rng(seed).permutation(np.flatnonzero(validation.items_per_user))[:_VALIDATED]
    return validation.keeping(np.isin(validation.pairs()["users"], users))


def settings_before(start: Start, default: Mapping[str, Any] = baseline_scores.DEFAULTS) -> dict[str, Any]:
    """Returns the settings of the baselines of a model to continue from, or the default ones."""
    before = None if start is None else start[0].baselines
    return dict(default) if before is None else before.settings
