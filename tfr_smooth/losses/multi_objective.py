"""Losses of labels of several objectives, such as relevance and purchases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfr_smooth import _arguments, _lists, _serialization
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss
from tfr_smooth.losses.weighted_sum import WeightedSumLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


@tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)
class MultiObjectiveLoss(WeightedSumLoss):
    r"""Linear scalarization of objectives with a label each: $\sum_k w_k L_k(y_k, s)$ for each list.

    Each objective, such as relevance or purchases, has its own label $y_k$ of a document, and all share the scores.
    Minimizing the sum for weights $w_k > 0$ gives a Pareto optimum of the losses: none can decrease unless another one
    increases. `data.draw_labels` is the stochastic alternative.

    $L_k$ is 0 for lists that it excludes, such as lists without a purchase. Lists that all objectives with a weight
    above 0 exclude are excluded. Documents with a label < 0 of an objective are padding for this objective only.

    Call with labels [batch, list, objectives] (float or int, >= 0; negative labels mark padding) and scores
    [batch, list]. Returns a scalar, or [batch] for the reduction "none". Weights of documents become a weight of their
    list for each objective, by its labels.

    Args:
      losses: A loss or its name, for all objectives; or one for each. Their own `dtype`, `ragged` and `reduction` are
        not used.
      weights: One weight w >= 0 per objective, not all 0. Objectives with the weight 0 are not computed.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid, or the labels have another shape.

    Time and memory are the sum of those of the losses.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.MultiObjectiveLoss("softmax", weights=[1.0, 0.5])
      >>> relevance, purchases = tf.constant([[2.0, 1.0, 0.0]]), tf.constant([[0.0, 1.0, 0.0]])
      >>> scores = tf.constant([[0.6, 0.8, 0.1]])
      >>> print(loss(tf.stack([relevance, purchases], axis=2), scores).numpy().round(4))
      3.3384
    """

    def __init__(
        self,
        losses: RankingLoss | str | Sequence[RankingLoss | str],
        *,
        weights: Sequence[float],
        **options: Unpack[LossOptions],
    ) -> None:
        weights = _arguments.weights("weights", weights)
        each = [losses] * len(weights) if isinstance(losses, RankingLoss | str) else losses
        super().__init__(each, weights=weights, **options)

    def _per_list(
        self, y_true: Any, y_pred: Any, weight: Any, loss: RankingLoss | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        labels = _lists.by_objective(y_true, len(self.weights))
        totals, shares = [], []
        for each, factor, own in zip(self.losses, self.weights, labels, strict=True):
            if factor:
                values, share = super()._per_list(own, y_pred, weight, each)
                totals.append(factor * values)
                shares.append(share)
        return tf.add_n(totals), tf.reduce_max(tf.stack(shares), axis=0)
