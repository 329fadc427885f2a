r"""Rank discounts: NDCG's discount, also as a mixture of exponentials, and other discounts for training.

A completely monotone discount is a mixture of exponentials with positive weights (Bernstein's theorem).
$D(r) = 1 / \log_2(2 + r)$ is completely monotone, as the reciprocal of a Bernstein function of r. With a sum of
exponentials, the expectation over a sum of independent contests is simple: $E[z^r]$ is a product over the contests. The
mixture is fitted by non-negative least squares in float64, once per order of magnitude of the list length.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import lists

# Mixtures are fitted for lists of up to 16, 64, 256, .. documents. In graphs with unknown list length, the largest of
# these is the limit; the pairs of a list of this length would take 34 GB.
_BOUNDS = tuple(4**power for power in range(2, 9))
# The largest relative error at the ranks used in a fit.
_TOLERANCE = 4e-8
_NODES_PER_DECADE = 6
# A fit uses at most this many ranks, spaced logarithmically: the discount is smooth there.
_MOST_RANKS = 300


Discount: TypeAlias = "str | ShallowDiscount | Callable[[tf.Tensor], tf.Tensor] | Sequence[float] | np.ndarray"


@dataclasses.dataclass(frozen=True)
class ShallowDiscount:
    r"""A training discount that reaches deeper into the list than NDCG's.

    $D(r) = (1 - x)(1 + \alpha x)$ with $x = r / n$, where ranks r start at 0 and n is the number of real documents.
    Section 4.7 (Figure 5) of SoftRank trains with concave (alpha = 1, here $1 - x^2$), linear (alpha = 0, $1 - x$) and
    convex discounts (alpha = -1, here $(1 - x)^2$, shaped like NDCG's). The paper has no formula; this one is ours. The
    discount decreases from 1 at the top over the whole list. As it is quadratic, its expectation only depends on the
    mean and the variance of the rank.

    Args:
      alpha: Curvature, in [-1, 1]; 0 is linear. The paper reports its best test results at -0.4 to 0.4.

    Raises:
      ValueError: If `alpha` is out of range.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.discounts import ShallowDiscount
      >>> ranks, count = tf.constant([0.0, 1.0, 2.0, 3.0]), tf.constant([[4.0]])
      >>> for alpha in (1.0, 0.0, -1.0):
      ...     print(ShallowDiscount(alpha).at(ranks, count).numpy())
      [[1.     0.9375 0.75   0.4375]]
      [[1.   0.75 0.5  0.25]]
      [[1.     0.5625 0.25   0.0625]]
    """

    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Checks the argument."""
        alpha = _arguments.real("alpha", self.alpha)
        if abs(alpha) > 1.0:
            raise ValueError(f"`alpha` must be a number in [-1, 1], got {self.alpha!r}.")
        object.__setattr__(self, "alpha", alpha)

    def at(self, ranks: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """Returns the discount at each rank.

        Args:
          ranks: [K] or [batch, K] floats, ranks starting at 0.
          count: [batch, 1] floats, the number of real documents, >= 1.

        Returns:
          [batch, K]; 0 at ranks beyond the real documents.
        """
        part = tf.minimum(ranks / count, 1.0)
        return (1.0 - part) * (1.0 + self.alpha * part)

    def expected(self, mean: tf.Tensor, variance: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        r"""Returns the expected discount $E[D(r)] = 1 - (1 - \alpha) E[r] / n - \alpha E[r^2] / n^2$.

        Args:
          mean: [batch, list] floats, the mean of each document's rank (starting at 0).
          variance: [batch, list] floats, the variance of each document's rank.
          count: [batch, 1] floats, the number of real documents, >= 1.

        Returns:
          [batch, list].
        """
        return self.at(mean, count) - self.alpha * variance / tf.square(count)


def log2_discount(ranks: tf.Tensor) -> tf.Tensor:
    r"""Returns NDCG's discount $D(r) = 1 / \log_2(2 + r)$ for ranks of any shape, starting at 0."""
    return math.log(2.0) / tf.math.log(2.0 + ranks)


def checked(discount: Any) -> Any:
    """Returns a valid discount: "log2", a `ShallowDiscount`, a function, or a table as a float64 array [K].

    Raises:
      ValueError: If the discount is none of these.
    """
    if isinstance(discount, str):
        _arguments.choice("discount", discount, ("log2", "linear"))
        return ShallowDiscount() if discount == "linear" else discount
    if callable(discount) or isinstance(discount, ShallowDiscount):
        return discount
    try:
        table = np.asarray(discount, np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 1 or not table.size or not np.isfinite(table).all():
        raise ValueError(
            f"`discount` must be 'log2', 'linear', a ShallowDiscount, a function of the rank or finite numbers, "
            f"got {discount!r}."
        )
    return table


def at_ranks(discount: Any, ranks: int | tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the discounts of the first K ranks.

    Args:
      discount: The discount; see `NDCG`.
      ranks: The number of ranks K.
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch, K] or [1, K], float64.
    """
    return at(discount, tf.cast(tf.range(ranks), tf.float64)[tf.newaxis], mask)


def at(discount: Any, ranks: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the discounts at integer or fractional ranks; tables are interpolated.

    Args:
      discount: The discount; see `NDCG`.
      ranks: [batch or 1, K], starting at 0.
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch or 1, K], in the type of the ranks.
    """
    discount = checked(discount)
    if isinstance(discount, ShallowDiscount):
        return discount.at(ranks, lists.count(mask, ranks.dtype))
    if isinstance(discount, np.ndarray):
        table = tf.constant(np.append(discount, [0.0, 0.0]), ranks.dtype)
        last = tf.cast(len(discount), ranks.dtype)
        lower = tf.stop_gradient(tf.minimum(tf.floor(ranks), last))
        first, second = (tf.gather(table, tf.cast(lower, tf.int32) + step) for step in (0, 1))
        return first + tf.minimum(ranks - lower, 1.0) * (second - first)
    return log2_discount(ranks) if isinstance(discount, str) else tf.cast(discount(ranks), ranks.dtype)


def log2_mixture(length: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns the log discount as a mixture: $1 / \log_2(2 + r) = \sum_m w_m (1 - c_m)^r$ for r = 0 .. length - 1.

    Args:
      length: The number of ranks, >= 0: a Python int, or an int32 scalar of at most 65,536.

    Returns:
      The weights w [M], positive with sum 1, and the decays c [M], in (0, 1); float64. The relative error is below
      1e-7 at every rank. M is 12 up to 16 ranks, 16 up to 64, 22 up to 1,024.

    Time: a fit takes milliseconds, once per process for each power of 4 of the length.

    Example:
      >>> from tfr_smooth.ops import discounts
      >>> weights, decays = discounts.log2_mixture(40)
      >>> print(((weights * (1 - decays) ** 6).numpy().sum() * 3).round(6))
      1.0
    """
    if isinstance(length, int):
        weights, decays = _fit(_BOUNDS[0] if length <= _BOUNDS[0] else 4 ** math.ceil(math.log(length, 4) - 1e-9))
        return tf.constant(weights), tf.constant(decays)
    fits = [_fit(bound) for bound in _BOUNDS]
    sizes = [len(weights) for weights, _ in fits]
    row = tf.searchsorted(list(_BOUNDS), [length])[0]
    most = max(sizes)
    table = np.array([[np.pad(column, (0, most - len(column))) for column in fit] for fit in fits])
    chosen = tf.constant(table)[row, :, : tf.constant(sizes)[row]]
    return chosen[0], chosen[1]


@functools.cache
def _fit(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns weights and decays of the log discount for ranks below `length`, with few nodes."""
    ranks = np.arange(length)
    target = 1.0 / np.log2(2.0 + ranks)
    seen = np.unique(np.geomspace(1, length, _MOST_RANKS).round().astype(int) - 1) if length > _MOST_RANKS else ranks
    # From a rate that is constant over all ranks to one that only contributes at rank 0, which makes D(0) = 1 exact.
    lowest, highest = 0.02 / length, 25.0
    rates = np.geomspace(lowest, highest, int(_NODES_PER_DECADE * math.log10(highest / lowest)))
    columns = np.exp(-np.outer(seen, rates)) / target[seen, np.newaxis]  # relative errors
    weights = _nonnegative_least_squares(columns, np.ones(len(seen)))
    used = weights > 0
    weights, rates = weights[used], rates[used]
    error = np.abs(sum(w * np.exp(-rate * ranks) for w, rate in zip(weights, rates, strict=True)) / target - 1.0).max()
    if error > 1e-7:
        raise ArithmeticError(f"No mixture of exponentials fits the log discount up to rank {length}: {error:.1e}.")
    return weights, -np.expm1(-rates)


def _nonnegative_least_squares(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Returns weights >= 0 for which `columns @ weights` approximates the target (Lawson and Hanson's active set).

    It stops as soon as all errors are below the tolerance, which keeps the set of columns small.
    """
    weights = np.zeros(columns.shape[1])
    used = np.zeros(len(weights), bool)
    for _ in range(3 * len(weights)):
        errors = target - columns @ weights
        if np.abs(errors).max() < _TOLERANCE:
            break
        gains = np.where(used, -np.inf, columns.T @ errors)
        if gains.max() <= 0:
            break
        used[np.argmax(gains)] = True
        while True:
            solution = np.zeros_like(weights)
            solution[used] = np.linalg.lstsq(columns[:, used], target, rcond=None)[0]
            negative = used & (solution <= 0)
            if not negative.any():
                break
            # Move towards the solution until the first weight is 0; that column leaves the set.
            steps = weights[negative] / (weights[negative] - solution[negative])
            weights = weights + steps.min() * (solution - weights)
            used[np.flatnonzero(negative)[steps <= steps.min()]] = False
            weights[~used] = 0.0
        weights = solution
    return weights
