r"""Sinkhorn ranks: optimal transport from scores to sorted targets with entropic regularization.

Cuturi, Teboul, Vert: "Differentiable Ranks and Sorting using Optimal Transport", NeurIPS 2019 (arXiv:1905.11885). The
n scores of a list, squashed to x in [0, 1], are transported to n evenly spaced targets $y_1 = 1 > .. > y_n = 0$, one
per rank. The optimal plan under the cost $C_{jk} = (x_j - y_k)^2$ assigns each document to its rank. Entropic
regularization of strength epsilon smooths the plan,

$$Q_{jk} = \exp((f_j + g_k - C_{jk}) / \epsilon), \qquad Q \mathbf{1} = Q^\top \mathbf{1} = \mathbf{1}, \qquad
  \pi_j = \sum_k k \, Q_{jk}$$

where $\pi_j$ are the paper's Sinkhorn ranks (its plan is Q / n, its weights are 1 / n). Sinkhorn's algorithm computes f
and g by scaling rows and columns in turn.

The algorithm starts from f and g of the transport without entropy, which have a closed form for sorted scores. With
them, the exponents are computed once, in float64: they are 0 for a document at its rank and negative elsewhere. So no
row or column underflows to 0 for any epsilon, and each step consists of two matrix-vector products.

The gradient is implicit: it follows from the equations that define Q, with one linear system per list, and no step is
stored. It is the gradient of the transport with the actual row and column sums of Q, so it is exact even if the steps
stop early. Q itself differs from the converged plan by about the threshold.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import exact
from tfr_smooth.rankings.ranking import RANKINGS, PositionRanking

# The authors' lower bound of the standard deviation, which avoids division by 0 for tied scores.
_LEAST_DEVIATION = 1e-6
# The gradient is that of scores with at least this standard deviation: it is inversely proportional to it, and would be
# a million times too large for tied scores, such as those of a new model.
_LEAST_OF_GRADIENT = 1e-2
# Float64 scores are clipped here, so that their squares are finite.
_LARGEST = 1e150
# The gradient's linear system: the stopping tolerance, and the value added to the diagonal (which is little more than
# rounding for documents that do not share their rank).
_TOLERANCE = 1e-10
_RIDGE = 1e-12


@RANKINGS.register("sinkhorn")
@dataclasses.dataclass(frozen=True)
class Sinkhorn(PositionRanking):
    r"""The Sinkhorn ranking: positions by entropic optimal transport (arXiv:1905.11885).

    Scores are squashed as in the authors' code: standardized by the mean and standard deviation of the list (at least
    1e-6), then $\sigma(\pi x / \sqrt 3)$, the distribution function of the logistic distribution of variance 1. So
    positions are invariant to padding, to the order of the documents, and to a shift and a positive scaling of the
    scores, and epsilon has the same meaning for every list and throughout training. As a consequence, lists of two
    documents have no gradient, and the gradient is inversely proportional to the standard deviation of the scores. For
    nearly tied scores, it is that of the same scores with the standard deviation 0.01.

    The iteration of a list stops when its columns sum to 1 within `threshold`, or after `max_iterations`. Rows always
    sum to 1. Each list stops separately, so its positions do not depend on the batch. Positions and gradients differ
    from those of the converged transport by a relative error of about `threshold`.

    Args:
      epsilon: Strength of the entropy, > 0; the SmoothI paper searches {0.01, 0.1, 1, 10}. Positions tend to
        (n + 1) / 2 as it grows, and to the exact ranks as it shrinks. A number or a non-trainable `tf.Variable`.
      threshold: Largest error of a column's sum at which the iteration stops, > 0.
      max_iterations: Maximum number of steps, >= 1.
      beta: Inverse temperature of the comparisons of positions, > 0 (see `PositionRanking`).

    Raises:
      ValueError: If an argument is out of range.

    Time O(T N^2) per list for T steps, and the same for the gradient: T is 5 to 20 for epsilon 0.01 to 0.1 and lists of
    5 to 1,000 documents. Memory O(N^2), independent of T.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 4.0, 2.0]])
      >>> print(rankings.Sinkhorn(epsilon=0.1).positions(scores, scores > 0.0).numpy().round(2))
      [[2.79 1.06 2.16]]
    """

    epsilon: float | tf.Variable = 0.1
    threshold: float = 1e-3
    max_iterations: int = 2000
    beta: float = 10.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "beta", _arguments.scale("beta", self.beta))
        object.__setattr__(self, "epsilon", _arguments.temperature("epsilon", self.epsilon))
        object.__setattr__(self, "threshold", _arguments.real("threshold", self.threshold, above=0.0))
        object.__setattr__(self, "max_iterations", _arguments.integer("max_iterations", self.max_iterations, least=1))

    def positions(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        r"""Returns the soft ranks $\pi_j = \sum_k k \, Q_{jk}$.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list], in [1, n] for n real documents; 0 at padding.
        """
        plan, order = self._sorted_plan(scores, mask)
        ranks = tf.cast(tf.range(1, tf.shape(scores)[1] + 1), scores.dtype)
        return exact.unsort(tf.linalg.matvec(plan, ranks[tf.newaxis]), order)

    def transport(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the transport plan Q: the share of each document at each rank.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list, rank], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        plan, order = self._sorted_plan(scores, mask)
        return tf.gather(plan, tf.argsort(order, axis=1), batch_dims=1)

    def _sorted_plan(self, scores: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the plan with documents in sorted order, [batch, list, rank], and the order."""
        order = exact.descending_order(scores, mask)
        squashed = tf.gather(_squash(tf.cast(scores, tf.float64), mask), order, batch_dims=1)
        places = tf.gather(mask, order, batch_dims=1)
        epsilon = _compiled.scalar(self.epsilon, tf.float64)
        plan = _plan(squashed, places, epsilon, tf.constant(self.threshold, scores.dtype), self.max_iterations)
        return tf.ensure_shape(plan, [*scores.shape, scores.shape[1]]), order


