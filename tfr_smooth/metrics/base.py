"""Base class of the ranking metrics: inputs, weights, running mean, config."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras, _serialization
from tfr_smooth.functional import RankingMetric, inputs
from tfr_smooth.ops import Ranking, lists

NO_RELEVANT = ("zero", "skip")


@tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)
class MeanOverLists(tf.keras.metrics.Metric):
    """The weighted mean over lists of a metric computed from a ranking.

    Empty lists are always excluded. NaN among the real labels or scores of a list makes the result NaN. Keras 3
    callbacks with `mode="auto"` maximize the metric.

    Args:
      ranking: A ranking, such as `ops.ExactRanking()` or `ops.SmoothI(alpha=10.0)`.
      metric: A metric, such as `functional.NDCG(topn=10)`.
      no_relevant: How to treat non-empty lists without a relevant document: "skip" excludes them, "zero" counts them
        as 0 (trec_eval, the papers).
      ragged: Whether labels and scores are `tf.RaggedTensor`s.
      name: Name of the metric. None uses Keras's default.
      dtype: Type of the result; the mean is accumulated in float64. None uses Keras's default.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the ranking. The config contains the ranking and the metric; see `losses.MetricLoss`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional, metrics, ops
      >>> metric = metrics.MeanOverLists(ops.ExactRanking(), functional.ReciprocalRank(), name="mrr")
      >>> metric.update_state(tf.constant([[0, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))
      >>> print(round(float(metric.result()), 4))
      0.3333
    """

    # Read by Keras 3's callbacks with mode="auto".
    _direction = "up"

    def __init__(
        self,
        ranking: Ranking,
        metric: RankingMetric,
        *,
        no_relevant: str = "skip",
        ragged: bool = False,
        name: str | None = "mean_over_lists",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._ranking = _arguments.instance("ranking", ranking, Ranking)
        self._metric = _arguments.instance("metric", metric, RankingMetric)
        self._no_relevant = _arguments.choice("no_relevant", no_relevant, NO_RELEVANT)
        self._ragged = _arguments.boolean("ragged", ragged)
        # In float64, the mean rounds to the same float32 for any number and order of batches and replicas.
        self._total = self.add_weight(name="total", shape=(), initializer="zeros", dtype="float64")
        self._count = self.add_weight(name="count", shape=(), initializer="zeros", dtype="float64")

    @property
    def ranking(self) -> Ranking:
        """The ranking from which the metric is computed."""
        return self._ranking

    @property
    def metric(self) -> RankingMetric:
        """The metric computed from `ranking`."""
        return self._metric

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
    def update_state(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None
    ) -> None:
        """Adds a batch to the mean.

        Args:
          y_true: Labels [batch, list], float or int, >= 0; negative labels mark padding.
          y_pred: Scores [batch, list], any float type.
          sample_weight: A number, one weight per list ([batch] or [batch, 1]) or one per document ([batch, list]; the
            list's weight is sum(w y) / sum(y), as in TF-Ranking). None uses 1.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        batch = inputs.clean(*inputs.to_dense(y_true, y_pred, self._ragged))
        relevance = self._metric.relevance(batch.labels)
        values = batch.validity * self._metric.compute(relevance, batch.scores, batch.mask, self._ranking)
        counts = tf.reduce_any(batch.mask, axis=1)
        if self._no_relevant == "skip":
            has_relevant = self._metric.has_relevant(batch.labels, batch.mask)
            counts = tf.logical_and(counts, tf.logical_or(has_relevant, tf.math.is_nan(batch.validity)))
        weights = inputs.list_weights(inputs.dense_weights(sample_weight, y_true), batch.labels, batch.mask)
        weights, values = (lists.fill(tf.cast(tensor, tf.float64), counts, 0.0) for tensor in (weights, values))
        self._total.assign_add(tf.reduce_sum(weights * values))
        self._count.assign_add(tf.reduce_sum(weights))

    def result(self) -> tf.Tensor:
        """Returns the mean over all batches so far.

        Returns:
          A scalar; 0 if no list was included.
        """
        total, count = tf.convert_to_tensor(self._total), tf.convert_to_tensor(self._count)
        return tf.cast(tf.math.divide_no_nan(total, count), self.dtype or tf.float32)

    def reset_state(self) -> None:
        """Discards all batches."""
        self._total.assign(0.0)
        self._count.assign(0.0)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        parts = {"ranking": self._ranking, "metric": self._metric}
        return {**{name: _serialization.encode(part) for name, part in parts.items()}, **self._common_config()}

    def _common_config(self) -> dict[str, Any]:
        return {"no_relevant": self._no_relevant, "ragged": self._ragged, "name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MeanOverLists:
        """Creates the metric from the result of `get_config`."""
        return cls(**{name: _serialization.decode(value) for name, value in config.items()})

    def __repr__(self) -> str:
        """Returns the constructor call."""
        return _keras.representation(self)
