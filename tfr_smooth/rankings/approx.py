"""Approx: positions from sigmoids of score differences."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings.ranking import RANKINGS, PositionRanking


@RANKINGS.register("approx")
@dataclasses.dataclass(frozen=True)
class Approx(PositionRanking):
    r"""The Approx ranking: positions from sigmoids of score differences.

    $$\pi_j = 1 + \sum_{i \ne j} \frac{1}{1 + \exp(\alpha (s_j - s_i))}$$

    (Qin, Liu, Li: "A general approximation framework for direct optimization of information retrieval measures", 2010;
    Eq. 5 of Bruch et al., SIGIR 2019.)

    Args:
      alpha: Inverse temperature of the positions, > 0; the papers search {0.1, 1, 10, 100}. A number or a non-trainable
        `tf.Variable`.
      beta: Inverse temperature of the comparisons of positions, > 0 (see `PositionRanking`); the papers search
        {0.1, 1, 10, 100}.

    Raises:
      ValueError: If an argument is out of range.

    Time O(N^2), memory O(N) per list (O(N^2) where TensorFlow has no XLA).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(rankings.Approx(alpha=10.0).positions(scores, scores > 0.0).numpy().round(3))
      [[3. 1. 2.]]
    """

    alpha: float | tf.Variable = 10.0
    beta: float = 10.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "alpha", _arguments.temperature("alpha", self.alpha))
        object.__setattr__(self, "beta", _arguments.scale("beta", self.beta))

    def positions(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the position of each document.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list], in [1, n] for n real documents; any finite number at padding.
        """
        real = tf.cast(mask, scores.dtype)
        alpha = _compiled.scalar(self.alpha, scores.dtype)
        # Neither the difference of two scores nor its product with alpha overflows.
        limit = scores.dtype.max / 4.0 / tf.maximum(alpha, 1.0)
        return tf.ensure_shape(_positions(tf.clip_by_value(scores, -limit, limit), real, alpha), scores.shape)


def _ahead(scores: tf.Tensor, alpha: tf.Tensor) -> tf.Tensor:
    """Returns [batch, i, j]: the degree to which document i is ahead of document j; 1/2 for i = j."""
    # The difference first: it is exact for close scores and 0 for ties, regardless of the magnitude of the scores.
    rows, columns = _padded.pairs(scores)
    return tf.sigmoid(alpha * (rows - columns))


@_compiled.program
def _positions_program(scores: tf.Tensor, real: tf.Tensor, alpha: tf.Tensor) -> tf.Tensor:
    # XLA adds whole rows at a time. The sum includes the term i = j, which is 1/2.
    return 0.5 + tf.reduce_sum(real[:, :, tf.newaxis] * _ahead(scores, alpha), axis=1)


@_compiled.program
def _gradient_program(scores: tf.Tensor, real: tf.Tensor, alpha: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    ahead = _ahead(scores, alpha)
    # The derivative of the sigmoid is symmetric in i and j.
    derivatives = ahead * (1.0 - ahead)
    (upstream_i, upstream_j), (real_i, real_j) = _padded.pairs(upstream), _padded.pairs(real)
    return alpha * tf.reduce_sum(derivatives * (real_j * upstream_i - real_i * upstream_j), axis=1)


@_compiled.differentiable
def _positions(scores: tf.Tensor, real: tf.Tensor, alpha: tf.Tensor) -> _compiled.WithGradient:
    """Returns the positions, [batch, list], and their gradient function."""
    padded = _compiled.pad(scores), _compiled.pad(real)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return _compiled.unpad(_gradient_program(*padded, alpha, _compiled.pad(upstream)), scores)

    return _compiled.unpad(_positions_program(*padded, alpha), scores), gradient
