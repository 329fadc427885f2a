r"""Sorting networks: sorting by relaxed swaps of fixed pairs.

Petersen, Borgelt, Kuehne, Deussen: "Differentiable Sorting Networks for Scalable Sorting and Ranking Supervision", ICML
2021 (arXiv:2105.04019), and "Monotonic Differentiable Sorting Networks", ICLR 2022 (arXiv:2203.09630). A sorting
network compares pairs of wires in layers, and swaps two values that are in the wrong order. The relaxed swap of the
values a and b on an upper and a lower wire is

$$a' = a \, f(a - b) + b \, f(b - a), \qquad b' = a \, f(b - a) + b \, f(a - b)$$

with the distribution function f of a logistic or a Cauchy distribution of the inverse scale $\beta$. With Cauchy's, the
sorted values are monotonic in the values and their error is bounded. Each layer is a doubly stochastic matrix, and so
is their product, the relaxed permutation P. The mean relevance at each rank is the relevance after the same swaps,
which needs no matrix.

The result of the relaxed network depends on the wires on which the documents start. Here they start in sorted order, so
that it does not depend on the order of the documents, and padding is never swapped. Of tied documents, the least
relevant one starts first; without a relevance, they share the mean of their wires.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import exact
from tfr_smooth.rankings.ranking import RANKINGS, Ranking

NETWORKS = ("bitonic", "odd_even")
# Flips of the bits of a wire by layer, and the largest length that does not need the layer.
_BITONIC = [(flip, 2**k) for k in range(30) for flip in (2 ** (k + 1) - 1, *(2**m for m in reversed(range(k))))]
# Scaled differences are clipped here, so that their squares are finite in float32. Both distributions are 0 or 1 there.
_LARGEST = 1e15


@RANKINGS.register("sortingnetwork")
@dataclasses.dataclass(frozen=True)
class SortingNetwork(Ranking):
    r"""The relaxed sorting network: documents at ranks after layers of soft swaps (arXiv:2105.04019, 2203.09630).

    Two documents keep their order to the degree $f(\beta d)$ for a difference d of their scores, with $f(x) =
    \tfrac12 + \tfrac1\pi \arctan x$ ("cauchy") or $f(x) = 1 / (1 + e^{-x})$ ("logistic").

    Invariant to padding, to the order of the documents and to a shift of the scores. Multiplying the scores by c is
    equivalent to multiplying the steepness by c. Every rank and every document sums to 1. At ties, where the sorted
    order changes, the indicators have a step.

    Args:
      steepness: Beta, > 0. The ranking is exact in the limit of infinity. A number or a non-trainable `tf.Variable`.
      sorting_network: "bitonic", with $\log_2(n) (\log_2(n) + 1) / 2$ layers for n documents (n rounded up to a power
        of two), or "odd_even", with n layers.
      distribution: "cauchy" or "logistic".

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(L N) per list for L layers: N log(N)^2 or N^2. Those of `indicators` are O(L N^2).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(rankings.SortingNetwork(steepness=100.0).indicators(scores, scores > 0.0).numpy().round(2))
      [[[0.   0.99 0.01]
        [0.   0.01 0.99]
        [1.   0.   0.  ]]]
    """

    steepness: float | tf.Variable = 3.0
    sorting_network: str = "bitonic"
    distribution: str = "cauchy"

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "steepness", _arguments.temperature("steepness", self.steepness))
        _arguments.choice("sorting_network", self.sorting_network, NETWORKS)
        _arguments.choice("distribution", self.distribution, _NETWORKS)

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        """Returns P, the relaxed permutation matrix.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        tied = tf.logical_and(tf.equal(*_padded.pairs(scores)), _padded.real_pairs(mask))
        shares = tf.cast(tied, scores.dtype)
        shares /= tf.maximum(tf.reduce_sum(shares, axis=2, keepdims=True), 1.0)
        return self._sorted(scores, shares, mask, topn)

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        """Returns the relevance at each rank.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K]; 0 at ranks beyond the real documents.
        """
        # Ties are then in the order of ascending relevance.
        falling = exact.descending_order(relevance, mask)
        scores, relevance, mask = (tf.gather(each, falling, batch_dims=1) for each in (scores, relevance, mask))
        return self._sorted(scores, relevance[:, :, tf.newaxis], mask, topn)[:, :, 0]

    def _sorted(self, scores: tf.Tensor, values: tf.Tensor, mask: tf.Tensor, topn: int | None) -> tf.Tensor:
        """Returns values [batch, list, M] of the documents, 0 at padding, after the network: [batch, K, M]."""
        network = _NETWORKS[self.distribution]
        beta, ranks = _compiled.scalar(self.steepness, scores.dtype), _padded.num_ranks(scores, topn)
        found = network(scores, values, mask, beta, *_layers(self.sorting_network, _padded.length(scores)))[:, :ranks]
        return tf.ensure_shape(found, [scores.shape[0], ranks if isinstance(ranks, int) else None, values.shape[2]])


