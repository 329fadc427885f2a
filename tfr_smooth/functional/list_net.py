"""ListNet: cross entropy of two top-one distributions."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfr_smooth.functional import inputs
from tfr_smooth.ops import lists


def list_net(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, temperature: float = 1.0
) -> tf.Tensor:
    r"""ListNet of each list: $-\sum_j \mathrm{softmax}(y)_j \log \mathrm{softmax}(s / \tau)_j$.

    (Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007, the top-one case.)

    Args:
      labels: [batch, list], float or int, >= 0; a negative label is padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for (further) padding.
      temperature: What scores are divided by, > 0.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for a list of padding.

    Raises:
      ValueError: If the shapes do not match.

    Time and memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.functional.list_net import list_net
      >>> print(list_net(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 0.0, 5.0]])).numpy().round(4))
      [0.5822]
    """
    labels, scores, mask = inputs.checked(labels, scores, mask)
    nothing = scores.dtype.min / 4.0  # Its exponential is 0, and that is no -inf * 0.
    targets = tf.nn.softmax(lists.filled(labels, mask, nothing), axis=1)

    @tf.custom_gradient
    def cross_entropy(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        logs = tf.nn.log_softmax(lists.filled(scores, mask, nothing), axis=1)
        values = -tf.reduce_sum(targets * logs, axis=1)
        return values, lambda upstream: upstream[:, tf.newaxis] * (tf.exp(logs) - targets)

    return lists.filled(cross_entropy(scores / temperature), tf.reduce_any(mask, axis=1), 0.0)
