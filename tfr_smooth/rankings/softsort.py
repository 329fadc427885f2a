r"""SoftSort: each rank is a softmax over the distances of all scores to the score of that rank.

Prillo, Eisenschlos: "SoftSort: A Continuous Relaxation for the argsort Operator", ICML 2020 (arXiv:2006.16038). With
the r-th highest score $s_{[r]}$ of a list, the indicator of document j at rank r is

$$P_{rj} = \mathrm{softmax}_j\left(-|s_{[r]} - s_j|^p / \tau\right)$$

This is the paper's $\mathrm{SoftSort}^d_\tau(s) = \mathrm{softmax}(-d(\mathrm{sort}(s) 1^\top, 1 s^\top) / \tau)$ with
the distance $d = |\cdot|^p$.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import exact
from tfr_smooth.rankings.ranking import RANKINGS, Ranking

# exp(-800) is 0, also in float64: documents with a larger ratio of distance to temperature have weight 0.
_FARTHEST = 800.0
# Exponents of the scale and of the largest distance are clipped here, so that both are finite in float32.
_LARGEST_EXPONENT = 80.0


@RANKINGS.register("softsort")
@dataclasses.dataclass(frozen=True)
class SoftSort(Ranking):
    r"""The SoftSort ranking: each rank is a softmax over the distances to its score.

    $P_{rj} = \mathrm{softmax}_j(-|s_{[r]} - s_j|^p / \tau)$ (arXiv:2006.16038).

    Invariant to padding, to the order of the documents and to a shift of the scores. Multiplying the scores by c is
    equivalent to multiplying the temperature by $c^{-p}$.

    Args:
      temperature: Tau, > 0. The ranking is exact in the limit of 0. The SmoothI paper searches {0.1, 1, 10, 100}. A
        number or a non-trainable `tf.Variable`.
      power: The exponent p of the distance, > 0; the SoftSort paper uses 1 and 2. Below 1 the slope at ties is infinite
        and replaced by 0. $\tau^{1/p}$ is clipped to $e^{\pm 80}$.

    Raises:
      ValueError: If an argument is out of range.

    Time O(N log N + K N), memory O(K N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(rankings.SoftSort(temperature=0.1).indicators(scores, scores > 0.0).numpy().round(2))
      [[[0. 1. 0.]
        [0. 0. 1.]
        [1. 0. 0.]]]
    """

    temperature: float | tf.Variable = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "temperature", _arguments.temperature("temperature", self.temperature))
        object.__setattr__(self, "power", _arguments.real("power", self.power, above=0.0))

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns P, the softmax over the documents at each rank.

        Row r is highest at the document of rank r.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        ranks = _padded.num_ranks(scores, topn)
        sought = _highest(scores, mask, tf.convert_to_tensor(ranks))
        sought = tf.ensure_shape(sought, [scores.shape[0], ranks if isinstance(ranks, int) else None])
        # |d|^p / tau as |d tau^(-1/p)|^p, which is clipped before it can overflow.
        tau = _compiled.scalar(self.temperature, tf.float64)
        scale = tf.exp(_within(-tf.math.log(tau) / self.power))
        farthest = tf.exp(_within(tf.constant(math.log(_FARTHEST) / self.power, tf.float64)))
        # A scaled distance of 800^(1/p), or the largest distance that the type of the scores allows.
        limit = tf.minimum(farthest / scale, scores.dtype.max)
        scale, limit = tf.cast(scale, scores.dtype), tf.cast(limit, scores.dtype)
        distance = scale * tf.minimum(tf.abs(sought[:, :, tf.newaxis] - scores[:, tf.newaxis]), limit)
        if self.power != 1.0:
            away = distance > 0.0  # The slope of 0^p is infinite for p < 1.
            distance = tf.where(away, tf.pow(tf.where(away, distance, 1.0), self.power), 0.0)
        real = tf.logical_and(_padded.rank_mask(mask, ranks)[:, :, tf.newaxis], mask[:, tf.newaxis])
        weights = _padded.fill(tf.exp(-distance), real, 0.0)
        # Row r has a 1 at the document of rank r, so the maximum only affects ranks of padding.
        return weights / tf.maximum(tf.reduce_sum(weights, axis=2, keepdims=True), 1.0)


def _within(exponent: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)


@_compiled.graph
def _highest(scores: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor) -> tf.Tensor:
    """Returns the K highest scores in descending order, [batch, K]; ties share the gradient of their ranks equally."""
    order = exact.descending_order(scores, mask)

    @tf.custom_gradient
    def highest(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        # Otherwise, TensorFlow 2.15 also computes the gradient of `gather`, which fails for a batch without lists.
        falling = tf.gather(tf.stop_gradient(scores), order, batch_dims=1)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            rising = _padded.fill(-falling, tf.gather(mask, order, batch_dims=1), falling.dtype.max)
            first, end = (tf.searchsorted(rising, rising, side=side) for side in ("left", "right"))
            totals = tf.pad(tf.cumsum(tf.cast(upstream, tf.float64), axis=1), [[0, 0], [1, 0]])
            until, before = (tf.gather(totals, tf.minimum(index, ranks), batch_dims=1) for index in (end, first))
            shared = tf.cast(until - before, upstream.dtype) / tf.cast(end - first, upstream.dtype)
            return exact.unsort(shared, order)

        return falling[:, :ranks], gradient

    return highest(scores)
