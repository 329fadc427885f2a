"""What a fitted `Ranker` does with a table: predictions, ranks, measures, calibration, explanations and exports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, data, models, serving, training
from tfr_smooth._estimator import Estimator, evaluated
from tfr_smooth.columns import TableFeatures
from tfr_smooth.columns.list_context import in_parts
from tfr_smooth.data.reading.sources import of_files, ranked_rows, values_of_queries
from tfr_smooth.evaluation.segments import BySegment
from tfr_smooth.evaluation.trec import DEFAULT_MEASURES
from tfr_smooth.ranker.plan import TrainingPlan
from tfr_smooth.ranker.schema import Schema
from tfr_smooth.training.explanation import explain

if TYPE_CHECKING:
    from typing_extensions import Self

_SCORED = 1 << 12  # documents that are scored at once, unless a list is longer; not tuned


class FittedRanker(Estimator):
    """The methods of a `Ranker` after `fit`."""

    _estimator_type = "regressor"  # for scikit-learn's partial dependence
    features_: TableFeatures
    _plan: TrainingPlan  # of the last `fit`
    _schema: Schema
    _scorer: models.Scorer

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
        self._fitted()
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
        model = self._fitted()
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
        self._scorer = scorer
        self._function: tuple[models.Scorer, Any] | None = None  # scores documents
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
        score = self._compiled(self._scorer if scorer is None else scorer)
        rows, scores = lists.rows, np.zeros(lists.documents, np.float32)
        for places, lengths in in_parts(lists, _SCORED, whole=self._scores_lists):
            scores[places] = score(*self.features_.raw(lists, rows[places]), lengths)
        return scores

    def _compiled(self, scorer: models.Scorer) -> Any:
        """Returns the function from the raw values and the lengths of lists to scores [rows]; compiled once."""
        if self._function is None or self._function[0] is not scorer:

            def score(numbers: tf.Tensor, others: dict[str, tf.Tensor], lengths: tf.Tensor) -> tf.Tensor:
                features, mask = self.features_.prepare_lists(numbers, others, lengths)
                return tf.boolean_mask(scorer({"features": features, "mask": mask}, training=False), mask)

            specs = (*self.features_.raw_specs, tf.TensorSpec([None], tf.int64))
            self._function = (scorer, _compiled.traced(score, input_signature=specs))
        return self._function[1]
