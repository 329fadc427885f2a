"""Base class of the ranking losses: inputs, weights, reduction, replicas, config."""

from __future__ import annotations

import math
import re
from typing import Any, TypedDict

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _keras, _padded, _serialization

# Reduction names of both Keras versions -> the reduction used here.
REDUCTIONS = {
    "sum_over_batch_size": "sum_over_batch_size",
    "mean": "sum_over_batch_size",
    "auto": "sum_over_batch_size",
    "mean_with_sample_weight": "mean_with_sample_weight",
    "sum": "sum",
    "none": "none",
    None: "none",
}


# Of the gain 2^y - 1; the limit of LightGBM and XGBoost, too. Far above it, gradients vanish or overflow.
HIGHEST_GRADE = 31.0


class LossOptions(TypedDict, total=False):
    """The arguments of every ranking loss; see `RankingLoss`."""

    dtype: Any
    ragged: bool
    name: str | None
    reduction: str | None


class RankingLoss(_serialization.Restorable, tf.keras.losses.Loss):
    """Base class of the ranking losses; reduces per-list losses to a Keras loss.

    Value and gradient of the losses of this library are finite for finite labels, scores and weights. Labels above 1e9
    count as 1e9, scores beyond 1e15 and weights beyond 1e9 as these. Temperatures and other factors of scores must be
    in [1e-10, 1e10]. Second derivatives of losses with compiled programs are an error. A NaN or infinite label, or a
    NaN score, makes the loss of its list NaN, in eager mode and in graphs.

    Weights of documents multiply the terms of the documents in pointwise losses and in `SoftmaxLoss`, and those of the
    pairs of the document with documents of lower labels in pairwise losses, as in TF-Ranking. In the other, listwise,
    losses, they become one weight per list, `list_weights`.

    A subclass overrides `compute`. It also overrides `counts` if lists without a relevant document are included. A loss
    that weights more than lists overrides `weighted` instead of `compute`.

    Excluded lists do not contribute to value or gradient, regardless of their weight, nor to the number of lists that
    "sum_over_batch_size" divides by. With "none" their loss is 0. Under a `tf.distribute` strategy, the number of lists
    is the global number, so a training step does not depend on the split of a batch over replicas.

    The config contains the arguments of the constructor, from attributes of the same names.

    Args:
      dtype: Type of the computation and the result, float32 or float64. None uses float64 for float64 scores, else
        float32. float16 and bfloat16 mean float32.
      ragged: Whether labels and scores are `tf.RaggedTensor`s.
      name: Name of the loss. None uses that of the class in snake case, such as "softmax_loss".
      reduction: "sum_over_batch_size", "mean" or "auto" for the weighted sum over lists divided by the number of
        included lists; "mean_with_sample_weight" for the weighted sum divided by the sum of the weights of included
        lists (for pointwise losses, the mean weights of their documents); "sum" for the weighted sum; "none" or None
        for [batch] losses.

    Raises:
      ValueError: If an argument is invalid.

    Attributes:
      highest_label: The highest label that `Ranker.fit` takes; finite for losses with an exponential gain that cannot
        learn from higher ones.
      shift_invariant: Whether adding a constant to all scores of a list changes neither value nor gradient. Models need
        no bias in their last layer then.
      learns_values: Whether the loss has labels as targets, so that it learns from lists of one document, too.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> class HighestScore(tfr_smooth.losses.RankingLoss):  # of the documents that are not relevant
      ...     def compute(self, labels, scores, mask):
      ...         return tf.reduce_max(tf.where(mask & (labels < 1.0), scores, scores.dtype.min), axis=1)
      >>> print(float(HighestScore()(tf.constant([[1, 0, 0, -1]]), tf.constant([[4.0, 1.0, 2.0, 9.0]]))))
      2.0
    """

    highest_label: float = math.inf
    shift_invariant: bool = False
    learns_values: bool = False

    def __init__(
        self,
        *,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = None,
        reduction: str | None = "sum_over_batch_size",
    ) -> None:
        _keras.warn_of_other_keras()
        if reduction is not None:
            _arguments.choice("reduction", reduction, [known for known in REDUCTIONS if known])
        super().__init__(name=name or self._default_name())
        self.reduction = REDUCTIONS[reduction]
        self.ragged = _arguments.boolean("ragged", ragged)
        self._computed_in = _arguments.float_type("dtype", dtype)

    def _default_name(self) -> str:
        """Returns the name of the class in snake case."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(self).__name__).lower()

    @property
    def dtype(self) -> str | None:
        """Type of the computation and the result; None for that of the scores."""
        return None if self._computed_in is None else self._computed_in.name

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Rejects subclasses that override a method that is not the one used."""
        super().__init_subclass__(**kwargs)
        if "call" in vars(cls):
            raise TypeError(f"{cls.__name__} must override `compute(labels, scores, mask)` instead of `call`.")
        if "compute" in vars(cls) and "weighted" not in vars(cls) and cls.weighted is not RankingLoss.weighted:
            raise TypeError(f"{cls.__name__} must override `weighted` instead of `compute`, as its base class does.")

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Computes the loss of each list from clean inputs; by default, `weighted` with weights of 1.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          scores: [batch, list], finite, in the type of the labels; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch].
        """
        if type(self).weighted is RankingLoss.weighted:
            raise NotImplementedError(f"{type(self).__name__} does not define `compute`.")
        return self.weighted(labels, scores, mask, tf.ones([tf.shape(labels)[0], 1], labels.dtype))

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Computes the weighted loss of each list; by default, its loss times `list_weights`.

        Args:
          labels: As for `compute`.
          scores: As for `compute`.
          mask: As for `compute`.
          weights: [batch, list], or [batch, 1] for weights of lists; 0 at padding.

        Returns:
          [batch].
        """
        return _padded.product(self.compute(labels, scores, mask), _padded.list_weights(weights, labels, mask))

    def weight_shares(self, weights: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns what a list adds to the divisor of the reduction "mean_with_sample_weight", [batch]; its weight."""
        return _padded.list_weights(weights, labels, mask)

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
        of_lists = object.__new__(type(self))  # a copy: `copy.copy` of Keras objects needs registered classes
        of_lists.__dict__.update(self.__dict__, reduction="none")
        return of_lists(y_true, y_pred)

    def _clean(self, y_true: Any, y_pred: Any) -> _padded.Batch:
        """Returns clean lists from what Keras passes."""
        return _padded.from_keras(y_true, y_pred, ragged=self.ragged, dtype=self._computed_in)

    def _terms(self, y_true: Any) -> list[tuple[float, RankingLoss, Any]]:
        """Returns the losses whose sum is this one: a factor, the loss and its labels each."""
        return [(1.0, self, y_true)]

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
    def __call__(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | float | None = None
    ) -> tf.Tensor:
        """Computes the reduced loss.

        Args:
          y_true: Labels [batch, list], float or int, >= 0; negative labels mark padding. Or a dict of "labels" and
            "mask" [batch, list], False for padding.
          y_pred: Scores [batch, list] or [batch, list, 1], any float type. Their Keras mask, if any, marks padding too.
          sample_weight: A number, one weight per list ([batch] or [batch, 1]) or one per document ([batch, list]; see
            `RankingLoss` for what it multiplies). None uses 1. Negative weights are not refused.

        Returns:
          A scalar, or [batch] for the reduction "none"; in `dtype`.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        with tf.name_scope(self.name or type(self).__name__):
            total, shares = [], []
            for factor, loss, of_loss in self._terms(y_true):
                labels, scores, mask, validity = _padded.bounded(self._clean(of_loss, y_pred))
                # Lists with NaN are included, so that NaN propagates.
                counts = tf.logical_or(loss.counts(labels, mask), tf.math.is_nan(validity))
                share = tf.cast(counts, labels.dtype)
                if sample_weight is None:
                    losses = loss.compute(labels, scores, mask)
                else:
                    # The weights of excluded lists may be infinite or NaN.
                    included = tf.logical_and(mask, counts[:, tf.newaxis])
                    weights = _padded.weights_from_keras(sample_weight, of_loss, labels, included)
                    losses = loss.weighted(labels, scores, mask, weights)
                    if self.reduction == "mean_with_sample_weight":
                        share = _padded.fill(loss.weight_shares(weights, labels, mask), counts, 0.0)
                total.append(factor * _padded.fill(validity * losses, counts, 0.0))
                shares.append(share)
            losses = tf.add_n(total)
            if self.reduction == "none":
                return losses
            if self.reduction == "sum":
                return tf.reduce_sum(losses)
            return self.mean(tf.reduce_sum(losses), tf.reduce_sum(tf.reduce_max(tf.stack(shares), axis=0)))

    def mean(self, total: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """Returns the mean over the lists of all replicas in Keras's scale, with the gradient of this replica.

        Args:
          total: A scalar, the sum of the losses of the lists of this replica.
          count: A scalar, their number.
        """
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
        return _serialization.arguments_of(self, options=LossOptions)


class TemperedLoss(RankingLoss):
    """Base class of losses that divide scores by a temperature, and do not change if all scores of a list are shifted.

    Args:
      temperature: What the scores are divided by, in [1e-10, 1e10].
      **options: `dtype`, `ragged`, `name` and `reduction`.
    """

    shift_invariant = True

    def __init__(self, *, temperature: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.temperature = _arguments.scale("temperature", temperature)


# The losses that have a class, by name. `table` adds the other combinations of a ranking and a measure.
LOSSES: _serialization.Registry[RankingLoss] = _serialization.Registry()
