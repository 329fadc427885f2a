"""The pairwise hinge loss."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import pairs


def pairwise_hinge(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, margin: float = 1.0
) -> tf.Tensor:
    """Computes the pairwise hinge loss of each list; see `PairwiseHingeCriterion` for the formula.

    Args:
      labels: [batch, list], float or int, >= 0; negative labels mark padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for additional padding. None adds no padding.
      margin: The difference of scores at which the loss of a pair becomes 0, > 0.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for excluded lists.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 1.75, 9.0]])
      >>> print(functional.pairwise_hinge(labels, scores).numpy())
      [0.75]
    """
    return PairwiseHingeCriterion(margin=margin)(labels, scores, mask)


@dataclasses.dataclass(frozen=True)
class PairwiseHingeCriterion(pairs.PairwiseCriterion):
    r"""Mean hinge loss over the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \max(0, m - (s_i - s_j)), \qquad P = \{(i, j): y_i > y_j\}$$

    (Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002, Optimization Problem 1 without its
    regularizer; MacAvaney et al., "CEDR", SIGIR 2019, use it to train BERT.) The mean is over the pairs of each list,
    as in `RankNetCriterion`. The loss is at least 0, and equals the margin if all scores are tied. Lists with only one
    distinct label are excluded.

    Args:
      margin: The difference of scores m at which the loss of a pair becomes 0, > 0.

    Raises:
      ValueError: If `margin` is out of range.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 1.75, 9.0]])
      >>> print(functional.PairwiseHingeCriterion(margin=1.0)(labels, scores).numpy())
      [0.75]
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        """Checks the argument."""
        object.__setattr__(self, "margin", _arguments.real("margin", self.margin, above=0.0))

    def pair_losses(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list, list]: the loss at (i, j) if i should be ranked above j."""
        behind = pairs.scaled_differences(scores, tf.ones([], scores.dtype))
        return tf.nn.relu(tf.convert_to_tensor(self.margin, scores.dtype) + behind)
