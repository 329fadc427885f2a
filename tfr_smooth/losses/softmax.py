"""The softmax loss: cross entropy between the labels and the softmax of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses.lambda_weights import DCGLambdaWeight
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SoftmaxLoss(RankingLoss):
    r"""Softmax cross entropy: $-\sum_j y_j \log \mathrm{softmax}(s / \tau)_j$.

    (TF-Ranking's `SoftmaxLoss`; Bruch et al., "An Analysis of the Softmax Cross Entropy Loss for Learning-to-Rank with
    Binary Relevance", ICTIR 2019, Eq. 1, where the labels are divided by their sum.) Labels are not normalized, so
    lists with more relevant documents have more weight. Invariant to a shift of the scores. The loss is at least 0.
    Lists without a relevant document are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      lambda_weight: A `DCGLambdaWeight` or `NDCGLambdaWeight`: its $g_j D(r_j)$ replaces the label $y_j$. None uses the
        label.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list, time O(N log N) with a `lambda_weight`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 1.0, 9.0]])
      >>> print(losses.SoftmaxLoss(reduction="none")(labels, scores).numpy().round(4))
      [1.3863]
    """

    about: ClassVar = _about.AboutLoss(name="softmax", citation="Bruch et al. 2019, Eq. 1", cost=("N", "N"))

    def __init__(
        self, *, lambda_weight: DCGLambdaWeight | None = None, temperature: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**options)
        self.lambda_weight = _arguments.instance("lambda_weight", lambda_weight, DCGLambdaWeight, optional=True)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        if self.lambda_weight is not None:
            labels = self.lambda_weight.document_weights(labels, scores, mask)
        total = tf.reduce_sum(labels, axis=1)
        targets = tf.math.divide_no_nan(labels, total[:, tf.newaxis])
        return total * cross_entropy(targets, scores, mask, self.temperature)


def cross_entropy(targets: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, temperature: float) -> tf.Tensor:
    """Returns the cross entropy between the targets and the softmax of the scores divided by the temperature.

    Args:
      targets: [batch, list], >= 0 with the sum 1; constants to the gradient.
      scores: [batch, list].
      mask: [batch, list] bool, False for padding.
      temperature: Divisor of the scores, > 0.

    Returns:
      [batch].
    """
    return tf.nn.softmax_cross_entropy_with_logits(tf.stop_gradient(targets), _logits(scores, mask, temperature))


def log_softmax(scores: tf.Tensor, mask: tf.Tensor, temperature: float) -> tf.Tensor:
    """Returns the logarithm of the softmax of the scores divided by the temperature.

    Args:
      scores: [batch, list].
      mask: [batch, list] bool, False for padding.
      temperature: Divisor of the scores, > 0.

    Returns:
      [batch, list], finite, but meaningless at padding.
    """
    return tf.nn.log_softmax(_logits(scores, mask, temperature))


def _logits(scores: tf.Tensor, mask: tf.Tensor, temperature: float) -> tf.Tensor:
    """Returns the scores divided by the temperature, up to a constant per list."""
    # The difference first, so that a shift of the scores loses no precision. The clipping avoids overflow.
    highest = tf.reduce_max(_lists.fill(scores, mask, scores.dtype.min), axis=1, keepdims=True)
    lowest = scores.dtype.min / 4.0
    logits = tf.maximum(scores - tf.stop_gradient(highest), lowest * min(temperature, 1.0)) / temperature
    return _lists.fill(logits, mask, lowest)
