"""Base class and helpers of losses over pairs of documents."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import tensorflow as tf

from tfr_smooth import _arguments, _lists
from tfr_smooth.losses.lambda_weights import LambdaWeight
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PairwiseLoss(RankingLoss):
    """Base class of weighted sums over pairs with different labels; lists without such pairs are excluded."""

    def __init__(
        self, *, lambda_weight: LambdaWeight | None = None, temperature: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**options)
        self.lambda_weight = _arguments.instance("lambda_weight", lambda_weight, LambdaWeight, optional=True)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)

    @abc.abstractmethod
    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        r"""Returns the losses of pairs, elementwise, from their $(s_j - s_i) / \tau$ if $y_i > y_j$."""

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        weights = tf.cast(_lists.preferences(labels, mask), scores.dtype)
        if self.lambda_weight is not None:
            weights *= self.lambda_weight.pair_weights(labels, scores, mask)
        behind = scaled_differences(scores, tf.convert_to_tensor(1.0 / self.temperature, scores.dtype))
        # Divided before they are summed, so that the sum does not overflow.
        return tf.reduce_sum(
            weights / _lists.count(mask, scores.dtype)[:, :, tf.newaxis] * self.pair_losses(behind), axis=[1, 2]
        )

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _lists.varies(labels, mask)


def logistic(scores: tf.Tensor, sigma: float | tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\log(1 + e^{-\sigma (s_i - s_j)})$ at (i, j).

    Args:
      scores: [batch, list].
      sigma: Slope of the logistic function, > 0.
    """
    return tf.nn.softplus(scaled_differences(scores, tf.convert_to_tensor(sigma, scores.dtype)))


def scaled_differences(scores: tf.Tensor, sigma: tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\sigma (s_j - s_i)$ at (i, j)."""
    # Avoids overflow of the products with sigma.
    limit = scores.dtype.max / 4.0 / tf.maximum(sigma, 1.0)
    rows, columns = _lists.pairs(tf.clip_by_value(scores, -limit, limit))
    return sigma * (columns - rows)
