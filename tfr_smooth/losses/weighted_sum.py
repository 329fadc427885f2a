"""Weighted sums of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfr_smooth import _arguments, _lists, _lookup, _serialization
from tfr_smooth.losses.loss_table import get
from tfr_smooth.losses.multi_score import MultiScoreLoss
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


@tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)
class WeightedSumLoss(RankingLoss):
    r"""Weighted sum of ranking losses: $\sum_k w_k L_k(y, s)$ for each list.

    The counterpart of TF-Ranking's lists of loss names with weights, such as a softmax loss with a little regression
    for calibration. $L_k$ is 0 for lists that its loss excludes. Lists that all losses exclude are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      losses: Losses, or their names. Their own `dtype`, `ragged` and `reduction` are not used.
      weights: One weight w >= 0 per loss. None uses 1 for each.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are the sum of those of the losses.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.WeightedSumLoss(["softmax", losses.MeanSquaredLoss()], weights=[1.0, 0.1])
      >>> print(loss(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]])).numpy().round(4))
      0.8381
    """

    def __init__(
        self,
        losses: Sequence[RankingLoss | str],
        *,
        weights: Sequence[float] | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        if isinstance(losses, str) or not losses:
            raise ValueError(f"`losses` must be a sequence of losses or names, got {losses!r}.")
        self.losses = [get(loss) if isinstance(loss, str) else loss for loss in losses]
        for loss in self.losses:
            if isinstance(_arguments.instance("losses", loss, RankingLoss), MultiScoreLoss):
                raise ValueError(f"`losses` must be losses of one score per document, got {loss!r}.")
        weights = [1.0] * len(self.losses) if weights is None else list(weights)
        if len(weights) != len(self.losses):
            raise ValueError(f"`weights` must have one entry per loss, {len(self.losses)}, got {len(weights)}.")
        self.weights = [_arguments.real("weights", weight, least=0.0) for weight in weights]

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        return tf.add_n(
            [
                weight * _lists.fill(loss.compute(labels, scores, mask), loss.counts(labels, mask), 0.0)
                for loss, weight in zip(self.losses, self.weights, strict=True)
            ]
        )

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists that all losses exclude."""
        return tf.reduce_any(tf.stack([loss.counts(labels, mask) for loss in self.losses]), axis=0)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"losses": [_lookup.serialize(loss) for loss in self.losses], **super().get_config()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> WeightedSumLoss:
        """Creates the loss from the result of `get_config`."""
        parts = [_lookup.deserialize(part, RankingLoss) for part in config["losses"]]
        return cls(**{**config, "losses": parts})
