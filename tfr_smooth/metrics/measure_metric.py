"""The Keras metric of any measure of any ranking, and its mean over labels of several objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import tensorflow as tf

from tfr_smooth import _arguments, _lookup, _padded, _serialization
from tfr_smooth.measures import Measure
from tfr_smooth.rankings import ExactRanking, Ranking

NO_RELEVANT = ("zero", "skip")


class MetricOptions(TypedDict, total=False):
    """The arguments of every metric of a measure; see `MeasureMetric`."""

    no_relevant: str
    ragged: bool
    name: str | None
    dtype: Any


@_serialization.register
class MeasureMetric(_serialization.Restorable, tf.keras.metrics.Metric):
    """The weighted mean over lists of a measure, by default of the exact ranking.

    Empty lists are always excluded. NaN among the real labels or scores of a list makes the result NaN. Keras 3
    callbacks with `mode="auto"` maximize the metric, unless lower values of the measure are better.

    Metrics of the rankings and measures of this library also have names: `metrics.get("ndcg@10")`, and
    `metrics.get("smoothi_ndcg", alpha=10.0)` for the value that the loss of this name optimizes.

    Args:
      measure: A measure, such as `measures.NDCG(topn=10)`.
      ranking: A ranking, such as `rankings.SmoothI(alpha=10.0)`. None uses `rankings.ExactRanking()`.
      no_relevant: How to treat non-empty lists without a relevant document: "zero" counts them as 0 (trec_eval, the
        papers), "skip" excludes them (as the losses do).
      ragged: Whether labels and scores are `tf.RaggedTensor`s.
      name: Name of the metric. None uses the name of the measure, with the cutoff ("ndcg_10"), or that of the smooth
        metric ("smoothi_ndcg").
      dtype: Type of the result; the mean is accumulated in float64. None uses Keras's default.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the ranking. The config contains the ranking and the measure; see `losses.MeasureLoss`.

    Attributes:
      ranking: The ranking that is measured.
      measure: The measure of `ranking`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures, metrics
      >>> metric = metrics.MeasureMetric(measures.ReciprocalRank())
      >>> metric.update_state(tf.constant([[0, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))
      >>> print(round(float(metric.result()), 4))
      0.3333
    """

    def __init__(
        self,
        measure: Measure,
        *,
        ranking: Ranking | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        measure = _arguments.instance("measure", measure, Measure)
        ranking = ExactRanking() if ranking is None else _arguments.instance("ranking", ranking, Ranking)
        super().__init__(name=name or _default_name(measure, ranking), dtype=dtype)
        self.ranking = ranking
        self.measure = measure
        self._direction = "down" if measure.lower_is_better else "up"  # read by Keras 3's callbacks with mode="auto"
        self.no_relevant = _arguments.choice("no_relevant", no_relevant, NO_RELEVANT)
        self.ragged = _arguments.boolean("ragged", ragged)
        # In float64, the mean rounds to the same float32 for any number and order of batches and replicas.
        self._total = self.add_weight(name="total", shape=(), initializer="zeros", dtype="float64")
        self._count = self.add_weight(name="count", shape=(), initializer="zeros", dtype="float64")

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
    def update_state(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None
    ) -> None:
        """Adds a batch to the mean.

        Args:
          y_true: Labels [batch, list], float or int, >= 0; negative labels mark padding. Or a dict of "labels" and
            "mask" [batch, list], False for padding. A `measures.SubtopicMeasure` takes labels [batch, list, subtopics].
          y_pred: Scores [batch, list] or [batch, list, 1], any float type. Their Keras mask, if any, marks padding too.
          sample_weight: A number, one weight per list ([batch] or [batch, 1]) or one per document ([batch, list]; the
            list's weight is sum(w y) / sum(y); see `losses.list_weights`). None uses 1.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        weights, values = self.by_list(y_true, y_pred, sample_weight)
        self._total.assign_add(tf.reduce_sum(weights * values))
        self._count.assign_add(tf.reduce_sum(weights))

    def by_list(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the weights and the values of lists, float64 [batch] each; 0 for excluded lists.

        Args:
          y_true: As for `update_state`.
          y_pred: As for `update_state`.
          sample_weight: As for `update_state`.
        """
        batch = _padded.from_keras(y_true, y_pred, ragged=self.ragged, dtype=None, clean=self.measure.clean)
        values = batch.validity * self.measure.compute(batch.labels, batch.scores, batch.mask, self.ranking)
        counts = tf.reduce_any(batch.mask, axis=1)
        if self.no_relevant == "skip":
            has_relevant = self.measure.has_relevant(batch.labels, batch.mask)
            counts = tf.logical_and(counts, tf.logical_or(has_relevant, tf.math.is_nan(batch.validity)))
        if isinstance(sample_weight, tf.RaggedTensor):
            sample_weight = _padded.weights_from_keras(sample_weight, y_true, batch.labels, batch.mask)
        weights = self.measure.list_weights(sample_weight, batch.labels, batch.mask)
        filled = [_padded.fill(tf.cast(tensor, tf.float64), counts, 0.0) for tensor in (weights, values)]
        return filled[0], filled[1]

    def result(self) -> tf.Tensor:
        """Returns the mean over all batches so far.

        Returns:
          A scalar; 0 if no list was included.
        """
        total, count = tf.convert_to_tensor(self._total), tf.convert_to_tensor(self._count)
        return tf.cast(tf.math.divide_no_nan(total, count), self.dtype or tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return _serialization.arguments_of(self, options=MetricOptions)


def _default_name(measure: Measure, ranking: Ranking) -> str:
    name, topn = _lookup.name_of(ranking, measure) or "measure_metric", getattr(measure, "topn", None)
    return name if topn is None or not isinstance(ranking, ExactRanking) else f"{name}_{topn}"


@_serialization.register
class MultiObjectiveMetric(_serialization.ConfiguredLayer, tf.keras.metrics.Metric):
    r"""Weighted mean over objectives of a metric, each of its own label: $\sum_k w_k m_k / \sum_k w_k$.

    The counterpart of `losses.MultiObjectiveLoss`.

    Args:
      metric: A metric of labels [batch, list], such as `metrics.NDCGMetric(topn=10)`. Each objective has a copy.
      weights: One weight w >= 0 per objective, not all 0.
      name: Name of the metric. None uses that of `metric`.
      dtype: Type of the result. None uses Keras's default.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the metric for each objective.

    Attributes:
      objectives: The metric of each objective.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.MultiObjectiveMetric(metrics.MRRMetric(), weights=[1.0, 0.5])
      >>> labels = tf.constant([[[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])  # relevance and purchase of three documents
      >>> metric.update_state(labels, tf.constant([[3.0, 2.0, 1.0]]))
      >>> print([round(float(each.result()), 4) for each in metric.objectives], round(float(metric.result()), 4))
      [1.0, 0.3333] 0.7778
    """

    def __init__(
        self,
        metric: tf.keras.metrics.Metric,
        *,
        weights: Sequence[float],
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        _arguments.instance("metric", metric, tf.keras.metrics.Metric)
        super().__init__(name=name or metric.name, dtype=dtype)
        self._objective_weights = _arguments.weights("weights", weights)
        self.objectives = [type(metric).from_config(metric.get_config()) for _ in self._objective_weights]

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
    def update_state(self, y_true: Any, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None) -> None:
        """Adds a batch.

        Args:
          y_true: Labels [batch, list, objectives], >= 0; negative labels mark padding. Or a dict of "labels" and "mask"
            [batch, list], False for padding.
          y_pred: Scores [batch, list].
          sample_weight: Weights as the metric takes them. None uses 1.

        Raises:
          ValueError: If the shapes do not match.
        """
        for metric, labels in zip(self.objectives, _padded.by_objective(y_true, len(self.objectives)), strict=True):
            metric.update_state(labels, y_pred, sample_weight=sample_weight)

    def by_list(self, y_true: Any, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None) -> Any:
        """Returns the weights and the values of lists, float64 [batch] each: weighted means over objectives.

        Args:
          y_true: As for `update_state`.
          y_pred: As for `update_state`.
          sample_weight: As for `update_state`.
        """
        labels = zip(self.objectives, _padded.by_objective(y_true, len(self.objectives)), strict=True)
        of_lists = [metric.by_list(each, y_pred, sample_weight) for metric, each in labels]
        weights, values = tf.unstack(tf.convert_to_tensor(of_lists), axis=1)
        weights *= tf.constant(self._objective_weights, weights.dtype)[:, tf.newaxis]
        total = tf.reduce_sum(weights, axis=0)
        return total, tf.math.divide_no_nan(tf.reduce_sum(weights * values, axis=0), total)

    def result(self) -> tf.Tensor:
        """Returns the weighted mean over objectives of their means over all batches so far.

        Returns:
          A scalar.
        """
        total = sum(self._objective_weights)
        weighted = zip(self._objective_weights, self.objectives, strict=True)
        return tf.add_n([weight / total * metric.result() for weight, metric in weighted if weight])

    def reset_state(self) -> None:
        """Discards all batches."""
        for metric in self.objectives:
            metric.reset_state()

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = {"metric": tf.keras.metrics.serialize(self.objectives[0]), "weights": self._objective_weights}
        return {**config, "name": self.name, "dtype": self.dtype}
