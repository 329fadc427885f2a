"""The parts of discounted cumulative gain: the gain of a document by its relevance, and the discount of a rank."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _padded, _serialization

GAINS = ("exponential", "linear")

# Up to this relevance 2^y is computed directly; above it, relative to 2^(highest - 64) of the list.
_LARGEST = 64.0


@dataclasses.dataclass(frozen=True)
class NDCGGain:
    r"""The gain $g(y) = 2^y - 1$ ("exponential") or $g(y) = y$ ("linear") of a batch of lists.

    In lists with labels above 64, the exponential gain is relative to $2^{\max y - 64}$, which avoids overflow. Gains
    are only used in quotients of the same list, so results do not change.

    Args:
      kind: "exponential" or "linear".
      shift: [batch, 1], subtracted from the exponents; 0 for lists without such labels.
    """

    kind: str
    shift: tf.Tensor

    @classmethod
    def of(cls, kind: str, relevance: tf.Tensor) -> NDCGGain:
        """Returns the gain for lists with this relevance, [batch, list], 0 at padding."""
        highest = tf.reduce_max(tf.pad(tf.stop_gradient(relevance), [[0, 0], [0, 1]]), axis=1, keepdims=True)
        return cls(kind, tf.maximum(highest - _LARGEST, 0.0))

    def __call__(self, relevance: tf.Tensor) -> tf.Tensor:
        """Returns the gain of relevance [batch, K]."""
        return exponential_gain(relevance, self.shift) if self.kind == "exponential" else relevance

    def derivative(self, relevance: tf.Tensor) -> tf.Tensor:
        """Returns the derivative of the gain at relevance [batch, K]."""
        if self.kind == "linear":
            return tf.ones_like(relevance)
        return math.log(2.0) * tf.exp(math.log(2.0) * (relevance - self.shift))


def exponential_gain(relevance: tf.Tensor, shift: tf.Tensor | float = 0.0) -> tf.Tensor:
    r"""Returns $(2^y - 1) / 2^t$ for relevance y and shift t, accurate for small y."""
    log2, shift = math.log(2.0), tf.convert_to_tensor(shift, relevance.dtype)
    return tf.math.expm1(log2 * (relevance - shift)) - tf.math.expm1(-log2 * shift)


TensorFunction: TypeAlias = Callable[[tf.Tensor], tf.Tensor]
Discount: TypeAlias = "str | ShallowDiscount | TensorFunction | Sequence[float] | np.ndarray"


@_serialization.register
@dataclasses.dataclass(frozen=True)
class ShallowDiscount(_serialization.Configurable):
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
      >>> from tfr_smooth.rankings import ShallowDiscount
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
        object.__setattr__(self, "alpha", _arguments.real("alpha", self.alpha, least=-1.0, most=1.0))

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


def checked_discount(discount: Any) -> Any:
    """Returns a valid discount: "log2", a `ShallowDiscount`, a function, or a table as a tuple of K floats.

    Raises:
      ValueError: If the discount is none of these.
    """
    if isinstance(discount, str) and discount in ("log2", "linear"):
        return ShallowDiscount() if discount == "linear" else discount
    if callable(discount) or isinstance(discount, ShallowDiscount):
        return discount
    try:
        table = np.asarray(discount, np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 1 or not table.size or not np.isfinite(table).all():
        raise ValueError(
            f"`discount` must be 'log2', 'linear', a ShallowDiscount, a function or finite numbers, got {discount!r}."
        )
    return tuple(table.tolist())


def discounts_at_ranks(discount: Any, ranks: int | tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the discounts of the first K ranks.

    Args:
      discount: The discount; see `NDCG`.
      ranks: The number of ranks K.
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch, K] or [1, K], float64.
    """
    return discounts_at(discount, tf.cast(tf.range(ranks), tf.float64)[tf.newaxis], mask)


def discounts_at(discount: Any, ranks: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the discounts at integer or fractional ranks; tables are interpolated.

    Args:
      discount: The discount; see `NDCG`.
      ranks: [batch or 1, K], starting at 0.
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch or 1, K], in the type of the ranks.
    """
    discount = checked_discount(discount)
    if isinstance(discount, str):
        return log2_discount(ranks)
    if isinstance(discount, ShallowDiscount):
        return discount.at(ranks, _padded.count(mask, ranks.dtype))
    if callable(discount):
        return tf.cast(discount(ranks), ranks.dtype)
    table = tf.constant([*discount, 0.0, 0.0], ranks.dtype)
    last = tf.cast(len(discount), ranks.dtype)
    lower = tf.stop_gradient(tf.minimum(tf.floor(ranks), last))
    first, second = (tf.gather(table, tf.cast(lower, tf.int32) + step) for step in (0, 1))
    return first + tf.minimum(ranks - lower, 1.0) * (second - first)
