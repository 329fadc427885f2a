"""Base classes of the ranking losses: inputs, weights, reduction, replicas, config."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras, _serialization
from tfr_smooth.functional import Criterion, RankingMetric, inputs
from tfr_smooth.ops import Ranking, lists

# Reduction names of both Keras versions -> the reduction used here.
REDUCTIONS = {
    "sum_over_batch_size": "sum_over_batch_size",
    "mean": "sum_over_batch_size",
    "auto": "sum_over_batch_size",
    "sum": "sum",
    "none": "none",
    None: "none",
}


class RankingLoss(tf.keras.losses.Loss):
    """Base class of the ranking losses; reduces per-list losses to a Keras loss.

    A subclass overrides `compute`. It also overrides `counts` if lists without a relevant document are included.
    Excluded lists do not contribute to value or gradient, regardless of their weight, nor to the number of lists that
    "sum_over_batch_size" divides by. With "none" their loss is 0. Under a `tf.distribute` strategy, the number of lists
    is the global number, so a training step does not depend on the split of a batch over replicas.

    Args:
      ragged: Whether labels and scores are `tf.RaggedTensor`s.
      name: Name of the loss. None uses Keras's default.
      reduction: "sum_over_batch_size", "mean" or "auto" for the weighted sum over lists divided by the number of
        included lists; "sum" for the weighted sum; "none" or None for [batch] losses.

    Raises:
      ValueError: If `ragged` or `reduction` is invalid.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> class HighestScore(tfr_smooth.losses.RankingLoss):  # of the documents that are not relevant
      ...     def compute(self, labels, scores, mask):
      ...         return tf.reduce_max(tf.where(mask & (labels < 1.0), scores, scores.dtype.min), axis=1)
      >>> print(float(HighestScore()(tf.constant([[1, 0, 0, -1]]), tf.constant([[4.0, 1.0, 2.0, 9.0]]))))
      2.0
    """

    def __init__(
        self, *, ragged: bool = False, name: str | None = None, reduction: str | None = "sum_over_batch_size"
    ) -> None:
        _arguments.boolean("ragged", ragged)
        if reduction is not None:
            _arguments.choice("reduction", reduction, [known for known in REDUCTIONS if known])
        super().__init__(reduction=REDUCTIONS[reduction], name=name)
        self._ragged = ragged

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Rejects subclasses that override `call`, which gets inputs before padding and NaN are handled."""
        super().__init_subclass__(**kwargs)
        if "call" in vars(cls):
            raise TypeError(f"{cls.__name__} must override `compute(labels, scores, mask)` instead of `call`.")

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Computes the loss of each list from clean inputs.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          scores: [batch, list], finite, in the type of the labels; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch].
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `compute`.")

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns which lists are included. By default, lists without a relevant document (label > 0) are excluded.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch] bool, False for excluded lists.
        """
        return tf.reduce_any(tf.logical_and(labels > 0.0, mask), axis=1)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the unweighted loss of each list, [batch]; 0 for excluded lists."""
        return self._list_losses(inputs.clean(*inputs.to_dense(y_true, y_pred, self._ragged)))[0]

    def _list_losses(self, batch: inputs.Batch) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss of each list, [batch], 0 for excluded lists; and which lists are included, [batch] bool."""
        losses = batch.validity * self.compute(batch.labels, batch.scores, batch.mask)
        # Lists with NaN are included, so that NaN propagates.
        counts = tf.logical_or(self.counts(batch.labels, batch.mask), tf.math.is_nan(batch.validity))
        return lists.fill(losses, counts, 0.0), counts

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
    def __call__(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None
    ) -> tf.Tensor:
        """Computes the reduced loss.

        Args:
          y_true: Labels [batch, list], float or int, >= 0; negative labels mark padding.
          y_pred: Scores [batch, list], any float type.
          sample_weight: A number, one weight per list ([batch] or [batch, 1]) or one per document ([batch, list]; the
            list's weight is sum(w y) / sum(y), as in TF-Ranking). None uses 1.

        Returns:
          A scalar, or [batch] for the reduction "none"; float64 for float64 scores, else float32.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        _keras.refuse_other_keras()
        with tf.name_scope(self.name or type(self).__name__):
            batch = inputs.clean(*inputs.to_dense(y_true, y_pred, self._ragged))
            losses, counts = self._list_losses(batch)
            if sample_weight is not None:
                weights = inputs.list_weights(inputs.dense_weights(sample_weight, y_true), batch.labels, batch.mask)
                # Replace the weights of excluded lists before multiplying: they may be infinite or NaN.
                losses *= lists.fill(weights, counts, 0.0)
            if self.reduction == "none":
                return losses
            if self.reduction == "sum":
                return tf.reduce_sum(losses)
            return self._mean(tf.reduce_sum(losses), tf.reduce_sum(tf.cast(counts, losses.dtype)))

    def _mean(self, total: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """Returns the mean over the lists of all replicas in Keras's scale, with the gradient of this replica."""
        context = tf.distribute.get_replica_context()
        replicas = 1 if context is None else context.num_replicas_in_sync
        if replicas == 1:
            return tf.math.divide_no_nan(total, count)
        if not _keras.IS_KERAS_3:
            # Outside of `fit`, Keras 2 does not divide by the number of replicas and rejects this reduction.
            self._get_reduction()
        global_total, count = context.all_reduce(tf.distribute.ReduceOp.SUM, [total, count])
        # Keras sums gradients over replicas and reports the mean of the values, weighted by numbers of lists. So each
        # replica has the gradient of its part, and all replicas have the same value.
        part, mean = tf.math.divide_no_nan(total, count), tf.math.divide_no_nan(global_total, count)
        if _keras.IS_KERAS_3:  # The loss divides by the number of replicas; in Keras 2 the training loop does.
            mean /= tf.cast(replicas, mean.dtype)
        else:
            part *= tf.cast(replicas, part.dtype)
        return part + tf.stop_gradient(mean - part)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"ragged": self._ragged, "name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> RankingLoss:
        """Creates the loss from the result of `get_config`."""
        return cls(**{name: _serialization.decode(value) for name, value in config.items()})

    def __repr__(self) -> str:
        """Returns the constructor call."""
        return _keras.representation(self)


@tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)
class MetricLoss(RankingLoss):
    r"""1 - metric for any metric computed from any ranking: $1 - m(y, s; \mathrm{ranking})$.

    Lists without a relevant document are excluded.

    Args:
      ranking: A smooth ranking, such as `ops.SmoothI(alpha=10.0)` or `ops.Approx()`.
      metric: A metric, such as `functional.NDCG(topn=10)`.
      ragged: Whether labels and scores are `tf.RaggedTensor`s.
      name: Name of the loss. None uses Keras's default.
      reduction: "sum_over_batch_size", "sum" or "none"; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the ranking. The config contains the ranking and the metric. To load models with a
    ranking or metric of your own, give its class a `get_config` and register it with
    `tf.keras.utils.register_keras_serializable`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional, losses, ops
      >>> loss = losses.MetricLoss(ops.Approx(alpha=100.0), functional.AveragePrecision())
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 2))
      0.17
    """

    def __init__(
        self,
        ranking: Ranking,
        metric: RankingMetric,
        *,
        ragged: bool = False,
        name: str | None = "metric_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._ranking = _arguments.instance("ranking", ranking, Ranking)
        self._metric = _arguments.instance("metric", metric, RankingMetric)

    @property
    def ranking(self) -> Ranking:
        """The ranking from which the metric is computed."""
        return self._ranking

    @property
    def metric(self) -> RankingMetric:
        """The metric; the loss is one minus its value under `ranking`."""
        return self._metric

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch]: 1 - metric."""
        return 1.0 - self._metric.compute(self._metric.relevance(labels), scores, mask, self._ranking)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists without a relevant document."""
        return self._metric.has_relevant(labels, mask)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        parts = {"ranking": self._ranking, "metric": self._metric}
        return {**{name: _serialization.encode(part) for name, part in parts.items()}, **super().get_config()}


class CriterionLoss(RankingLoss):
    """A criterion of `tfr_smooth.functional` as a Keras loss.

    Args:
      criterion: The criterion, such as `functional.ListNetCriterion()`.
      ragged: Whether labels and scores are `tf.RaggedTensor`s.
      name: Name of the loss. None uses Keras's default.
      reduction: "sum_over_batch_size", "sum" or "none"; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the criterion.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional, losses
      >>> loss = losses.CriterionLoss(functional.RankNetCriterion(sigma=2.0))
      >>> print(round(float(loss(tf.constant([[1, 0, -1]]), tf.constant([[2.0, 1.0, 9.0]]))), 4))
      0.1269
    """

    def __init__(
        self,
        criterion: Criterion,
        *,
        ragged: bool = False,
        name: str | None = "criterion_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._criterion = _arguments.instance("criterion", criterion, Criterion)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch]: the criterion."""
        return self._criterion.compute(labels, scores, mask)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists excluded by the criterion."""
        return self._criterion.counts(labels, mask)
