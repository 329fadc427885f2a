"""RankNet: a logistic loss over pairs of documents."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import pairs


def rank_net(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, sigma: float = 1.0) -> tf.Tensor:
    """Computes RankNet of each list, [batch]; see `RankNetCriterion`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> print(functional.rank_net(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])).numpy().round(4))
      [0.6931]
    """
    return RankNetCriterion(sigma=sigma)(labels, scores, mask)


@dataclasses.dataclass(frozen=True)
class RankNetCriterion(pairs.PairwiseCriterion):
    r"""Logistic loss of the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{-\sigma (s_i - s_j)}), \qquad P = \{(i, j): y_i > y_j\}$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.) The
    mean over the pairs of each list, not their sum: there are up to N^2 of them, and a list of 1000 documents would
    count as much as ten thousand of 10. TF-Ranking divides the sum over a batch by the number of its documents, padding
    included, so that its loss grows with N and shrinks with padding. At least 0, and log 2 where all scores are tied.
    Lists whose labels are all the same are left out.

    Args:
      sigma: Slope of the logistic function, > 0.

    Raises:
      ValueError: If an argument is out of its range.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        """Checks the argument."""
        object.__setattr__(self, "sigma", _arguments.real("sigma", self.sigma, above=0.0))

    def pair_losses(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list, list]: at (i, j), the loss where i is to be ranked above j."""
        return pairs.logistic(scores, self.sigma)
