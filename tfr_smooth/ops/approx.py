"""Approx: positions by sigmoids of score differences."""

from __future__ import annotations

import dataclasses

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
        ahead = tf.sigmoid(self.alpha * (scores[:, tf.newaxis, :] - scores[:, :, tf.newaxis]))
        real = tf.cast(mask, scores.dtype)
        # The sum with i = j has sigmoid(0) = 1/2 too much.
        positions = 0.5 + tf.reduce_sum(ahead * real[:, tf.newaxis, :], axis=2)
        return poison * positions * real
