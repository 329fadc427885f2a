"""The training of a `Ranker`, step by step, and which columns and queries it uses."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import data
from tfr_smooth._estimator import check_validation, digest
from tfr_smooth.columns import TableFeatures
from tfr_smooth.columns.hints import warn_of_columns
from tfr_smooth.columns.kinds import types_of_kinds
from tfr_smooth.columns.learning import learn_features, time_order
from tfr_smooth.columns.matches import text_pairs
from tfr_smooth.columns.tree_learning import learn_trees, slope
from tfr_smooth.data.lists import Lists, have_different_labels
from tfr_smooth.data.reading.sources import of_files, read_training
from tfr_smooth.models.encoded_scorer import EncodedScorer
from tfr_smooth.ranker.plan import TrainingPlan
from tfr_smooth.ranker.schema import Schema
from tfr_smooth.training.trainer import train
from tfr_smooth.training.validation import is_clearly_better

if TYPE_CHECKING:
    from tfr_smooth.ranker.ranker import Ranker

# Of the queries, the fraction that is held out to choose the number of epochs, and the most and the least of them. Not
# tuned: so many queries have a small standard error, and the second training has the others, too.
_FRACTION, _MOST, _LEAST = 0.2, 500, 30
_VALIDATED = 1 << 12  # documents that are scored at once in validation, unless the batches have more; not tuned
_ENOUGH = 0.9  # of the queries: a training with so many is not repeated with all of them; not tuned


class TrainedScorer(NamedTuple):
    """A trained scorer.

    Attributes:
      scorer: The model with the weights of the best epoch, or of the last epoch without validation.
      history: The training loss and the validation metrics of each epoch, by name.
      best_epoch: The selected epoch, from 1 on; None without validation, or if the metric was always NaN.
      of_queries: The weights of the validation queries and the metric of each after the last epoch.
    """

    scorer: EncodedScorer
    history: dict[str, list[float]]
    best_epoch: int | None
    of_queries: list[list[float]]


@dataclasses.dataclass(kw_only=True)
class RankerTraining:
    """A training of a `Ranker`: the methods are its steps, in their order, and the attributes what they found.

    Args:
      params: The arguments of the ranker.
      plan: What follows from them, and in `read` from the number of queries.
      init_model: The fitted ranker to continue from, or None.
      checkpoint_dir: As for `Ranker.fit`.
      options: "further_metrics", "strategy" and "callbacks", as for `Ranker.fit`.

    Attributes:
      documents: All lists.
      schema: The roles of the columns.
      order: The place of each list in the order whose runs are the parts of statistics and trees, and whose last lists
        are held out: that of time if a date rises along the lists, which may then drift, else a random one.
      queries: The indices of the training queries.
      held_out: The indices of the held-out queries, or None.
      chooses_epochs: Whether these choose the number of epochs.
      layer: What was learned of the columns.
      prepared: All lists, with their features.
      valid: The validation lists with their features, or None.
      settings: What a resumed training run must have in common, besides the arguments.
    """

    params: Mapping[str, Any]
    plan: TrainingPlan
    init_model: Ranker | None
    checkpoint_dir: str | os.PathLike[str] | None
    options: Mapping[str, Any]

    def read(
        self,
        X: Any,
        arrays: Mapping[str, Any],
        names: Mapping[str, Any],
        features: Sequence[str] | None,
        query_features: Sequence[str],
        validation: Any,
    ) -> None:
        """Reads the table; the arguments are those of `Ranker.fit`."""
        p, first = self.params, self.init_model
        X = of_files(X, types_of_kinds(p["kinds"] or {}) if first is None else first.features_.types, [names["query"]])
        documents = self.documents = read_training(X, arrays, self.plan.loss_of_one_label, features=features, **names)
        fraction = 0.0 if validation is not None else p["validation_fraction"]
        by_time = time_order(documents, p["kinds"] or {})
        # The last ones of the random order are the held-out part of `Lists.split`.
        random = np.random.default_rng(p["seed"]).permutation(len(documents))[::-1]
        self.order = by_time[1] if by_time else np.argsort(random)
        if by_time and p["verbose"]:
            print(f"The queries are in the order of {by_time[0]!r}: their parts are periods of time", flush=True)
        self.queries = np.arange(len(documents))
        self.held_out: np.ndarray | None = None
        if fraction:
            if len(documents) < 2:
                raise ValueError(f"`validation_fraction` must be 0 for fewer than two queries, got {fraction} for 1.")
            self.queries, self.held_out = split(self.order, fraction)
        if first is None:
            self.schema = Schema.of(documents, None if isinstance(X, Lists) else names, query_features)
        else:
            self.schema = first._schema
        self.plan = self.plan.of_data(self.schema.label_weights, len(self.queries))
        may_choose = validation is None and self.held_out is None and first is None and p["select_by"] != "last"
        found = hold_out(documents, self.order) if may_choose and p["epochs"] is None else None
        self.chooses_epochs = found is not None
        if may_choose and p["epochs"] is None and not found and p["verbose"]:
            print(f"Too few queries to choose the number of epochs: {self.plan.epochs} are trained", flush=True)
        self.queries, self.held_out = found or (self.queries, self.held_out)

    def learn(self) -> None:
        """Learns the columns from the training queries, or takes those of `init_model`, and prepares the features."""
        if self.init_model is None:
            self.layer, self.prepared, raw = self._learn(self.queries, verbose=self.params["verbose"])
            warn_of_columns(self.layer, raw)
        else:
            self.layer = self.init_model.features_
            if self.layer.needs_lists and not self.params["list_context"]:
                expected = "True for an `init_model` with ranks or shares within lists"
                raise ValueError(f"`list_context` must be {expected}, got False.")
            self.prepared = self.layer.transform(self.layer.raw_lists(self.documents))
        if not self._trains_again:
            self._print_layer()

    @property
    def _trains_again(self) -> bool:
        """Whether a training on all queries follows that on the training queries."""
        return self.chooses_epochs and len(self.queries) < _ENOUGH * len(self.documents)

    def _print_layer(self) -> None:
        if self.params["verbose"] and (told := str(self.layer)):
            print(told, flush=True)

    def _learn(
        self, queries: np.ndarray, before: TableFeatures | None = None, *, verbose: bool = False
    ) -> tuple[TableFeatures, Lists, Lists]:
        """Returns what was learned of the columns from queries, and all lists with their features and raw values.

        With the layer of the training before it, the network is the same, so that its step need not be traced again.
        """
        p, documents = self.params, self.documents
        options = {name: p[name] for name in ("max_categories", "kinds", "list_context")}
        matches = p["matches"]
        if matches is None:
            pairs = text_pairs(documents.take(queries), p["kinds"] or {})
            matches = [pair for pair in pairs if pair[0] in documents.roles.features]
            compared = {document for _, document in matches}
            uncompared = [pair for pair in pairs if pair[1] not in compared]
            if uncompared and verbose:
                texts = ", ".join(repr(document) for _, document in uncompared)
                query = uncompared[0][0]
                print(f"The queries have words of {texts}: `features` with {query!r} compares them.", flush=True)
        options.update(matches=matches, find_equal=p["matches"] is None, crosses=p["crosses"] or (), order=self.order)
        layer, raw = learn_features(documents, queries, **options)
        prepared = layer.transform(raw)
        if p["trees"] is not False:
            gain = getattr(getattr(self.plan.loss_of_one_label, "measure", None), "gain", "exponential")
            of_trees = {"gain": gain, "given": {} if p["trees"] is True else p["trees"], "seed": p["seed"]}
            layer, prepared = learn_trees(layer, prepared, queries, order=self.order, before=before, **of_trees)
        return layer, prepared, raw

    def validate(self, validation: Any, query: str | None, propensity: str | None) -> None:
        """Takes the held-out queries, or reads the validation table; the arguments are those of `Ranker.fit`."""
        self.valid: Lists | None = None
        select_by, of_run = self.params["select_by"], self.checkpoint_dir is not None
        self.settings: dict[str, Any] = {"data": self.documents.digest()} if of_run else {}
        if self.held_out is not None:
            self.valid = self.prepared.take(self.held_out)
            check_validation(self.valid, "validation_fraction", select_by)
            if self.chooses_epochs and self.params["verbose"]:
                held, count = len(self.documents) - len(self.queries), len(self.documents)
                epochs = f"{self.plan.epochs} and {self.plan.shorter().epochs}"
                print(f"Held out to choose between {epochs} epochs: {held:,} of {count:,} queries", flush=True)
        elif validation is not None:
            validation = of_files(validation, self.layer.types, [query])
            raw = self.schema.read_validation(validation, self.layer, propensity)
            check_validation(raw, "validation", select_by)
            if of_run:
                self.settings["validation"] = raw.digest()
            self.valid = self.layer.transform(raw)

    def train(self) -> TrainedScorer:
        """Trains on the training queries, and then on all queries if some only chose the number of epochs."""
        lists = self.prepared if self.held_out is None else self.prepared.take(self.queries)
        folder = None if self.checkpoint_dir is None else Path(self.checkpoint_dir)
        if not self.chooses_epochs:
            return self._train_on(lists, folder)
        trained = self._choose(lists, folder)
        if not self._trains_again:
            return trained
        self.layer, self.prepared, _ = self._learn(np.arange(len(self.documents)), self.layer)
        self._print_layer()
        self.valid = None
        return trained._replace(scorer=self._train_on(self.prepared, folder).scorer)

    def _choose(self, lists: Lists, folder: Path | None) -> TrainedScorer:
        """Trains for the epochs of the plan and for fewer, and takes the plan that held-out queries choose.

        A ranking metric of few queries is too noisy to choose by alone. Few epochs are used if the softmax loss, of
        scores times the factor with the lowest one, is clearly less, and the metric higher by half a standard error.
        """
        batches = [(inputs, labels) for inputs, labels, *_ in self._batches_of_valid()]
        labels = np.concatenate([tf.boolean_mask(given, inputs["mask"]).numpy() for inputs, given in batches])
        labels = labels if labels.ndim == 1 else np.average(labels, axis=1, weights=self.plan.label_weights)
        # A click with a propensity is a list of its own.
        lengths = np.concatenate([inputs["mask"].numpy().sum(axis=1) for inputs, _ in batches])
        plans, tried = (self.plan, self.plan.shorter()), []
        for self.plan in plans:
            trained = self._train_on(lists, folder and folder / f"held_out_{self.plan.epochs}")
            by_batch = [tf.boolean_mask(trained.scorer(each, training=False), each["mask"]) for each, _ in batches]
            scores = tf.concat(by_batch, axis=0).numpy().astype(float)
            tried.append((trained, softmax_losses(slope(scores, labels, lengths) * scores, labels, lengths)))
        (all_epochs, losses), (few_epochs, fewer) = tried
        weights, metric = few_epochs.of_queries
        is_better = is_clearly_better(metric, all_epochs.of_queries[1], weights, errors=0.5)
        is_better = is_better and is_clearly_better(-fewer, -losses, np.ones(len(lengths)), errors=1.75)
        self.plan = plans[is_better]
        if self.params["verbose"]:
            means = f"{losses.mean():.4f} after {plans[0].epochs} epochs, {fewer.mean():.4f} after {plans[1].epochs}"
            print(f"{self.plan.epochs} epochs are used. Softmax loss of held-out queries: {means}", flush=True)
        return tried[is_better][0]

    def _batches_of_valid(self) -> tf.data.Dataset:
        """Returns the validation batches, without weights of documents, but with those of clicks."""
        assert self.valid is not None
        size = max(self.params["batch_size"], _VALIDATED // int(self.valid.lengths.max()))
        return self.layer.batches(self.valid.without("weight"), size)

    def _train_on(self, lists: Lists, folder: Path | None) -> TrainedScorer:
        """Trains a scorer by the plan.

        Args:
          lists: The lists.
          folder: Directory of checkpoints, `log.csv` and `best.keras`; training resumes from it. None for none.

        Returns:
          The trained scorer, outside of the strategy's scope, so that any process can read it.
        """
        p, layer, plan, initial = self.params, self.layer, self.plan, None

        def epochs(finished: int) -> tf.data.Dataset:
            """Returns the batches of the epochs after the finished ones."""
            order = {"shuffle": True, "seed": p["seed"], "group_by_length": True, "first_epoch": finished}
            batches = layer.batches(lists, p["batch_size"], num_epochs=None, **order)
            if plan.label_weights is None or p["label_aggregation"] == "sum":
                return batches
            first = finished * math.ceil(len(lists) / p["batch_size"])
            return data.draw_labels(batches, plan.label_weights, seed=p["seed"], first_batch=first)

        one_epoch = layer.batches(lists.without("weight", "propensity"), p["batch_size"])
        if self.init_model is not None:
            initial = self.init_model._uncalibrated()
            self.settings["init_model"] = digest(initial.get_weights())
        with (self.options["strategy"] or tf.distribute.get_strategy()).scope():
            model = plan.make_scorer(layer, initial)
            model, schedule = plan.compiled(model)
        if initial is not None:
            weights = initial.get_weights()
            if [w.shape for w in model.get_weights()] != [w.shape for w in weights]:
                raise ValueError("`init_model` must have the same arguments of the network, such as `hidden`.")
            model.set_weights(weights)
        validation = None
        if self.valid is not None:
            further, chooses = self.options["further_metrics"], self.chooses_epochs
            validation = plan.validation(self._batches_of_valid(), further, folder, only_shows=chooses)
        history = train(
            model,
            epochs,
            epochs=plan.epochs,
            steps_per_epoch=int(one_epoch.cardinality()),
            validation=validation,
            checkpoint_dir=folder,
            settings={**plan.identity(), **self.settings},
            prepare=lambda: None if initial is not None else model.adapt(one_epoch),
            callbacks=[schedule, *self.options["callbacks"]],
            feature_names=layer.feature_columns,
            verbose=p["verbose"],
            title=f"Training on {len(lists):,} queries, epochs: {plan.epochs}",
        )
        scorer = plan.make_scorer(layer, initial)
        scorer.set_weights(model.get_weights())
        if not self.options["callbacks"]:  # which may have the model
            plan.keep(model, schedule)
        best = (None, []) if validation is None else (validation.best_epoch, validation.of_last)
        return TrainedScorer(scorer, history, *best)


def softmax_losses(scores: np.ndarray, labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns the softmax loss of each list, per unit of its labels; 0 without relevant documents."""
    starts, query = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(lengths)), lengths)
    scores = scores - np.maximum.reduceat(scores, starts)[query]
    logs = scores - np.log(np.add.reduceat(np.exp(scores), starts))[query]
    total = np.add.reduceat(labels, starts)
    return -np.add.reduceat(labels * logs, starts) / np.where(total > 0.0, total, 1.0)


def split(order: np.ndarray, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the indices of the first queries in an order, ascending, and those of the last ones, a fraction."""
    count = min(max(round(fraction * len(order)), 1), len(order) - 1)
    first, last = np.split(np.argsort(order), [len(order) - count])
    return np.sort(first), last


def hold_out(lists: Lists, order: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Holds out a fifth of the queries, but at most 500.

    Args:
      lists: The lists.
      order: The place of each list in the order whose last lists are held out.

    Returns:
      The indices of the other queries, and of the held-out ones with documents of different labels; None if these are
      fewer than 30.
    """
    if len(lists) < _LEAST:
        return None
    rest, held = split(order, min(_FRACTION, _MOST / len(lists)))
    held = held[have_different_labels(lists)[held]]
    return (rest, held) if len(held) >= _LEAST else None
