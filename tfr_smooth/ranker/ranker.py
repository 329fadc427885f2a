"""`Ranker`: training, prediction, evaluation and export of a ranker on a table."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, metrics
from tfr_smooth._estimator import check_shared, fitting
from tfr_smooth.columns import Columns
from tfr_smooth.columns.tree_learning import check_names
from tfr_smooth.models.feed_forward import checked_arguments
from tfr_smooth.ranker.fitted import FittedRanker
from tfr_smooth.ranker.plan import OF_SCORER, TrainingPlan
from tfr_smooth.ranker.schema import Schema
from tfr_smooth.ranker.training import RankerTraining


class Ranker(FittedRanker):
    r"""Ranks the rows of a table within each query, with the interface of scikit-learn and LightGBM.

    The model is the mean of `members` feed-forward networks, trained at once: first on the softmax loss, then on a
    ranking metric. The last epoch is used, or with validation queries the epoch with the best metric. The defaults were
    selected on the validation queries of MQ2008, MQ2007, the Yandex set and synthetic sets.

    Args:
      loss: The name of a loss for `losses.get`, or a Keras loss.
      label_aggregation: How `fit` trains on several labels: "sum" on the weighted sum of their losses, as
        `losses.MultiObjectiveLoss`; "stochastic" on one label per list and step, drawn with the weights as
        probabilities, as `data.draw_labels`. No effect on one label.
      network: Your own Keras layer from encoded documents [batch, list, width] to scores, as for
        `models.NetworkScorer`; `members`, `hidden`, `batch_norm` and `dropout` then have no effect. None for
        feed-forward networks.
      members: Networks whose scores are averaged, >= 1.
      hidden: Widths of the hidden layers, or the name of an architecture of `models.FeedForwardScorer`.
      epochs: Passes over the training queries, >= 1. None uses at most 20, and fewer for more than 3,200 queries: as
        many as 2,000 steps need, but at least 5. Without validation queries and an `init_model`, the data then choose
        the number: a fifth of the queries, but at most 500, are held out, and an earlier epoch than the last one is
        used only if it is better on these by more than two standard errors. A second training for this number of epochs
        has all queries, unless the first had 90% of them.
      learning_rate: Adam's learning rate in the first epoch, > 0.
      schedule: "cosine" for a learning rate that decays to 0 by a cosine, or "constant".
      softmax_epochs: The first epochs, which train on `losses.SoftmaxLoss`: an integer >= 0 is their number, a float in
        [0, 1) their fraction. No effect on a loss that is not a `losses.RankingLoss`.
      batch_size: Queries per step, >= 1.
      normalization: Normalization of the features: "quantiles" (values and quantiles), "standardize", "min_max" (per
        query), "log1p" or None.
      batch_norm: Whether the networks have batch normalization.
      dropout: Dropout rate of the hidden units, in [0, 1).
      weight_decay: AdamW's weight decay of the kernels, >= 0.
      select_by: The measure of validation or held-out queries that selects the epoch: one of trec_eval's, "ndcg",
        "ndcg_cut_K", "map", "recip_rank", "recip_rank_K" or "P_K"; "smooth", the metric that the loss optimizes, or
        exact NDCG for other losses; or "last" for the last epoch.
      patience: Epochs without improvement, >= 1, after which training stops. None never stops early.
      validation_fraction: Fraction of the queries that `fit` holds out without `validation`, in [0, 1), and does not
        train on. 0 trains on all queries.
      trees: Whether LightGBM's trees score the documents first, from the prepared features. The network gets their
        score as a feature and adds to it what they lack. Or parameters of LightGBM, by their main names, such
        as {"num_leaves": 15}, at most 63.
      kinds: The kinds of columns that are not to be inferred, by name: "number", "category", "id", "text", or
        "set:SEPARATOR" for several values in one text, such as "set:|"; see `columns.infer_columns`. Or, for text, an
        encoder from `text.load_encoder`, which is not trained.
      matches: Pairs of columns to compare, such as a query and a title, or an item and the items of a session: vectors
        by their scalar product and cosine, others by their common values, or words and trigrams of letters; see
        `columns.TableFeatures`. None compares each text that is the same for all documents of a query with the texts of
        several words that often have a word of it, and each such id or category with those that are sometimes equal;
        () compares nothing.
      list_context: Whether columns that vary within lists have one more feature, numbers and dates the rank within the
        list, ids and categories the share of documents with the same value, so that a score depends on the other
        documents of the query; see `columns.TableFeatures`. With False, documents can be scored alone.
      crosses: Pairs of columns of ids, categories or sets, such as a user and a genre. Their pairs of values have
        a statistic, as the values of each such column do: their mean label in training; see `columns.Statistic`.
      max_categories: The most values of a column of text that is a category, >= 1.
      seed: Seed of the weights, the dropout, the order of the queries and the held-out queries, >= 0.
      verbose: Whether `fit` prints its progress.
      **loss_options: Hyperparameters of a loss given by its name.

    Attributes:
      model_: The Keras model of the prepared table.
      features_: The layer of the columns of the table and their preparation.
      columns_: The kind of each column and why, the number of values and the missing share; print it for a table.
      history_: The training loss and the validation metrics of each epoch, by name; those of the first training if
        `epochs` is None.
      best_epoch_: The selected epoch, from 1 on; None if all epochs are trained without validation.

    Raises:
      ValueError: If an argument is out of its range.

    Time per epoch is that of the networks, linear in rows, features and widths, and of the loss. Memory: the prepared
    features as float32, up to 256 MB; more of them are prepared for each batch.

    Example:
      >>> import numpy as np
      >>> import pandas as pd
      >>> import tfr_smooth
      >>> random = np.random.default_rng(0)
      >>> frame = pd.DataFrame({"query": np.repeat(np.arange(40), 5), "price": random.normal(size=200)})
      >>> frame["color"] = random.choice(["red", "blue"], 200)
      >>> frame["label"] = (frame["price"] + (frame["color"] == "red") > 0.5).astype(int)
      >>> ranker = tfr_smooth.Ranker(members=2, epochs=10, verbose=False)
      >>> ranker = ranker.fit(frame, label="label", query="query")
      >>> ranker.evaluate(frame)["ndcg"].mean > 0.9
      True
      >>> list(ranker.rank(frame).columns)
      ['query', 'price', 'color', 'label', 'score', 'rank']
    """

    def __init__(
        self,
        *,
        loss: str | tf.keras.losses.Loss = "smoothi_ndcg",
        label_aggregation: str = "sum",
        network: tf.keras.layers.Layer | None = None,
        members: int = 8,
        hidden: Sequence[int] | str = (64,),
        epochs: int | None = None,
        learning_rate: float = 0.003,
        schedule: str = "cosine",
        softmax_epochs: float = 2 / 3,
        batch_size: int = 32,
        normalization: str | None = "quantiles",
        batch_norm: bool = False,
        dropout: float = 0.2,
        weight_decay: float = 0.3,
        select_by: str = "ndcg",
        patience: int | None = None,
        validation_fraction: float = 0.0,
        trees: bool | Mapping[str, Any] = True,
        kinds: Mapping[str, Any] | None = None,
        matches: Sequence[tuple[str, str]] | None = None,
        list_context: bool = True,
        crosses: Sequence[tuple[str, str]] | None = None,
        max_categories: int = 100,
        seed: int = 0,
        verbose: bool = True,
        **loss_options: Any,
    ) -> None:
        self._take(locals())
        p = self._params
        check_shared({**p, "epochs": 1}, select_by=("smooth", "last"))
        if p["select_by"] not in ("smooth", "last", "ndcg"):
            metrics.of_trec_eval(p["select_by"], argument="select_by")
        _arguments.integer_or_none("epochs", p["epochs"], least=1)
        _arguments.boolean("list_context", p["list_context"])
        for name in ("members", "max_categories"):
            _arguments.integer(name, p[name], least=1)
        _arguments.real("weight_decay", p["weight_decay"], least=0.0)
        _arguments.count_or_fraction("softmax_epochs", p["softmax_epochs"])
        _arguments.choice("label_aggregation", p["label_aggregation"], ("sum", "stochastic"))
        _arguments.choice("schedule", p["schedule"], ("cosine", "constant"))
        _arguments.instance("kinds", p["kinds"], Mapping, optional=True)
        for name in ("matches", "crosses"):
            for pair in () if p[name] is None else _arguments.sequence(name, p[name]):
                if len(_arguments.sequence(name, pair)) != 2:
                    raise ValueError(f"`{name}` must be pairs of names, got {pair!r}.")
        if isinstance(p["trees"], Mapping):
            check_names(p["trees"])
        else:
            _arguments.boolean("trees", p["trees"])
        _arguments.instance("network", p["network"], tf.keras.layers.Layer, optional=True)
        self._plan = TrainingPlan(p, self._loss_options)
        # No scorer: its dropout creates variables, and clusters must be configured before.
        checked_arguments(**{name: p[name] for name in OF_SCORER})

    @property
    def loss_(self) -> tf.keras.losses.Loss:
        """The loss."""
        return self._plan.loss

    @property
    def columns_(self) -> Columns:
        """The columns of the table, with what `fit` inferred of them, and why: print them for a table."""
        self._fitted()
        return self.features_.columns

    @property
    def n_features_in_(self) -> int:
        """The number of feature columns."""
        return len(self.columns_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the feature columns of a table; no attribute after training on a matrix."""
        names = [column.name for column in self.columns_]
        if self.features_.stacked:
            raise AttributeError("`feature_names_in_` is not defined: `X` was a matrix.")
        return np.array(names, object)

    @property
    def types_(self) -> dict[str, str]:
        """The types of the columns of the table, for the argument `types` of `data.read_files`."""
        self._fitted()
        return self.features_.types

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        label: str | Mapping[str, float] | None = None,
        query: str | None = None,
        weight: str | None = None,
        propensity: str | None = None,
        features: Sequence[str] | None = None,
        query_features: Sequence[str] = (),
        validation: Any = None,
        init_model: Ranker | None = None,
        further_metrics: Sequence[tf.keras.metrics.Metric] = (),
        strategy: tf.distribute.Strategy | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        callbacks: Sequence[tf.keras.callbacks.Callback] = (),
    ) -> Ranker:
        """Trains the model.

        Args:
          X: One of
            a table of pandas, Polars, PyArrow or another library with the Arrow PyCapsule interface, with one row per
              document, whose columns may be numbers with missing values, categories, booleans and dates;
            numbers [rows, num_features], NaN for missing values;
            paths of Parquet, Feather, CSV, TSV or JSON lines files, one or a list, read as by `data.read_files`;
            `data.Lists`, such as of files larger than memory, with the roles of their columns.
          y: Labels >= 0, [rows], or [rows, labels] for several; or `label`.
          qid: The query of each row, [rows], without missing values; or `group` or `query`.
          group: The number of rows of each query, [queries], for rows sorted by query, as in LightGBM.
          sample_weight: Weights >= 0 of the documents, [rows]; or `weight`. `losses.RankingLoss` describes what they
            multiply: in listwise losses, such as those of measures, they become one weight per query.
          label: The column of labels; or, to train on several labels, a mapping from their columns to weights >= 0,
            such as {"relevance": 1.0, "purchase": 0.3}. With `y`, it names the columns of `y`. Validation metrics are
            then the weighted mean of those of the labels.
          query: The column of queries.
          weight: The column of weights.
          propensity: The column of the probability > 0 that the position of a document was examined, such as from
            `clicks.fit_position_based`. The labels are then clicks, 0 or 1, and the queries are sessions: there is one
            list per click, weighted by the inverse propensity, as in `data.one_list_per_click`. Sessions without a
            click are not used. `validation` has clicks if it has this column, else labels.
          features: The feature columns. None uses all columns without another role.
          query_features: Feature columns that are the same for all documents of a query; exported models take them once
            per list.
          validation: The validation set: a table with the same columns, (X, y, qid) for arrays, or `data.Lists`. None
            holds out `validation_fraction` of the queries.
          init_model: A fitted ranker to continue from, such as with new days of data: with its columns, their
            preparation and its weights. The arguments of the network must be the same.
          further_metrics: Further metrics of the validation set, for `history_`.
          strategy: A `tf.distribute` strategy, such as from `training.get_strategy`. None trains on one device.
          checkpoint_dir: Directory of checkpoints, the log and the best model. The same call after an interruption
            resumes after the last finished epoch. None writes nothing.
          callbacks: Further Keras callbacks.

        Returns:
          The ranker.

        Raises:
          ValueError: If an argument or the data is invalid. The message names the column.
        """
        names = {"label": label, "query": query, "weight": weight, "propensity": propensity}
        arrays = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight}
        if init_model is not None:
            init_model._fitted()
        training = RankerTraining(
            params=self._params,
            plan=self._plan,
            init_model=init_model,
            checkpoint_dir=checkpoint_dir,
            options={"further_metrics": further_metrics, "strategy": strategy, "callbacks": callbacks},
        )
        training.read(X, arrays, names, features, query_features, validation)
        training.learn()
        training.validate(validation, query, propensity)
        self._check_patience(training.valid)
        trained = training.train()
        self.history_, self.best_epoch_ = trained.history, trained.best_epoch
        self._plan, self._schema, self.features_ = training.plan, training.schema, training.layer
        self._take_scorer(trained.scorer)
        return self

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"schema": self._schema.get_config(), "has_encoders": bool(self.features_.encoders)}, {}

    def _check(self, config: dict[str, Any], content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        if content["has_encoders"]:
            importlib.import_module("tfr_smooth.text")  # which registers their class

    def _restore(self, model: tf.keras.Model, content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.features_, self._schema = model.table_features, Schema(**content["schema"])
        if encoders := self.features_.encoders:
            self._params["kinds"] = {**self._params["kinds"], **encoders}
        self._plan = self._plan.of_data(self._schema.label_weights)
        self._take_scorer(model.scorer)
