"""ListMLE: the likelihood of the ideal order under the Plackett-Luce model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.criterion import Criterion
from tfr_smooth.ops import compiled, lists
from tfr_smooth.ops.neighbors import Neighbors

# The largest range of scores in a list for the fast computation; float64 underflows at e^-745.
_WIDEST = 600.0


def list_mle(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, position_aware: bool = False
) -> tf.Tensor:
    """Computes the ListMLE loss of each list; see `ListMLECriterion` for the formula.

    Args:
      labels: [batch, list], float or int, >= 0; negative labels mark padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for additional padding. None adds no padding.
      position_aware: Whether early positions have larger weights (p-ListMLE).

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for excluded lists.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> print(functional.list_mle(tf.constant([[1.0, 2.0, 0.0, -1.0]]), tf.zeros([1, 4])).numpy().round(4))
      [1.7918]
    """
    return ListMLECriterion(position_aware=position_aware)(labels, scores, mask)


@dataclasses.dataclass(frozen=True)
class ListMLECriterion(Criterion):
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

    Args:
      position_aware: Whether early positions have larger weights (p-ListMLE).

    Raises:
      ValueError: If `position_aware` is not a bool.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> labels = tf.constant([[1.0, 2.0, 0.0, -1.0]])
      >>> print(functional.ListMLECriterion()(labels, tf.zeros([1, 4])).numpy().round(4))
      [1.7918]
    """

    position_aware: bool = False

    def __post_init__(self) -> None:
        """Checks the argument."""
        _arguments.boolean("position_aware", self.position_aware)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        # From the last position to the first, so that the sums run forward; padding comes last.
        lowest = labels.dtype.min
        negated, order = tf.math.top_k(lists.fill(-labels, mask, lowest), tf.shape(labels)[1])
        mask = tf.not_equal(negated, lowest)
        scores = tf.gather(scores, order, batch_dims=1)

        # Not padded with True, which `tf.vectorized_map` does not support.
        starts = tf.logical_not(tf.pad(tf.equal(negated[:, 1:], negated[:, :-1]), [[0, 0], [1, 0]]))
        # The 0 at padding has no effect, as padding comes last.
        terms = tf.ensure_shape(_log_sums(scores, starts, mask), scores.shape)
        if self.position_aware:  # Otherwise the scores and their means over ties have the same sum.
            ties = Neighbors(starts)
            below = scores - ties.maximum(scores)
            terms += below - ties.mean(below)
            terms *= _position_weights(mask, scores.dtype)
        return tf.reduce_sum(lists.fill(terms, mask, 0.0), axis=1)


def _plain_log_sums(scores: tf.Tensor, starts: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    return _wide_log_sums(Neighbors(starts), scores)


@compiled.differentiable(_plain_log_sums)
def _log_sums(scores: tf.Tensor, starts: tf.Tensor, mask: tf.Tensor) -> compiled.WithGradient:
    """Returns log(sum_{i <= k} e^{s_i}) - s_k at each k, with the mean of e^s over ties, and its gradient function.

    Args:
      scores: [batch, list].
      starts: [batch, list] bool, where a run of ties starts.
      mask: [batch, list] bool, False for padding.
    """
    ties = Neighbors(starts)
    lowest, highest = lists.extremes(scores, mask)
    # Halves avoid overflow for empty lists, which have the extreme floats.
    is_narrow = tf.reduce_all(highest / 2.0 - lowest / 2.0 < _WIDEST / 2.0)
    below = lists.fill(tf.cast(scores, tf.float64) - tf.cast(highest, tf.float64)[:, tf.newaxis], mask, 0.0)

    def narrow_value() -> tf.Tensor:
        return tf.cast(tf.math.log(tf.cumsum(ties.mean(tf.exp(below)), axis=1)) - below, scores.dtype)

    terms = tf.stop_gradient(tf.cond(is_narrow, narrow_value, lambda: _wide_log_sums(ties, scores)))

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        def narrow() -> tf.Tensor:
            over_sums = tf.cast(upstream, tf.float64) * tf.exp(-below - tf.cast(terms, tf.float64))
            later = ties.mean(tf.cumsum(over_sums, axis=1, reverse=True))
            return tf.cast(tf.exp(below) * later, scores.dtype) - upstream

        def wide() -> tf.Tensor:
            with tf.GradientTape() as tape:
                tape.watch(scores)
                again = _wide_log_sums(ties, scores)
            return tape.gradient(again, scores, upstream)

        return tf.cond(is_narrow, narrow, wide)

    return terms, gradient


def _wide_log_sums(ties: Neighbors, scores: tf.Tensor) -> tf.Tensor:
    """Returns the same as `_log_sums` for any range of scores: sums of e^s are relative to the highest score so far."""
    highest = ties.maximum(scores)
    peak = _running_maximum(highest)
    decay = tf.exp(tf.concat([peak[:, :1], peak[:, :-1]], axis=1) - peak)
    sums = _decaying_sum(decay, ties.mean(tf.exp(scores - highest)) * tf.exp(highest - peak))
    return (peak - highest) + tf.math.log(sums) - (scores - highest)


def _position_weights(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns (2^(N-i) - 1) / (2^(N-1) - 1) for i = N, N-1, ..., 1 without overflow; 0 for N = 1."""
    length = tf.reduce_sum(tf.cast(mask, dtype), axis=1, keepdims=True)
    after = tf.cast(tf.range(tf.shape(mask)[1]), dtype)[tf.newaxis]  # N - i
    two, last = tf.constant(2.0, dtype), tf.pow(tf.constant(2.0, dtype), 1.0 - length)
    weights = tf.pow(two, after + 1.0 - length) - last
    return tf.math.divide_no_nan(lists.fill(weights, mask, 0.0), 1.0 - last)


def _doubling(step: Callable[..., tuple[tf.Tensor, ...]], arrays: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
    """Runs `step(take, reaches, *arrays)` for a reach of 1, 2, 4, ... < N along [batch, list].

    `take(array)` is the array shifted by the reach; it is only valid where `reaches` is True.
    """
    length = tf.shape(arrays[0])[1]
    positions = tf.range(length)

    def double(reach: tf.Tensor, *arrays: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (2 * reach, *step(lambda array: tf.roll(array, reach, axis=1), positions >= reach, *arrays))

    return tf.while_loop(lambda reach, *_: reach < length, double, (tf.constant(1), *arrays))[1:]


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
    """Returns the cumulative maximum along [batch, list], without a gradient."""

    def step(take: Callable[[tf.Tensor], tf.Tensor], reaches: tf.Tensor, highest: tf.Tensor) -> tuple[tf.Tensor]:
        return (tf.where(reaches, tf.maximum(highest, take(highest)), highest),)

    return _doubling(step, (tf.stop_gradient(values),))[0]


def _decaying_sum(decay: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns c_k = decay_k c_{k-1} + values_k along [batch, list], with c_0 = values_0; the decay has no gradient."""

    def step(
        take: Callable[[tf.Tensor], tf.Tensor], reaches: tf.Tensor, decay: tf.Tensor, sums: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        decay = tf.where(reaches, decay, tf.zeros_like(decay))
        return decay * take(decay), sums + decay * take(sums)

    @tf.custom_gradient
    def run(values: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # The same sum in reverse. (The gradient of a loop would store all rounds, and XLA does not support it.)
            later = tf.concat([decay[:, 1:], decay[:, :1]], axis=1)
            return tf.reverse(_decaying_sum(tf.reverse(later, [1]), tf.reverse(upstream, [1])), [1])

        return _doubling(step, (decay, values))[1], gradient

    return run(values)
