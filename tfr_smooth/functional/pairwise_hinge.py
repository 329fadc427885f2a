"""The pairwise hinge loss."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import pairs


def pairwise_hinge(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, margin: float = 1.0
) -> tf.Tensor:
    """Computes the pairwise hinge loss of each list, [batch]; see `PairwiseHingeCriterion`.

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
    r"""Hinge loss of the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \max(0, m - (s_i - s_j)), \qquad P = \{(i, j): y_i > y_j\}$$

    (Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002, Optimization Problem 1 without its
    regularizer; MacAvaney et al., "CEDR", SIGIR 2019, train BERT with it.) The mean over the pairs of each list, as
    for `RankNetCriterion`. At least 0, and the margin where all scores are tied. Lists whose labels are all the same
    are left out.

    Args:
      margin: The difference of scores from which on a pair costs nothing, > 0.

    Raises:
      ValueError: If an argument is out of its range.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        """Checks the argument."""
        object.__setattr__(self, "margin", _arguments.real("margin", self.margin, above=0.0))

    def pair_losses(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list, list]: at (i, j), the loss where i is to be ranked above j."""
        behind = pairs.scaled_differences(scores, tf.ones([], scores.dtype))
        return tf.nn.relu(tf.convert_to_tensor(self.margin, scores.dtype) + behind)
