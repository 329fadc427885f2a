"""ListAP: average precision of a histogram of the scores."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import inputs
from tfr_smooth.functional.metric import binary
from tfr_smooth.ops import lists


def list_ap(
    labels: tf.Tensor,
    scores: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    num_bins: int = 20,
    temperature: float = 1.0,
) -> tf.Tensor:
    r"""Quantised average precision of each list.

    $$\mathrm{AP}_Q = \sum_{m=1}^M \frac{\sum_{m' \le m} h^+_{m'}}{\sum_{m' \le m} h_{m'}} \frac{h^+_m}{R}, \qquad
      h_m = \sum_j \delta(x_j, m), \quad h^+_m = \sum_j rel_j \, \delta(x_j, m)$$

    with $\delta(x, m) = \max(1 - |x - b_m| / \Delta, 0)$ around M bin centres from $b_1 = 1$ down to $b_M = -1$, which
    are $\Delta = 2 / (M - 1)$ apart, and R relevant documents (Revaud, Almazan, Rezende, Souza, "Learning with Average
    Precision: Training Image Retrieval with a Listwise Loss", ICCV 2019, arXiv:1906.07589).

    The paper bins cosine similarities, which are in [-1, 1]. Scores are not: they are squashed first, to
    $x_j = \tanh((s_j - \bar s) / \tau)$ with the list's mean. So the bins are finest around the mean, a shift of the
    scores changes nothing, and documents farther than a few tau from the mean share the outer bins.

    Args:
      labels: [batch, list], float or int; relevant is a label >= 1, a negative label is padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for (further) padding.
      num_bins: M, an integer >= 2.
      temperature: Tau, > 0, in the unit of the scores.

    Returns:
      [batch] in [0, 1], float64 for float64 scores, else float32; 0 for a list without a relevant document.

    Raises:
      ValueError: If the shapes do not match.

    Time and memory O(M N) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.functional.list_ap import list_ap
      >>> print(list_ap(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]])).numpy().round(3))
      [0.819]
    """
    labels, scores, mask = inputs.clean(labels, scores, mask)
    scores, _, poison = lists.clean(scores, mask)
    real = tf.cast(mask, scores.dtype)
    relevant = real * binary(labels)
    counted = tf.stack([relevant, real], axis=1)
    found, documents = tf.unstack(tf.matmul(counted, _bins(scores, real, num_bins, temperature)), axis=1)
    precisions = tf.math.divide_no_nan(tf.cumsum(found, axis=1), tf.cumsum(documents, axis=1))
    total = tf.reduce_sum(precisions * found, axis=1)
    return poison[:, 0] * tf.math.divide_no_nan(total, tf.reduce_sum(relevant, axis=1))


def _bins(scores: tf.Tensor, real: tf.Tensor, num_bins: int, temperature: float) -> tf.Tensor:
    """How much of each document is in each bin, [batch, list, M]: it lies between two, and is shared by them."""
    # The sum of a list's scores must not overflow; at the edges they are all in the outer bins anyway.
    edge = scores.dtype.max * 1e-8
    scores = tf.clip_by_value(scores, -edge, edge)
    # Less the highest first: then the mean of scores that were shifted rounds as it did.
    highest = tf.reduce_max(lists.filled(scores, real > 0.0, -edge), axis=1, keepdims=True)
    scores = real * (scores - tf.stop_gradient(highest))
    count = tf.maximum(tf.reduce_sum(real, axis=1, keepdims=True), 1.0)
    mean = tf.reduce_sum(real * scores, axis=1, keepdims=True) / count
    place = (1.0 - tf.tanh((scores - mean) / temperature)) * ((num_bins - 1) / 2.0)
    upper = tf.stop_gradient(tf.minimum(tf.floor(place), num_bins - 2.0))
    share = (place - upper)[:, :, tf.newaxis]
    first = tf.cast(upper, tf.int32)
    return (1.0 - share) * tf.one_hot(first, num_bins, dtype=scores.dtype) + share * tf.one_hot(
        first + 1, num_bins, dtype=scores.dtype
    )
