r"""LapSum: soft ranks by sums of Laplace distribution functions.

Struski, Bednarczyk, Podolak, Tabor: "LapSum - One Method to Differentiate Them All: Ranking, Sorting and Top-k
Selection", ICML 2025 (arXiv:2503.06242). The position of a document is a sum over all others, as in `Approx`, of the
distribution function of the Laplace distribution instead of the logistic one,

$$\pi_j = 1 + \sum_{i \ne j} \mathrm{Lap}((s_i - s_j) / \alpha), \qquad
  \mathrm{Lap}(x) = \begin{cases} \tfrac12 e^x & x \le 0 \\ 1 - \tfrac12 e^{-x} & x > 0 \end{cases}$$

In sorted order, $s_1 \ge .. \ge s_n$, every exponential is the product of those of the gaps between two documents. So
the sums over the documents above and below document r follow from those of its neighbors,

$$\pi_r = r - \tfrac12 A_r + \tfrac12 B_r, \qquad A_r = e^{(s_r - s_{r-1}) / \alpha} (1 + A_{r-1}), \qquad
  B_r = e^{(s_{r+1} - s_r) / \alpha} (1 + B_{r+1})$$

which only adds and multiplies numbers >= 0, so that no sum loses precision. The gradient has the same sums, with the
upstream of each document in the place of 1.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import exact
from tfr_smooth.rankings.ranking import RANKINGS, PositionRanking, sum_after

# exp(-800) is 0, also in float64: documents behind a gap of at least this size add nothing.
_LARGEST_GAP = 800.0


@RANKINGS.register("lapsum")
@dataclasses.dataclass(frozen=True)
class LapSum(PositionRanking):
    r"""The LapSum ranking: positions from sums of Laplace distribution functions of score differences.

    $$\pi_j = 1 + \sum_{i \ne j} \mathrm{Lap}((s_i - s_j) / \alpha)$$

    (arXiv:2503.06242, whose ranks ascend from 0 and are $n - \pi_j$ here.)

    Invariant to padding, to the order of the documents and to a shift of the scores. Scaling the scores and alpha by
    the same factor leaves the positions unchanged.

    Args:
      alpha: The scale of the Laplace distribution, > 0. The positions are exact in the limit of 0. A number or a
        non-trainable `tf.Variable`.
      beta: Inverse temperature of the comparisons of positions, > 0 (see `PositionRanking`).

    Raises:
      ValueError: If an argument is out of range.

    Time O(N log N), memory O(N) per list. Computed in float64.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(rankings.LapSum(alpha=0.5).positions(scores, scores > 0.0).numpy().round(3))
      [[2.923 1.077 2.   ]]
    """

    alpha: float | tf.Variable = 0.1
    beta: float = 10.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "alpha", _arguments.temperature("alpha", self.alpha))
        object.__setattr__(self, "beta", _arguments.scale("beta", self.beta))

    def positions(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the soft ranks.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list], in [1, n] with the sum n (n + 1) / 2 for n real documents; 0 at padding.
        """
        return tf.ensure_shape(_positions(scores, mask, _compiled.scalar(self.alpha, tf.float64)), scores.shape)


@_compiled.differentiable
def _positions(scores: tf.Tensor, mask: tf.Tensor, alpha: tf.Tensor) -> _compiled.WithGradient:
    """Returns the positions, [batch, list], and their gradient function."""
    order = exact.descending_order(scores, mask)
    falling, places = (tf.gather(each, order, batch_dims=1) for each in (tf.cast(scores, tf.float64), mask))
    # The gap first: it is exact for close scores, regardless of their magnitude.
    gaps = _padded.fill(falling[:, :-1] - falling[:, 1:], places[:, 1:], 0.0)
    shares = _padded.fill(tf.exp(-tf.minimum(gaps, _LARGEST_GAP * alpha) / alpha), places[:, 1:], 0.0)
    above, below = _sums(tf.cast(places, falling.dtype), shares)
    ranks = tf.cast(tf.range(1, tf.shape(falling)[1] + 1), falling.dtype)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        # The density is symmetric: a higher score moves its document up, and the others down.
        upstream = tf.gather(tf.cast(_padded.fill(upstream, mask, 0.0), falling.dtype), order, batch_dims=1)
        to_falling = (tf.add(*_sums(upstream, shares)) - upstream * (above + below)) / (2.0 * alpha)
        return tf.cast(exact.unsort(to_falling, order), scores.dtype)

    positions = _padded.fill(ranks - (above - below) / 2.0, places, 0.0)
    return tf.cast(exact.unsort(positions, order), scores.dtype), gradient


def _sums(values: tf.Tensor, shares: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns $\sum_i v_i e^{-|s_i - s_j| / \alpha}$ over the documents above j, and over those below j."""
    next_share = _compiled.pad(tf.pad(shares, [[0, 0], [0, 1]]))
    above, below = _sums_program(_compiled.pad(values), next_share)
    return _compiled.unpad(above, values), _compiled.unpad(below, values)


@_compiled.program
def _sums_program(values: tf.Tensor, next_share: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    previous_share = tf.pad(next_share[:, :-1], [[0, 0], [1, 0]])
    # `sum_after` multiplies the shares between, not that of the next document.
    above = tf.reverse(previous_share, [1]) * sum_after(tf.reverse(values, [1]), tf.reverse(previous_share, [1]))
    return tf.reverse(above, [1]), next_share * sum_after(values, next_share)
