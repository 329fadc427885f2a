"""ListNet: cross entropy between two top-one distributions."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.criterion import Criterion
from tfr_smooth.ops import lists


def list_net(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, temperature: float = 1.0
) -> tf.Tensor:
    """Computes the ListNet loss of each list; see `ListNetCriterion` for the formula.

    Args:
      labels: [batch, list], float or int, >= 0; negative labels mark padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for additional padding. None adds no padding.
      temperature: Divisor of the scores, > 0.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for excluded lists.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> print(functional.list_net(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 0.0, 5.0]])).numpy().round(4))
      [0.5822]
    """
    return ListNetCriterion(temperature=temperature)(labels, scores, mask)


@dataclasses.dataclass(frozen=True)
class ListNetCriterion(Criterion):
    r"""ListNet: $-\sum_j \mathrm{softmax}(y)_j \log \mathrm{softmax}(s / \tau)_j$.

    (Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007, the top-one case.)
    Invariant to a shift of the scores. The loss is at least 0; its minimum is the entropy of softmax(y). Lists without
    a relevant document are excluded.

    Args:
      temperature: Tau, the divisor of the scores, > 0.

    Raises:
      ValueError: If `temperature` is out of range.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 0.0, 5.0]])
      >>> print(functional.ListNetCriterion(temperature=1.0)(labels, scores).numpy().round(4))
      [0.5822]
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        """Checks the argument."""
        object.__setattr__(self, "temperature", _arguments.real("temperature", self.temperature, above=0.0))

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        targets = tf.nn.softmax(lists.fill(labels, mask, scores.dtype.min / 4.0), axis=1)
        # The difference first, so that a shift of the scores loses no precision. The clipping avoids overflow.
        highest = tf.reduce_max(lists.fill(scores, mask, scores.dtype.min), axis=1, keepdims=True)
        lowest = scores.dtype.min / 4.0
        logits = tf.maximum(scores - tf.stop_gradient(highest), lowest * min(self.temperature, 1.0)) / self.temperature
        logits = lists.fill(logits, mask, lowest)
        return tf.nn.softmax_cross_entropy_with_logits(tf.stop_gradient(targets), logits)
