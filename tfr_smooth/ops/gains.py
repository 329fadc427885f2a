"""The gain of NDCG: the contribution of a document as a function of its relevance."""

from __future__ import annotations

import dataclasses
import math

import tensorflow as tf

GAINS = ("exponential", "linear")

# Up to this relevance 2^y is computed directly; above it, relative to 2^(highest - 64) of the list.
_LARGEST = 64.0


@dataclasses.dataclass(frozen=True)
class Gain:
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
    def of(cls, kind: str, relevance: tf.Tensor) -> Gain:
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
    log2 = math.log(2.0)
    return tf.math.expm1(log2 * (relevance - shift)) - tf.math.expm1(-log2 * shift)
