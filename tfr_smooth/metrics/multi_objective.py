"""Metrics of labels of several objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _padded, _serialization


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
