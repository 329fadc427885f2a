"""Approx: positions by sigmoids of score differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import lists
from tfr_smooth.ops.positions import PositionRanking


@dataclasses.dataclass(frozen=True)
class Approx(PositionRanking):
    r"""The Approx ranking: hand it to any metric of `tfr_smooth.functional` to make that metric smooth.

    $$\pi_j = 1 + \sum_{i \ne j} \frac{1}{1 + \exp(\alpha (s_j - s_i))}$$

    (Qin, Liu, Li: "A general approximation framework for direct optimization of information retrieval measures", 2010;
    Eq. 5 of Bruch et al., SIGIR 2019.)

    Args:
      alpha: Inverse temperature of the positions, > 0; the papers search {0.1, 1, 10, 100}.
      beta: Inverse temperature of the comparisons of positions, > 0; the papers search {0.1, 1, 10, 100}.

    Raises:
      ValueError: If an argument is out of its range.

    Time and memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> print(ops.Approx(alpha=10.0).positions(tf.constant([[1.0, 3.0, 2.0]])).numpy().round(3))
      [[3. 1. 2.]]
    """

    alpha: float = 10.0
    beta: float = 10.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "alpha", _arguments.real("alpha", self.alpha, above=0.0))
        object.__setattr__(self, "beta", _arguments.real("beta", self.beta, above=0.0))

    def passes_over_pairs(self, topn: int | None) -> int:
        """Returns about how often it passes over all pairs of documents, with a cut-off too."""
        return 1

    def positions(self, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """The smooth position of each document.

        Args:
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for padding. None: all documents are real.

        Returns:
          [batch, list], in [1, n] for n real documents; 0 at padding.

        Raises:
          ValueError: If the shapes do not match.
        """
        scores, mask, poison = lists.clean(scores, mask)
        # No difference of two finite scores overflows when each is cut at half the largest number; nor does the
        # product.
        limit = scores.dtype.max / (4.0 * max(self.alpha, 1.0))
        scores = tf.clip_by_value(scores, -limit, limit)
        real = tf.cast(mask, scores.dtype)
        # The sum with i = j has sigmoid(0) = 1/2 too much.
        return poison * (0.5 + _others_ahead(self.alpha * scores, real)) * real


def _others_ahead(logits: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
    """Returns [batch, j]: the sum over real i of sigmoid(x_i - x_j), i = j included.

    The derivative of the sigmoid is symmetric in i and j. So one product with a matrix gives the whole gradient, where
    automatic differentiation would go over the pairs several times more.
    """

    @tf.custom_gradient
    def summed(logits: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        ahead = tf.sigmoid(logits[:, tf.newaxis, :] - logits[:, :, tf.newaxis])

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            slopes = ahead - tf.square(ahead)
            sums = tf.linalg.matmul(slopes, tf.stack([upstream, real], axis=2))
            return real * sums[:, :, 0] - upstream * sums[:, :, 1]

        return tf.linalg.matvec(ahead, real), gradient

    return summed(logits)
