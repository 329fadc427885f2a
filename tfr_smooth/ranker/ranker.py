"""`Ranker`: training, prediction, evaluation and export of a ranker on a table."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from typing_extensions import Self

from tfr_smooth import _arguments, _compiled, data, metrics, models, serving, training
from tfr_smooth._estimator import Estimator, check_shared, evaluated, fitting
from tfr_smooth.columns import Columns, TableFeatures
from tfr_smooth.columns.list_context import in_parts
from tfr_smooth.columns.tree_learning import check_names
from tfr_smooth.data.reading.sources import of_files, ranked_rows, values_of_queries
from tfr_smooth.evaluation.segments import BySegment
from tfr_smooth.evaluation.trec import DEFAULT_MEASURES
from tfr_smooth.models.feed_forward import checked_arguments
from tfr_smooth.ranker.plan import OF_SCORER, TrainingPlan
from tfr_smooth.ranker.schema import Schema
from tfr_smooth.ranker.training import RankerTraining
from tfr_smooth.training.explanation import explain

_SCORED = 1 << 12  # documents that are scored at once, unless a list is longer; not tuned


class Ranker(Estimator):
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
        between this number and a fifth of it: a fifth of the queries, but at most 500, are held out, and the few epochs
        are used if they are clearly better on these: the softmax loss by 1.75 standard errors, and the measure of
        `select_by` by half of one. Another training for this number has all queries, unless the first had 90% of them.
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
        train on: random ones, or the latest ones if a date rises along the queries. 0 trains on all queries.
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
      best_epoch_: The selected epoch, or number of epochs, from 1 on; None without validation and held-out queries.

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

    _estimator_type = "regressor"  # for scikit-learn's partial dependence
    features_: TableFeatures
    _plan: TrainingPlan  # of the last `fit`
    _schema: Schema
    _scorer: models.Scorer

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
        self._check_patience(None if training.chooses_epochs else training.valid)
        trained = training.train()
        self.history_, self.best_epoch_ = trained.history, trained.best_epoch
        self._plan, self._schema, self.features_ = training.plan, training.schema, training.layer
        self._take_scorer(trained.scorer)
        return self

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> np.ndarray:
        """Scores documents.

        Args:
          X: A table as for `fit`; paths of files, which are read by the types of the training; or a list of rows that
            are dicts, as a request in JSON has them, with None for missing values. The columns of labels, queries and
            weights may be missing, and columns that are not in the table of `fit` are ignored.
          qid: The query of each row, unless the table has the column of `fit` or documents are scored alone: with
            `list_context=False` or no column with ranks, and neither a `network` nor `normalization="min_max"`.
          group: The number of rows of each query.

        Returns:
          float32 [rows], higher is better.

        Raises:
          ValueError: If the table does not have the columns of `fit`, or lacks the queries.
        """
        lists = self._lists(X, qid=qid, group=group)
        return self._scores(lists)[np.argsort(lists.rows)]

    def rank(self, X: Any, *, qid: Any = None, group: Any = None, names: tuple[str, str] = ("score", "rank")) -> Any:
        """Ranks the rows of a table within each query.

        Args:
          X: A table as for `predict`.
          qid: The query of each row, unless the table has the column of `fit`.
          group: The number of rows of each query.
          names: The names of the columns of scores and ranks, which are no features of the ranker.

        Returns:
          A copy of the table as a pandas DataFrame with the columns of scores and of ranks, from 1 on, queries in their
          order and the best document first; ties keep the order of the rows. For a list of dicts, copies of these.

        Raises:
          ValueError: If a name is that of a feature, or as for `predict`.
        """
        self._fitted()
        if twice := set(names) & {column.name for column in self.features_.columns}:
            raise ValueError(f"`names` must not be names of features, got {sorted(twice)[0]!r}.")
        lists = self._lists(X, qid=qid, group=group, needs=["query"])
        X = of_files(X)  # with the values as they are in the files
        return ranked_rows(X, lists, self._scores(lists), names)

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        measures: Sequence[str] = DEFAULT_MEASURES,
        by_query: bool = False,
        by: str | None = None,
    ) -> dict[Any, Any]:
        """Computes trec_eval's measures.

        Unlike `rank`, later rows come first among ties: otherwise, equal scores would look good on a table that is
        sorted by its labels.

        Args:
          X: A table with labels as for `fit`.
          y: The labels, unless the table has the column of `fit`.
          qid: The query of each row, unless the table has the column of `fit`.
          group: The number of rows of each query.
          measures: Names of measures, as for `evaluation.trec_eval`.
          by_query: Whether to return the value of each query.
          by: A column of `X`, which need not be a feature, with one value per query, such as the device. Returns the
            means of the queries of each value.

        Returns:
          The mean over queries and its standard error, by measure, printed with one line per measure; or the values, by
          measure and by query, which `evaluation.randomization_test` compares with those of another ranker; or with
          `by`, an `evaluation.BySegment`: print it, or plot its `to_pandas()`. After training on several labels, of
          each, by LABEL/MEASURE, such as "purchase/ndcg".

        Raises:
          ValueError: If `by` is not a column with one value per query, or used with `by_query`.
          ImportError: If pytrec_eval is not installed; the extra `tfr_smooth[evaluation]` includes it.
        """
        if by is not None and by_query:
            raise ValueError(f"`by` must be None with `by_query=True`, got {by!r}.")
        lists = self._lists(X, y, qid, group, needs=["label", "query"])
        X = X if by is None else of_files(X)  # with the values as they are in the files
        segments = None if by is None else values_of_queries(X, lists, by)
        values = evaluated(lists, self._scores(lists), measures, by_query or by is not None)
        return values if segments is None else BySegment(values, segments)

    def score(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> float:
        """Returns the mean NDCG, or its weighted mean over several labels, for scikit-learn's searches.

        Args:
          X: A table as for `evaluate`.
          y: The labels.
          qid: The query of each row.
          group: The number of rows of each query.
        """
        self._fitted()
        if self._schema.query is None and qid is None and group is None and not isinstance(X, data.Lists):
            way = "`set_score_request(qid=True)` and metadata routing, or train with `query=`, a column of X"
            raise ValueError(f"`qid` or `group` must define the queries, got neither. In scikit-learn, use {way}.")
        means = [each.mean for each in self.evaluate(X, y, qid=qid, group=group, measures=["ndcg"]).values()]
        return float(np.average(means, weights=self._plan.label_weights))

    def calibrate(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        method: str = "platt",
        threshold: float | None = 1.0,
    ) -> Self:
        """Calibrates the scores, which become probabilities of relevance or expected labels.

        The function of the scores is increasing, so documents keep their order up to rounding; "isotonic" makes some
        of them ties. Predictions, files and exports are calibrated. A second call replaces the calibration, and `fit`
        removes it.

        Args:
          X: A table with labels as for `evaluate`, without the queries of the training set.
          y: The labels.
          qid: The query of each row, where `predict` needs it.
          group: The number of rows of each query.
          method: "platt" or "isotonic"; see `training.fit_calibration`.
          threshold: Documents with labels >= this, > 0, are relevant. None fits the expected label instead, by
            "isotonic" only.

        Returns:
          The ranker.

        Raises:
          ValueError: If an argument is invalid, or `training.fit_calibration` cannot fit the scores.
        """
        scorer = self._uncalibrated()
        documents = self._lists(X, y, qid, group, needs=["label"])
        labels = np.squeeze(np.stack([documents.values(name) for name in documents.roles.labels], axis=1))
        scores = self._scores(documents, scorer)
        calibration = training.fit_calibration(labels, scores, method=method, threshold=threshold)
        calibrated = models.CalibratedScorer(scorer, calibration)
        calibrated.build((None, None, scorer.num_features))
        self._take_scorer(calibrated)
        return self

    def export(self, path: str | os.PathLike[str], *, format: str = "saved_model", **options: Any) -> Path:
        """Exports the model, with the columns of the table as they were.

        Args:
          path: The directory of the versions; for ONNX, the file.
          format: "saved_model" for TF Serving, or "onnx", as `serving.export_onnx`.
          **options: Options of `serving.export_ranker`, such as `version` and `card`; none for ONNX.

        Returns:
          The directory PATH/VERSION; for ONNX, the file.

        Raises:
          ValueError: If an argument is invalid, or ONNX cannot have a column. The message names it.
        """
        model = self._exported(path)
        if _arguments.choice("format", format, ("saved_model", "onnx")) == "onnx":
            return serving.export_onnx(model, path, **options)
        card = self._card(options.pop("card", None), loss=self._plan.loss)
        return serving.export_ranker(model, path, card=card, **model.export_arguments, **options)

    def explain(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        rows: Any = None,
        background: Any = None,
        samples: int = 100,
    ) -> training.Explanation:
        r"""Explains scores: how much each column adds to the score of a document, against others.

        The contributions are Shapley values of the columns (Lundberg and Lee, "A Unified Approach to Interpreting Model
        Predictions", NIPS 2017):

        $$\phi_c = \frac{1}{|Z| \, C!} \sum_{z \in Z} \sum_\pi f(x_{P(\pi, c) \cup c}, z) - f(x_{P(\pi, c)}, z)$$

        for the score f of a document of the background Z, of which some columns have the values of the document x:
        those before c in the permutation $\pi$ of the C columns. They sum to the score minus the mean score of the
        background.

        By default, the background is the list of the document itself, so the contributions tell why it ranks above or
        below the others: columns that are the same in the whole list contribute 0. A column is replaced with all that
        was prepared of it: with its rank or share within the list, which stays that in the actual list. Statistics of
        one column count as this column; a match of two columns and a statistic of two columns count as columns of their
        own.

        Args:
          X: A table as for `predict`, with the documents of whole lists.
          qid: The query of each row, unless the table has the column of `fit`.
          group: The number of rows of each query.
          rows: The rows of the table to explain: one or several numbers, counted from 0, a slice, or a mask with a
            boolean for each row. None explains all.
          background: A table with other documents, such as a sample of the training table, with the column of queries
            if `predict` needs it. None for the list of each document.
          samples: The permutations per document, >= 1, each with its reverse: at least as many, and as many with each
            document of the background. Of a larger background, so many documents are used, evenly spaced in the order
            of their scores.

        Returns:
          The contributions; print them, or plot their `to_pandas()`.

        Raises:
          ValueError: If an argument is invalid; or if the ranker has a `network` or `normalization="min_max"`, with
            which a score can depend on all features of the list.

        Time: the documents times `samples` times twice the columns scores, half of it for a whole list. A list of 100
        documents and 20 columns takes about half a second. Memory O(documents * `samples` * columns) of a list.
        """
        samples = _arguments.integer("samples", samples, least=1)
        lists = self._lists(X, qid=qid, group=group, needs=["query"] if background is None else ())
        if self._plan.scores_lists:
            raise ValueError("`network` must be None and `normalization` not 'min_max' to explain scores, got others.")
        others = None if background is None else self._lists(background)
        return explain(self._scorer, self.features_, lists, others, rows, samples, self._params["seed"])

    @property
    def query_column(self) -> str | None:
        """The column of queries of the training table; None if the queries were given as an array."""
        self._fitted()
        return self._schema.query

    @property
    def _scores_lists(self) -> bool:
        """Whether the score of a document may depend on the others of its query."""
        return self._plan.scores_lists or self.features_.needs_lists

    def _uncalibrated(self) -> models.Scorer:
        """Returns the scorer without calibration."""
        self._fitted()
        return self._scorer.scorer if isinstance(self._scorer, models.CalibratedScorer) else self._scorer

    def _take_scorer(self, scorer: models.Scorer) -> None:
        """Sets the model."""
        self._scorer, self._score_documents = scorer, self._traced(scorer)
        self.model_ = models.TableScorer(self.features_, scorer, query_columns=tuple(self._schema.query_features))
        self.model_.build()

    def _lists(
        self, X: Any, y: Any = None, qid: Any = None, group: Any = None, *, needs: Sequence[str] = ()
    ) -> data.Lists:
        """Returns the documents with the needed roles; those that score whole lists need the queries."""
        self._fitted()
        given, X = {"y": y, "qid": qid, "group": group}, of_files(X, self.features_.types, [self._schema.query])
        return self._schema.read(X, given, self.features_, needs=needs, of_lists=self._scores_lists)

    def _scores(self, lists: data.Lists, scorer: models.Scorer | None = None) -> np.ndarray:
        """Returns the scores of the documents in the order of the lists."""
        score = (self._score_documents if scorer in (None, self._scorer) else self._traced(scorer))()
        rows, scores = lists.rows, np.zeros(lists.documents, np.float32)
        for places, lengths in in_parts(lists, _SCORED, whole=self._scores_lists):
            scores[places] = score(*self.features_.raw(lists, rows[places]), lengths)
        return scores

    def _traced(self, scorer: models.Scorer) -> Callable[[], Any]:
        """Returns what makes the function from the raw values and the lengths of lists to scores [rows], once.

        It is a concrete function: calls of others look for their graph, which takes a tenth of the time for 100 rows.
        """

        def score(numbers: tf.Tensor, others: dict[str, tf.Tensor], lengths: tf.Tensor) -> tf.Tensor:
            features, mask = self.features_.prepare_lists(numbers, others, lengths)
            return tf.boolean_mask(scorer({"features": features, "mask": mask}, training=False), mask)

        specs = (*self.features_.raw_specs, tf.TensorSpec([None], tf.int64))
        return functools.cache(_compiled.traced(score, input_signature=specs).get_concrete_function)

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
