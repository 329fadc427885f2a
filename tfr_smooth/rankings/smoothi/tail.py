"""The gradient of a rank of SmoothI, and the late ranks in closed form."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfr_smooth import _padded


class Settings(NamedTuple):
    """The hyperparameters as scalar tensors: alpha and delta, float64, and whether to subtract the list's minimum."""

    alpha: tf.Tensor
    delta: tf.Tensor
    is_shifted: tf.Tensor


class Tail:
    r"""The ranks after the loop, where all softmax inputs $x_j = \alpha S_j c_j$ are small.

    With n documents, means $\bar x$ over them, $u_j = x_j - \bar x$, $p_j = rel_j - \overline{rel}$ and
    $q = 1 - \delta - 1/n$, the series of the exponential gives for the k-th rank after the loop (k = 0, 1, ..)

    $$x^k_j = q^k x_j - \gamma_k x_j u_j, \quad \gamma_k = \frac{q^{k-1}(1 - q^k)}{n(1 - q)}, \qquad
      n I^k_j = 1 + z_j + \tfrac{1}{2} (z_j^2 - \overline{z^2}), \quad z_j = x^k_j - \overline{x^k}$$

    up to third powers of the inputs. Its relevance is

    $$y_k = \overline{rel} + q^k \overline{pu} - \gamma_k (\overline{pu^2} + \bar x \, \overline{pu})
      + \tfrac{1}{2} q^{2k} \overline{pu^2}$$

    and its gradient $\frac{c_j}{n} (q^k (p_j - y_k + \overline{rel}) + (q^{2k} - \gamma_k) p_j u_j)$, up to second
    powers. (A list of one document has q < 0 and no gradient.)
    """

    def __init__(
        self,
        inputs: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        factors: tf.Tensor,
        delta: tf.Tensor,
        looped: tf.Tensor,
        at_ranks: tf.Tensor,
    ) -> None:
        delta = tf.cast(delta, inputs.dtype)
        real, count = tf.cast(mask, inputs.dtype), _padded.count(mask, inputs.dtype)
        inputs *= factors
        products = (inputs, relevance, relevance * inputs, inputs**2, relevance * inputs**2)
        x, y, yx, xx, yxx = (sum_of_lists(product) / count for product in products)
        first, second = yx - x * y, (yxx - 2.0 * x * yx + x * x * y) - y * (xx - x * x)
        self._real, self._share = real, factors / count
        self._inputs, self._relevance = real * (inputs - x), real * (relevance - y)

        steps = tf.range(tf.shape(at_ranks)[1])[tf.newaxis] - looped
        self._is_tail = steps >= 0
        shrink = tf.maximum(1.0 - delta - 1.0 / count, 1e-30)
        self._powers = tf.exp(tf.cast(tf.maximum(steps, 0), shrink.dtype) * tf.math.log(shrink))
        lag = self._powers * (1.0 - self._powers) / (shrink * count * (1.0 - shrink))
        self._above_mean = self._powers * first - lag * (second + x * first) + 0.5 * self._powers**2 * second
        self._linear = self._powers**2 - lag
        # [batch, K]; arbitrary at the ranks of the loop.
        self.rank_relevance = y + self._above_mean

    def only(self, values: tf.Tensor) -> tf.Tensor:
        """Returns [batch, K] values, 0 at the ranks of the loop."""
        return tf.where(self._is_tail, values, tf.zeros_like(values))

    def gradient(self, weights: tf.Tensor) -> tf.Tensor:
        """Returns the gradient of the relevance, weighted by [batch, K] and summed, with respect to the logits."""
        weights = self.only(weights)
        factors = (self._powers, self._linear, self._powers * self._above_mean)
        constant, linear, mean = (sum_of_lists(weights * factor) for factor in factors)
        return self._share * (self._relevance * (constant + linear * self._inputs) - self._real * mean)


def rank_gradient(indicators: tf.Tensor, relevance: tf.Tensor, at_rank: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of a rank's relevance with respect to the logits."""
    gradient = indicators * (relevance - at_rank)
    # The gradients sum to 0 up to the rounding of `at_rank`. For a flat softmax the rounding adds up over the list; for
    # a sharp softmax it would dominate the gradient of the highest document.
    return factors * (gradient - indicators * sum_of_lists(gradient))


def to_scores(gradient: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, settings: Settings) -> tf.Tensor:
    """Converts the gradient with respect to the logits to the gradient with respect to the scores.

    Tied minima share the gradient of the minimum.
    """
    lowest = tf.reduce_min(tf.where(mask, scores, scores.dtype.max), axis=1, keepdims=True)
    is_lowest = tf.cast(tf.logical_and(mask, tf.equal(scores, lowest)), scores.dtype)
    shared = sum_of_lists(gradient) / tf.maximum(sum_of_lists(is_lowest), 1.0)
    shared = tf.where(settings.is_shifted, shared, tf.zeros_like(lowest))
    return tf.cast(settings.alpha, scores.dtype) * (gradient - shared * is_lowest)


def sum_of_lists(values: tf.Tensor) -> tf.Tensor:
    """Returns the sum of each list, [batch, 1]."""
    return tf.reduce_sum(values, axis=1, keepdims=True)
