r"""SoftSort: each rank looks for the documents whose scores are near the score of that rank.

Prillo, Eisenschlos: "SoftSort: A Continuous Relaxation for the argsort Operator", ICML 2020 (arXiv:2006.16038). With
$s_{[r]}$ the r-th highest score of a list, "document j is at rank r" is

$$P_{rj} = \mathrm{softmax}_j\left(-|s_{[r]} - s_j|^p / \tau\right)$$

The paper's $\mathrm{SoftSort}^d_\tau(s) = \mathrm{softmax}(-d(\mathrm{sort}(s) 1^\top, 1 s^\top) / \tau)$ with the
distance $d = |\cdot|^p$.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import compiled, exact, lists, temperature
from tfr_smooth.ops.ranking import Ranking

# exp(-800) is 0, also in float64: farther away than this (distance over temperature), all documents are alike.
_FARTHEST = 800.0
# Exponents of the scale and of the farthest distance are cut here, so that both are float32 numbers.
_LARGEST_EXPONENT = 80.0


@dataclasses.dataclass(frozen=True)
class SoftSort(Ranking):
    r"""The SoftSort ranking: each rank is a softmax over the distances to its score.

    $P_{rj} = \mathrm{softmax}_j(-|s_{[r]} - s_j|^p / \tau)$ (arXiv:2006.16038).

    Invariant to padding, to the order of the documents and to a shift of the scores; a factor c on the scores is one of
    $c^{-p}$ on the temperature.

    Args:
      temperature: Tau, > 0; the exact ranking in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}. A number or
        a non-trainable `tf.Variable`.
      power: The p of the distance, > 0; the SoftSort paper uses 1 and 2. Below 1 the slope is infinite at ties (0 is
        taken there). $\tau^{1/p}$ is kept within $e^{\pm 80}$.

    Raises:
      ValueError: If an argument is out of its range.

    Time O(N log N + K N), memory O(K N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(ops.SoftSort(temperature=0.1).indicators(scores, scores > 0.0).numpy().round(2))
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
        """Returns P, [batch, K, list]: row r is highest at the document of rank r."""
        ranks = lists.num_ranks(scores, topn)
        sought = _highest(scores, mask, tf.convert_to_tensor(ranks))
        sought = tf.ensure_shape(sought, [scores.shape[0], ranks if isinstance(ranks, int) else None])
        # |d|^p / tau as |d tau^(-1/p)|^p, which is cut before it can overflow.
        tau = temperature.as_tensor(self.temperature, tf.float64)
        scale = tf.exp(_within(-tf.math.log(tau) / self.power))
        farthest = tf.exp(_within(tf.constant(math.log(_FARTHEST) / self.power, tf.float64)))
        # 800^(1/p) of the scale away, or as far as the scores can be.
        limit = tf.minimum(farthest / scale, scores.dtype.max)
        scale, limit = tf.cast(scale, scores.dtype), tf.cast(limit, scores.dtype)
        distance = scale * tf.minimum(tf.abs(sought[:, :, tf.newaxis] - scores[:, tf.newaxis]), limit)
        if self.power != 1.0:
            away = distance > 0.0  # The slope of 0^p is infinite for p < 1.
            distance = tf.where(away, tf.pow(tf.where(away, distance, 1.0), self.power), 0.0)
        real = tf.logical_and(lists.rank_mask(mask, ranks)[:, :, tf.newaxis], mask[:, tf.newaxis])
        weights = lists.fill(tf.exp(-distance), real, 0.0)
        # Row r has a 1 at the document of rank r: the maximum is a no-op except for the ranks of padding.
        return weights / tf.maximum(tf.reduce_sum(weights, axis=2, keepdims=True), 1.0)


def _within(exponent: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)


@compiled.graph
def _highest(scores: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor) -> tf.Tensor:
    """The K highest scores in falling order, [batch, K]; tied documents share their ranks' gradient equally."""
    order = exact.descending_order(scores, mask)

    @tf.custom_gradient
    def highest(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        falling = tf.gather(scores, order, batch_dims=1)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            rising = lists.fill(-falling, tf.gather(mask, order, batch_dims=1), falling.dtype.max)
            first, end = (tf.searchsorted(rising, rising, side=side) for side in ("left", "right"))
            totals = tf.pad(tf.cumsum(tf.cast(upstream, tf.float64), axis=1), [[0, 0], [1, 0]])
            until, before = (tf.gather(totals, tf.minimum(index, ranks), batch_dims=1) for index in (end, first))
            shared = tf.cast(until - before, upstream.dtype) / tf.cast(end - first, upstream.dtype)
            return exact.unsort(shared, order)

        return falling[:, :ranks], gradient

    return highest(scores)