def _squash(scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the scores standardized per list, then squashed to [0, 1]; float64."""
    scores = _padded.fill(tf.clip_by_value(scores, -_LARGEST, _LARGEST), mask, -_LARGEST)
    count = tf.maximum(tf.reduce_sum(tf.cast(mask, scores.dtype), axis=1, keepdims=True), 1.0)
    # Subtract the maximum first: tied scores become exactly 0, and rounding is not amplified to a difference.
    scores -= tf.stop_gradient(tf.reduce_max(scores, axis=1, keepdims=True))
    scores = _padded.fill(scores, mask, 0.0)
    scores = _padded.fill(scores - tf.reduce_sum(scores, axis=1, keepdims=True) / count, mask, 0.0)
    variance = tf.reduce_sum(tf.square(scores), axis=1, keepdims=True) / count
    deviation = tf.sqrt(tf.maximum(variance, _LEAST_DEVIATION**2))
    standard = scores / deviation * (math.pi / math.sqrt(3.0))
    slow = standard * tf.stop_gradient(tf.minimum(deviation / _LEAST_OF_GRADIENT, 1.0))
    return tf.sigmoid(slow + tf.stop_gradient(standard - slow))


@_compiled.differentiable
def _plan(
    squashed: tf.Tensor, places: tf.Tensor, epsilon: tf.Tensor, threshold: tf.Tensor, max_iterations: tf.Tensor
) -> _compiled.WithGradient:
    """Returns Q, [batch, list, rank] in the type of the threshold and 0 at padding, and its gradient function.

    The squashed scores are in descending order.
    """
    targets = _targets(places)
    kernel = tf.cast(_kernel(squashed, targets, places, epsilon), threshold.dtype)
    rows, columns = _scaled(kernel, places, threshold, max_iterations)
    plan = tf.stop_gradient(rows[:, :, tf.newaxis] * kernel * columns[:, tf.newaxis])

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        q, upstream = tf.cast(plan, tf.float64), tf.cast(upstream, tf.float64)
        to_cost = _gradient_to_cost(q, upstream, places, epsilon)
        return tf.reduce_sum(to_cost * 2.0 * (squashed[:, :, tf.newaxis] - targets[:, tf.newaxis]), axis=2)

    return plan, gradient


def _targets(places: tf.Tensor) -> tf.Tensor:
    """Returns the targets of the ranks, [batch, list], evenly spaced from 1 to 0."""
    count = tf.reduce_sum(tf.cast(places, tf.float64), axis=1, keepdims=True)
    return 1.0 - tf.cast(tf.range(tf.shape(places)[1]), tf.float64) / tf.maximum(count - 1.0, 1.0)


def _kernel(x: tf.Tensor, y: tf.Tensor, places: tf.Tensor, epsilon: tf.Tensor) -> tf.Tensor:
    """Returns exp((f + g - C) / epsilon) for f and g without entropy, [batch, list, rank] float64; 0 at padding.

    Swapping two neighbors must not reduce the cost. This bounds f_{j+1} - f_j on both sides; f uses the middle, which
    is the limit of vanishing entropy. The diagonal is 1, all other entries are at most 1.
    """
    cost = tf.math.squared_difference(x[:, :, tf.newaxis], y[:, tf.newaxis])
    steps = (x[:, 1:] - x[:, :-1]) * (x[:, 1:] + x[:, :-1] - y[:, 1:] - y[:, :-1])
    f = tf.pad(tf.cumsum(_padded.fill(steps, places[:, 1:], 0.0), axis=1), [[0, 0], [1, 0]])
    g = tf.math.squared_difference(x, y) - f
    exponents = tf.minimum((f[:, :, tf.newaxis] + g[:, tf.newaxis] - cost) / epsilon, 0.0)
    pairs = tf.logical_and(places[:, :, tf.newaxis], places[:, tf.newaxis])
    return _padded.fill(tf.exp(exponents), pairs, 0.0)


def _scaled(
    kernel: tf.Tensor, places: tf.Tensor, threshold: tf.Tensor, max_iterations: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns factors of rows and columns, [batch, list] each, for which all sums are 1; 0 at padding."""

    def step(rows: tf.Tensor, columns: tf.Tensor, is_done: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        sums = tf.linalg.matvec(kernel, rows, transpose_a=True)
        error = tf.reduce_max(_padded.fill(tf.abs(sums * columns - 1.0), places, 0.0), axis=1, keepdims=True)
        next_columns = tf.where(is_done, columns, tf.math.reciprocal_no_nan(sums))
        next_rows = tf.where(is_done, rows, tf.math.reciprocal_no_nan(tf.linalg.matvec(kernel, next_columns)))
        return next_rows, next_columns, tf.logical_or(is_done, error <= threshold)

    columns = tf.cast(places, kernel.dtype)
    rows = tf.math.reciprocal_no_nan(tf.linalg.matvec(kernel, columns))
    state = (rows, columns, tf.zeros_like(places[:, :1]))
    return tf.while_loop(
        lambda *state: tf.logical_not(tf.reduce_all(state[2])), step, state, maximum_iterations=max_iterations
    )[:2]


def _gradient_to_cost(plan: tf.Tensor, upstream: tf.Tensor, places: tf.Tensor, epsilon: tf.Tensor) -> tf.Tensor:
    r"""Returns the gradient of $\sum upstream \cdot Q$ to the cost, for fixed row sums R and column sums c.

    With $H = upstream \cdot Q$ it is $(Q_{jk} (\lambda_j + \mu_k) - H_{jk}) / \epsilon$, where
    $R \lambda + Q \mu = H \mathbf{1}$ and $Q^\top \lambda + c \mu = H^\top \mathbf{1}$. Eliminating lambda leaves
    $(c - Q^\top R^{-1} Q) \mu = H^\top \mathbf{1} - Q^\top R^{-1} H \mathbf{1}$.
    """
    weighted = upstream * plan
    padding = tf.cast(tf.logical_not(places), plan.dtype)
    row_sums = tf.reduce_sum(plan, axis=2) + padding
    column_sums = tf.reduce_sum(plan, axis=1) + padding
    scaled = plan / row_sums[:, :, tf.newaxis]

    def product(mu: tf.Tensor) -> tf.Tensor:
        return (column_sums + _RIDGE) * mu - tf.linalg.matvec(plan, tf.linalg.matvec(scaled, mu), transpose_a=True)

    in_rows, in_columns = tf.reduce_sum(weighted, axis=2), tf.reduce_sum(weighted, axis=1)
    diagonal = tf.maximum(column_sums - tf.reduce_sum(plan * scaled, axis=1), 0.0) + _RIDGE
    right = in_columns - tf.linalg.matvec(scaled, in_rows, transpose_a=True)
    mu = _conjugate_gradients(product, diagonal, right)
    shares = in_rows / row_sums - tf.linalg.matvec(scaled, mu)
    return (plan * (shares[:, :, tf.newaxis] + mu[:, tf.newaxis]) - weighted) / epsilon


def _conjugate_gradients(product: Callable[[tf.Tensor], tf.Tensor], diagonal: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Solves product(x) = right, [batch, list], for a symmetric product >= 0, preconditioned by its diagonal.

    It takes fewer steps than the scaling of rows and columns and, unlike a factorization, runs fast under XLA. It
    converges although the product of a constant is 0 (a constant can move between f and g).
    """

    def dot(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(left * right, axis=1, keepdims=True)

    def is_left(size: tf.Tensor) -> tf.Tensor:
        return size > _TOLERANCE**2 * start

    def step(x: tf.Tensor, rest: tf.Tensor, way: tf.Tensor, size: tf.Tensor) -> tuple[tf.Tensor, ...]:
        along = product(way)
        curvature = dot(way, along)
        # A list that has converged, or whose residual is rounding, no longer changes.
        length = tf.math.divide_no_nan(_padded.fill(size, is_left(size), 0.0), tf.maximum(curvature, 0.0))
        x, rest = x + length * way, rest - length * along
        next_size = tf.where(length > 0.0, dot(rest, rest / diagonal), 0.0)
        return x, rest, rest / diagonal + tf.math.divide_no_nan(next_size, size) * way, next_size

    start = dot(right, right / diagonal)
    state = (tf.zeros_like(right), right, right / diagonal, start)
    limit = 2 * tf.shape(right)[1]
    return tf.while_loop(lambda *state: tf.reduce_any(is_left(state[3])), step, state, maximum_iterations=limit)[0]
