r"""Error bounds of SmoothI: Theorem 2 and Corollary 1 of arXiv:2105.00942."""

from __future__ import annotations

import math

import tensorflow as tf

from tfr_smooth import _arguments, _padded


def smoothi_error_bound(
    scores: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    alpha: float = 10.0,
    delta: float = 0.1,
    topn: int | None = None,
) -> tf.Tensor:
    r"""Returns the error bound of SmoothI's rank indicators.

    The bound on $|I^r_j - I^{r,\alpha}_j|$ over documents j and ranks r up to K (Theorem 2 of arXiv:2105.00942) is

    $$\epsilon_\alpha = (n - 1) \exp\left(-\alpha \frac{S_{min}}{2^{K-1}} \min\{1, \tfrac{\beta - 1}{2}\}\right)$$

    where $S_{min}$ is the smallest score and $\beta$ the smallest ratio of two different scores. The bound holds under
    condition (C1):

    $$\epsilon_\alpha < \gamma = \min\{\delta, \tfrac12 - \delta, (1 - \delta) \tfrac{c - 1}{c + 1}\}, \qquad
      c = (\tfrac{\beta + 1}{2})^{1 / (K - 1)}$$

    The paper writes K - 1 instead of n - 1. The sum in its proof runs over the n - 1 other documents, so this function
    uses n - 1 (the two agree at K = n).

    The theorem applies to positive scores without a shift: compare with `SmoothI(..., shift=False)`.

    Args:
      scores: [batch, list], any float type, positive and distinct.
      mask: [batch, list] bool, False for padding. None treats all documents as real.
      alpha: Inverse temperature of `SmoothI`, > 0.
      delta: The delta of `SmoothI`, in (0, 0.5).
      topn: The number of ranks K, >= 1, capped at the number of real documents. None uses all ranks.

    Returns:
      [batch] float64. Infinity where the theorem does not apply: (C1) fails, or scores are tied or not positive. 0 for
      lists with at most one document.

    Raises:
      ValueError: If `alpha`, `delta` or `topn` is out of range.

    Time O(N log N), memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> print(rankings.smoothi_error_bound(tf.constant([[1.0, 2.0, 4.0]]), alpha=100.0, topn=2).numpy().round(12))
      [2.8e-11]
    """
    alpha = _arguments.real("alpha", alpha, above=0.0)
    delta = _arguments.real("delta", delta, above=0.0, below=0.5)
    topn = _arguments.topn(topn)
    scores = tf.cast(tf.convert_to_tensor(scores), tf.float64)
    mask = tf.ones_like(scores, tf.bool) if mask is None else tf.convert_to_tensor(mask)
    count = tf.reduce_sum(tf.cast(mask, tf.float64), axis=1)
    ranks = count if topn is None else tf.minimum(count, float(topn))

    falling = tf.sort(_padded.fill(scores, mask, -math.inf), axis=1, direction="DESCENDING")
    pairs = tf.math.is_finite(falling[:, 1:])
    ratios = _padded.fill(falling[:, :-1] / falling[:, 1:], pairs, math.inf)
    smallest_ratio = tf.reduce_min(ratios, axis=1)
    smallest = tf.reduce_min(_padded.fill(scores, mask, math.inf), axis=1)

    step = tf.pow((smallest_ratio + 1.0) / 2.0, 1.0 / tf.maximum(ranks - 1.0, 1.0))
    # At K = 1 no rank comes before, and the third condition drops out (c -> infinity).
    third = tf.where(ranks > 1.0, (step - 1.0) / (step + 1.0), tf.ones_like(step))
    gamma = tf.minimum(min(delta, 0.5 - delta), (1.0 - delta) * third)
    gap = tf.minimum(1.0, (smallest_ratio - 1.0) / 2.0)
    bound = (count - 1.0) * tf.exp(-alpha * smallest * gap / tf.pow(tf.constant(2.0, tf.float64), ranks - 1.0))

    holds = tf.logical_and(tf.logical_and(smallest > 0.0, smallest_ratio > 1.0), bound < gamma)
    bound = _padded.fill(bound, holds, math.inf)
    return _padded.fill(bound, count > 1.0, 0.0)


def smoothi_metric_error_bound(
    epsilon: tf.Tensor, rank_weights: tf.Tensor, relevance: tf.Tensor, *, lipschitz: float = 1.0
) -> tf.Tensor:
    r"""Returns the error bound of a metric computed with SmoothI.

    For a metric $h = \sum_r a_r g(\sum_j b_j I^r_j)$, the bound is (Corollary 1 of arXiv:2105.00942)

    $$|h(I) - h(I^\alpha)| \le \left(\sum_r |a_r|\right) \left(\sum_j |b_j|\right) \ell \, \epsilon_\alpha$$

    Args:
      epsilon: [batch], the bound on the indicators, from `smoothi_error_bound`.
      rank_weights: [K], the weights $a_r$ of the metric: 1/K for P@K, the discounts divided by the ideal DCG for NDCG.
      relevance: [batch, list], the $b_j$ of the metric; 0 at padding.
      lipschitz: The Lipschitz constant $\ell$ of g, > 0: 1 for P@K; $2^m \ln 2$ for NDCG with labels up to m.

    Returns:
      [batch] float64.

    Raises:
      ValueError: If `lipschitz` is not a positive number.

    Time and memory O(N + K) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> bound = rankings.smoothi_metric_error_bound([0.01], [0.5, 0.5], [[1.0, 0.0, 1.0]])
      >>> print(bound.numpy().round(6))
      [0.02]
    """
    lipschitz = _arguments.real("lipschitz", lipschitz, above=0.0)
    epsilon, rank_weights, relevance = (tf.cast(tensor, tf.float64) for tensor in (epsilon, rank_weights, relevance))
    weight = tf.reduce_sum(tf.abs(rank_weights)) * tf.reduce_sum(tf.abs(relevance), axis=-1)
    return weight * lipschitz * epsilon
