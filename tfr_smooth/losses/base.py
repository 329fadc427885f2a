"""What every ranking loss shares: inputs, weights, reduction, replicas, config."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _keras
from tfr_smooth.functional import Ranking, RankingMetric, list_weights, parts, real_documents, to_dense
from tfr_smooth.losses import compiled
from tfr_smooth.ops import lists

REDUCTIONS = ("sum_over_batch_size", "sum", "none")


class RankingLoss(tf.keras.losses.Loss):
    """Base of the losses: from one value a list to what Keras trains on.

    Subclasses define `list_losses`. Lists that do not count (all padding, no relevant document) are left out of value
    and gradient, and out of the number that "sum_over_batch_size" divides by; with "none" they are 0. Under a
    `tf.distribute` strategy that number is the global one, so that a step does not depend on how a batch is split
    over replicas.

    Args:
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size" (the sum over lists of weight times loss, divided by the number of lists that
        count), "sum", or "none" ([batch]).

    Raises:
      ValueError: If an argument is not one of these.
    """

    def __init__(self, *, ragged: bool, name: str | None, reduction: str) -> None:
        _arguments.boolean("ragged", ragged)
        _arguments.choice("reduction", reduction, REDUCTIONS)
        super().__init__(reduction=reduction, name=name)
        self._ragged = ragged

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Computes the loss of each list.

        Args:
          labels: [batch, list], < 0 is padding.
          scores: [batch, list].

        Returns:
          ([batch] losses, [batch] bool: whether the list counts).
        """
        raise NotImplementedError

    def passes_over_pairs(self) -> float:
        """Returns about how often the loss passes over all pairs of documents, an `ops.Approx` being 1 pass.

        In graphs (as `model.fit` has them) a loss that does is compiled where the batch is large: the program takes
        about half the time, and compiling it, about a second for each size of batches, has paid after some tens of
        steps. Infinity: it is compiled whatever the batch. Losses of one class with the same `get_config` share their
        programs.
        """
        return 0

    def cases(self, scores: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tuple[RankingLoss, ...]]:
        """Returns which of some losses is this one for a batch (an int32 scalar), and those losses.

        Each of them is compiled when it is first needed, in place of this one.

        Args:
          scores: [batch, list], float32 or float64.
          mask: [batch, list] bool, False for padding.
        """
        return tf.constant(0), (self,)

    def _values(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if tf.executing_eagerly() or not self.passes_over_pairs():
            return self.list_losses(labels, scores)
        return compiled.list_losses(self, labels, scores)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the unweighted loss of each list, [batch]; 0 for lists that do not count."""
        labels, scores = to_dense(y_true, y_pred, self._ragged)
        losses, counts = self._values(labels, scores)
        return lists.filled(losses, counts, 0.0)

    def __call__(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None
    ) -> tf.Tensor:
        """Computes the reduced loss.

        Args:
          y_true: Labels [batch, list], float or int; < 0 is padding.
          y_pred: Scores [batch, list], any float type.
          sample_weight: None, a number, one weight a list ([batch] or [batch, 1]) or one a document ([batch, list],
            which becomes the list's weight by TF-Ranking's rule, sum(w y) / sum(y)).

        Returns:
          A scalar, or [batch] for the reduction "none"; float64 for float64 scores, else float32.

        Raises:
          ValueError: If the shapes do not match.
        """
        with tf.name_scope(self.name or type(self).__name__):
            labels, scores = to_dense(y_true, y_pred, self._ragged)
            losses, counts = self._values(labels, scores)
            if sample_weight is not None:
                labels = tf.cast(labels, losses.dtype)
                losses *= list_weights(sample_weight, labels, real_documents(labels))
            losses = lists.filled(losses, counts, 0.0)
            if self.reduction == "none":
                return losses
            if self.reduction == "sum":
                return tf.reduce_sum(losses)
            return _mean_over_replicas(tf.reduce_sum(losses), tf.reduce_sum(tf.cast(counts, losses.dtype)))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"ragged": self._ragged, "name": self.name, "reduction": self.reduction}


def _mean_over_replicas(total: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """The mean over the lists of all replicas, in the scale that Keras expects; its gradient is this replica's part."""
    context = tf.distribute.get_replica_context()
    replicas = 1 if context is None else context.num_replicas_in_sync
    if replicas == 1:
        return tf.math.divide_no_nan(total, count)
    global_total, count = context.all_reduce(tf.distribute.ReduceOp.SUM, [total, count])
    # Keras sums the gradients over replicas, and shows the mean of the values, weighted by numbers of lists: so each
    # replica has the gradient of its part, and all have the same value.
    part, mean = tf.math.divide_no_nan(total, count), tf.math.divide_no_nan(global_total, count)
    if _keras.IS_KERAS_3:  # There the loss itself divides by the number of replicas, in Keras 2 the training loop.
        mean /= tf.cast(replicas, mean.dtype)
    else:
        part *= tf.cast(replicas, part.dtype)
    return part + tf.stop_gradient(mean - part)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class MetricLoss(RankingLoss):
    r"""1 - metric, for any metric read off any ranking: $1 - m(y, s; \mathrm{ranking})$.

    Args:
      ranking: A smooth ranking, such as `ops.SmoothI(alpha=10.0)` or `ops.Approx()`.
      metric: A metric, such as `functional.NDCG(topn=10)`.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is not one of these.

    Time and memory are the ranking's. A config names the two parts; so that a model with a ranking or metric of your
    own loads again, give its class a `get_config` and register it with `tf.keras.utils.register_keras_serializable`.

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
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._ranking = ranking
        self._metric = metric

    @property
    def ranking(self) -> Ranking:
        """The ranking that the metric is read off."""
        return self._ranking

    @property
    def metric(self) -> RankingMetric:
        """The metric that the loss is one minus of, when read off `ranking`."""
        return self._metric

    def passes_over_pairs(self) -> float:
        """Returns what the ranking says of itself; 0 for one that says nothing."""
        passes = getattr(self._ranking, "passes_over_pairs", None)
        return 0 if passes is None else passes(getattr(self._metric, "topn", None))

    def cases(self, scores: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tuple[RankingLoss, ...]]:
        """Returns the cases of the ranking, if it has some."""
        cases = getattr(self._ranking, "cases", None)
        if cases is None or type(self).list_losses is not MetricLoss.list_losses:
            return super().cases(scores, mask)
        which, rankings = cases(scores, mask)
        return which, tuple(MetricLoss(ranking, self._metric) for ranking in rankings)

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ([batch] 1 - metric, [batch] whether the list has a relevant document)."""
        return 1.0 - self._metric(labels, scores, ranking=self._ranking), self._metric.has_relevant(labels)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments: those of the ranking, of the metric and of every loss."""
        return {**parts.config_of(type(self), self._ranking, self._metric), **super().get_config()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MetricLoss:
        """Makes the loss from what `get_config` returned."""
        return cls(**{name: parts.decode(value) for name, value in config.items()})
