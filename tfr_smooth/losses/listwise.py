"""ListMLE, the likelihood of the ideal order under the Plackett-Luce model; ListAP, the precision of a histogram."""

from __future__ import annotations

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.losses.lambda_weights import ListMLELambdaWeight
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, TemperedLoss

# Far below every log weight, but finite.
LOG_OF_NOTHING = -1e300


@LOSSES.register("list_mle")
class ListMLELoss(TemperedLoss):
    r"""ListMLE: $\sum_{i=1}^N \alpha_i \left(\log \sum_{k=i}^N e^{s_{\pi(k)} / \tau} - s_{\pi(i)} / \tau\right)$.

    $\pi$ is the order by descending label. $\alpha_i = 1$ (Xia et al., "Listwise Approach to Learning to Rank: Theory
    and Algorithm", ICML 2008) or, if position-aware, $\alpha_i = (2^{N-i} - 1) / (2^{N-1} - 1)$ (Lan et al.,
    "Position-Aware ListMLE", UAI 2014). The paper's weights are divided by the first weight, because $2^N$ overflows
    and the longest lists would dominate the others. A `lambda_weight` multiplies the $\alpha_i$.

    Documents with the same label have no order. Each has their mean score as $s_{\pi(i)}$ and contributes the mean of
    their $e^s$ to the sums. So the loss does not depend on the order of documents in the list. It is an upper bound of
    the mean over all orders consistent with the labels (by Jensen's inequality; in survival analysis this is Efron's
    treatment of ties). The loss is at least 0. It is a sum over documents, so longer lists have larger losses. Lists
    without a relevant document are excluded. Weights of documents become one weight per list (`list_weights`).

    Args:
      position_aware: Whether early positions have larger weights (p-ListMLE).
      lambda_weight: Weights of the positions, a `ListMLELambdaWeight`. None uses 1.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels = tf.constant([[1.0, 2.0, 0.0, -1.0]])
      >>> print(losses.ListMLELoss(reduction="none")(labels, tf.zeros([1, 4])).numpy().round(4))
      [1.7918]
    """

    def __init__(
        self,
        *,
        position_aware: bool = False,
        lambda_weight: ListMLELambdaWeight | None = None,
        temperature: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.position_aware = _arguments.boolean("position_aware", position_aware)
        self.lambda_weight = _arguments.instance("lambda_weight", lambda_weight, ListMLELambdaWeight, optional=True)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        # From the last position to the first, so that the sums run forward; padding comes last.
        lowest = labels.dtype.min
        negated, order = tf.math.top_k(_padded.fill(-labels, mask, lowest), tf.shape(labels)[1])
        mask = tf.not_equal(negated, lowest)
        scores = tf.gather(scores, order, batch_dims=1)
        # float64: a running sum over a long list loses precision, as does a difference of large scores.
        precise = tf.cast(scores, tf.float64) / self.temperature
        # Not padded with True, which `tf.vectorized_map` does not support.
        ties = _padded.Neighbors(tf.logical_not(tf.pad(tf.equal(negated[:, 1:], negated[:, :-1]), [[0, 0], [1, 0]])))
        highest = ties.maximum(precise)
        below = precise - highest
        # The log of the mean of e^s over ties. The 0 at padding has no effect, as padding comes last.
        inputs = tf.math.log(ties.mean(tf.exp(below))) + highest
        weights = _padded.fill(self._position_weights(mask), mask, 0.0)
        total = weighted_log_sums(inputs, weights) - tf.reduce_sum(weights * (highest + ties.mean(below)), axis=1)
        return tf.ensure_shape(tf.cast(total, scores.dtype), scores.shape[:1])

    def _position_weights(self, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weights of the positions N, N-1, ..., 1, [batch, list], in float64."""
        length = tf.reduce_sum(tf.cast(mask, tf.float64), axis=1, keepdims=True)
        after = tf.cast(tf.range(tf.shape(mask)[1]), tf.float64)[tf.newaxis]  # N - i
        weights = tf.ones_like(length - after)
        if self.position_aware:  # (2^(N-i) - 1) / (2^(N-1) - 1) without overflow; 0 for N = 1
            two, last = tf.constant(2.0, tf.float64), tf.pow(tf.constant(2.0, tf.float64), 1.0 - length)
            weights = tf.math.divide_no_nan(tf.pow(two, after + 1.0 - length) - last, 1.0 - last)
        if self.lambda_weight is not None:
            places = tf.cast(tf.maximum(length - after, 1.0), tf.float32)
            weights *= tf.cast(self.lambda_weight.rank_discount_fn(places), tf.float64)
        return weights


@_compiled.differentiable
def weighted_log_sums(inputs: tf.Tensor, weights: tf.Tensor) -> _compiled.WithGradient:
    r"""Returns $\sum_k w_k L_k$ with $L_k = \log \sum_{i \le k} e^{x_i}$, [batch], and its gradient function.

    As all weights are at least 0, the gradient is another sum of exponentials,
    $\sum_{k \ge i} w_k e^{x_i - L_k}$.
    """
    sums = tf.math.cumulative_logsumexp(inputs, axis=1)
    gradient = log_sum_slopes(inputs, sums, weights)
    return tf.reduce_sum(weights * sums, axis=1), lambda upstream: upstream[:, tf.newaxis] * gradient


def log_sum_slopes(inputs: tf.Tensor, sums: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    r"""Returns $\sum_{k \ge i} w_k e^{x_i - L_k}$, [batch, list], for weights of at least 0."""
    positive = weights > 0.0
    logs = tf.where(positive, tf.math.log(tf.where(positive, weights, 1.0)) - sums, LOG_OF_NOTHING)
    return tf.exp(inputs + tf.math.cumulative_logsumexp(logs, axis=1, reverse=True))


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