def _layers(network: str, size: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns offset, flip and least, [L] int32 each: in lists longer than `least`, wire w meets (w + offset) ^ flip.

    The first layer of a bitonic merge flips all bits, so that all comparators have the same direction: of two wires,
    the upper one takes the higher score.
    """
    if network == "odd_even":
        least = tf.range(size)
        return least % 2, tf.ones_like(least), least
    flips, least = tf.unstack(tf.constant(_BITONIC), axis=1)
    # At least one: TensorFlow does not stack the states of no layer.
    layers = tf.reduce_sum(tf.cast(least < tf.maximum(size, 2), tf.int32))
    return tf.zeros_like(flips[:layers]), flips[:layers], least[:layers]


def _network(
    relaxed: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
    scores: tf.Tensor,
    values: tf.Tensor,
    mask: tf.Tensor,
    beta: tf.Tensor,
    offsets: tf.Tensor,
    flips: tf.Tensor,
    least: tf.Tensor,
) -> _compiled.WithGradient:
    """Returns the values in the order of the network, [batch, list, M], and their gradient function."""
    order = exact.descending_order(scores, mask)
    falling, places, values = (tf.gather(each, order, batch_dims=1) for each in (scores, mask, values))
    count = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1, keepdims=True)
    wires, layers = tf.range(tf.shape(scores)[1])[tf.newaxis], tf.shape(flips)[0]

    def met_by(layer: tf.Tensor) -> tf.Tensor:
        """Returns the wire that each wire meets, also if there is none, [1, list]."""
        return tf.bitwise.bitwise_xor(wires + offsets[layer], flips[layer]) - offsets[layer]

    def others(layer: tf.Tensor) -> Callable[[tf.Tensor], tf.Tensor]:
        """Returns the function that exchanges the wires that meet. A wire that meets none, or padding, meets itself."""
        met = met_by(layer)
        is_used = tf.logical_and(tf.logical_and(wires < count, least[layer] < count), (met >= 0) & (met < count))
        places = tf.where(is_used, met, wires)
        return lambda state: tf.gather(state, places, batch_dims=1)

    def comparison(state: tf.Tensor, other: tf.Tensor, layer: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns the scaled difference of each pair, and 1 for an upper wire, -1 for a lower one; [batch, list]."""
        side = tf.where(met_by(layer) > wires, tf.ones_like(beta), -tf.ones_like(beta))
        largest = _LARGEST / beta
        return side * beta * tf.clip_by_value((state - other)[:, :, 0], -largest, largest), side

    def forward(layer: tf.Tensor, state: tf.Tensor, states: tf.TensorArray) -> tuple[tf.Tensor, ...]:
        other = others(layer)(state)
        kept = relaxed(comparison(state, other, layer)[0])[0][:, :, tf.newaxis]
        return layer + 1, kept * state + (1.0 - kept) * other, states.write(layer, state)

    # The score and the values of each wire. Differences of scores are exact, regardless of their magnitude.
    scores_on_wires = _padded.fill(falling - falling[:, :1], places, 0.0)[:, :, tf.newaxis]
    state = start = tf.concat([scores_on_wires, values], axis=2)
    states = tf.TensorArray(state.dtype, size=layers, element_shape=state.shape)
    _, state, states = tf.while_loop(lambda layer, *_: layer < layers, forward, (0, state, states))
    every = tf.stop_gradient(states.stack())

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        def backward(layer: tf.Tensor, to_state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            exchanged, state = others(layer), every[layer]
            difference, side = comparison(state, exchanged(state), layer)
            kept, slope = relaxed(difference)
            to_kept = beta * tf.reduce_sum((to_state * (state - exchanged(state)))[:, :, 1:], axis=2)
            to_kept += side * difference * to_state[:, :, 0]
            to_score = side * slope * (to_kept + exchanged(to_kept))
            kept = kept[:, :, tf.newaxis]
            to_state = kept * to_state + (1.0 - kept) * exchanged(to_state)
            return layer - 1, to_state + tf.pad(to_score[:, :, tf.newaxis], [[0, 0], [0, 0], [0, tf.shape(values)[2]]])

        end = layers - 1, tf.pad(upstream, [[0, 0], [0, 0], [1, 0]])
        _, to_state = tf.while_loop(lambda layer, _: layer >= 0, backward, end)
        # Documents with the same score and values are the same, whatever their wires.
        differs = tf.reduce_any(tf.not_equal(start[:, 1:], start[:, :-1]), axis=2)
        same = _padded.Neighbors(tf.concat([tf.ones_like(mask[:, :1]), differs], axis=1))
        return exact.unsort(same.mean(tf.stop_gradient(to_state)[:, :, 0]), order)

    return state[:, :, 1:], gradient


def _cauchy(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return 0.5 + tf.atan(x) / math.pi, 1.0 / (math.pi * (1.0 + tf.square(x)))


def _logistic(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.sigmoid(x), tf.sigmoid(x) * tf.sigmoid(-x)


_NETWORKS = {
    "cauchy": _compiled.differentiable(functools.partial(_network, _cauchy)),
    "logistic": _compiled.differentiable(functools.partial(_network, _logistic)),
}
