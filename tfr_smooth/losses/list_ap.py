"""ListAP: average precision of a histogram of the scores."""

from __future__ import annotations

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _padded
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, TemperedLoss


@LOSSES.register("list_ap")
class ListAPLoss(TemperedLoss):
    r"""1 - average precision of a histogram of the scores.

    $$1 - \sum_{m=1}^M \frac{\sum_{m' \le m} h^+_{m'}}{\sum_{m' \le m} h_{m'}} \frac{h^+_m}{R}, \qquad
      h_m = \sum_j \delta(x_j, m), \quad h^+_m = \sum_j rel_j \, \delta(x_j, m)$$

    where $\delta(x, m) = \max(1 - |x - b_m| / \Delta, 0)$ with M bin centers from $b_1 = 1$ down to $b_M = -1$ at
    distances of $\Delta = 2 / (M - 1)$, and R is the number of relevant documents (label >= 1) (Revaud, Almazan,
    Rezende, Souza, "Learning with Average Precision: Training Image Retrieval with a Listwise Loss", ICCV 2019,
    arXiv:1906.07589).

    The paper bins cosine similarities, which are in [-1, 1]. Ranking scores are unbounded, so they are squashed first:
    $x_j = \tanh((s_j - \bar s) / \tau)$, where $\bar s$ is the mean of the list. So the bins are finest around the
    mean, the loss is invariant to a shift of the scores, and documents farther than a few tau from the mean share the
    outer bins. Lists without a relevant document are excluded. Weights of documents become one weight per list
    (`list_weights`).

    Args:
      num_bins: The number of bins M, an integer >= 2; the paper uses 20. More bins are less smooth.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(M N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]])
      >>> print(losses.ListAPLoss(num_bins=20, reduction="none")(labels, scores).numpy().round(3))
      [0.181]
    """

    def __init__(self, *, num_bins: int = 20, temperature: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(temperature=temperature, **options)
        self.num_bins = _arguments.integer("num_bins", num_bins, least=2)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        real = tf.cast(mask, scores.dtype)
        relevant = tf.cast(labels >= 1.0, labels.dtype)
        shares = _bins(scores, real, self.num_bins, self.temperature)
        histograms = tf.matmul(tf.stack([relevant, real], axis=1), shares)
        of_relevant, of_all = tf.unstack(histograms, axis=1)
        precisions = tf.math.divide_no_nan(tf.cumsum(of_relevant, axis=1), tf.cumsum(of_all, axis=1))
        total = tf.reduce_sum(precisions * of_relevant, axis=1)
        return 1.0 - tf.math.divide_no_nan(total, tf.reduce_sum(relevant, axis=1))

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists without a label >= 1."""
        return tf.reduce_any(tf.logical_and(labels >= 1.0, mask), axis=1)


def _bins(scores: tf.Tensor, real: tf.Tensor, num_bins: int, temperature: float) -> tf.Tensor:
    """Returns the share of each document in each bin, [batch, list, M]; a document is split between two bins."""
    # Subtract the maximum first, so that a shift of the scores does not change the rounding of the mean.
    highest = tf.reduce_max(_padded.fill(scores, real > 0.0, scores.dtype.min), axis=1, keepdims=True)
    scores = real * (scores - tf.stop_gradient(highest))
    count = tf.maximum(tf.reduce_sum(real, axis=1, keepdims=True), 1.0)
    mean = tf.reduce_sum(real * scores, axis=1, keepdims=True) / count
    place = (1.0 - tf.tanh((scores - mean) / temperature)) * ((num_bins - 1) / 2.0)
    upper = tf.stop_gradient(tf.minimum(tf.floor(place), num_bins - 2.0))
    share = (place - upper)[:, :, tf.newaxis]
    first, second = (tf.one_hot(tf.cast(upper, tf.int32) + step, num_bins, dtype=scores.dtype) for step in (0, 1))
    return (1.0 - share) * first + share * second
