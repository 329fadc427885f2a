"""ListMLE: the likelihood of the ideal order under the Plackett-Luce model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ListMLELoss(RankingLoss):
    r"""ListMLE: $\sum_{i=1}^N \alpha_i \left(\log \sum_{k=i}^N e^{s_{\pi(k)}} - s_{\pi(i)}\right)$.

    $\pi$ is the order by descending label. $\alpha_i = 1$ (Xia et al., "Listwise Approach to Learning to Rank: Theory
    and Algorithm", ICML 2008) or, if position-aware, $\alpha_i = (2^{N-i} - 1) / (2^{N-1} - 1)$ (Lan et al.,
    "Position-Aware ListMLE", UAI 2014). The paper's weights are divided by the first weight, because $2^N$ overflows
    and the longest lists would dominate the others.

    Documents with the same label have no order. Each has their mean score as $s_{\pi(i)}$ and contributes the mean of
    their $e^s$ to the sums. So the loss does not depend on the order of documents in the list. It is an upper bound of
    the mean over all orders consistent with the labels (by Jensen's inequality; in survival analysis this is Efron's
    treatment of ties). The loss is at least 0. It is a sum over documents, so longer lists have larger losses. Lists
    without a relevant document are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      position_aware: Whether early positions have larger weights (p-ListMLE).
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `position_aware` is not a bool.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels = tf.constant([[1.0, 2.0, 0.0, -1.0]])
      >>> print(losses.ListMLELoss(reduction="none")(labels, tf.zeros([1, 4])).numpy().round(4))
      [1.7918]
    """

    about: ClassVar = _about.AboutLoss(
        name="list_mle",
        citation="Xia et al. 2008; Lan et al. 2014 for the position-aware form",
        cost=("N log N", "N"),
    )

    def __init__(self, *, position_aware: bool = False, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.position_aware = _arguments.boolean("position_aware", position_aware)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        # From the last position to the first, so that the sums run forward; padding comes last.
        lowest = labels.dtype.min
        negated, order = tf.math.top_k(_lists.fill(-labels, mask, lowest), tf.shape(labels)[1])
        mask = tf.not_equal(negated, lowest)
        scores = tf.gather(scores, order, batch_dims=1)
        # float64: a running sum over a long list loses precision, as does a difference of large scores.
        precise = tf.cast(scores, tf.float64)
        # Not padded with True, which `tf.vectorized_map` does not support.
        ties = _lists.Neighbors(tf.logical_not(tf.pad(tf.equal(negated[:, 1:], negated[:, :-1]), [[0, 0], [1, 0]])))
        highest = ties.maximum(precise)
        below = precise - highest
        # The log of the mean of e^s over ties. The 0 at padding has no effect, as padding comes last.
        weights = tf.math.log(ties.mean(tf.exp(below))) + highest
        terms = tf.math.cumulative_logsumexp(weights, axis=1) - highest - ties.mean(below)
        terms = tf.cast(_lists.fill(terms, mask, 0.0), scores.dtype)
        if self.position_aware:
            terms *= _position_weights(mask, scores.dtype)
        return tf.reduce_sum(terms, axis=1)


def _position_weights(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns (2^(N-i) - 1) / (2^(N-1) - 1) for i = N, N-1, ..., 1 without overflow; 0 for N = 1."""
    length = tf.reduce_sum(tf.cast(mask, dtype), axis=1, keepdims=True)
    after = tf.cast(tf.range(tf.shape(mask)[1]), dtype)[tf.newaxis]  # N - i
    two, last = tf.constant(2.0, dtype), tf.pow(tf.constant(2.0, dtype), 1.0 - length)
    weights = tf.pow(two, after + 1.0 - length) - last
    return tf.math.divide_no_nan(_lists.fill(weights, mask, 0.0), 1.0 - last)
