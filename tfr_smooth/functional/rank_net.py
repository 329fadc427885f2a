"""RankNet: a logistic loss over pairs of documents."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import pairs


def rank_net(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None, *, sigma: float = 1.0) -> tf.Tensor:
    """Computes the RankNet loss of each list; see `RankNetCriterion` for the formula.

    Args:
      labels: [batch, list], float or int, >= 0; negative labels mark padding.
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for additional padding. None adds no padding.
      sigma: Slope of the logistic function, > 0.

    Returns:
      [batch], float64 for float64 scores, else float32; 0 for excluded lists.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> print(functional.rank_net(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])).numpy().round(4))
      [0.6931]
    """
    return RankNetCriterion(sigma=sigma)(labels, scores, mask)


@dataclasses.dataclass(frozen=True)
class RankNetCriterion(pairs.PairwiseCriterion):
    r"""Mean logistic loss over the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{-\sigma (s_i - s_j)}), \qquad P = \{(i, j): y_i > y_j\}$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.) The
    loss is the mean over the pairs of each list, not their sum: a list has up to N^2 pairs, so a list of 1000 documents
    would have the weight of ten thousand lists of 10. TF-Ranking divides the sum over a batch by its number of
    documents, including padding, so its loss grows with N and shrinks with padding. The loss is at least 0, and log 2
    if all scores are tied. Lists with only one distinct label are excluded.

    Args:
      sigma: Slope of the logistic function, > 0.

    Raises:
      ValueError: If `sigma` is out of range.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])
      >>> print(functional.RankNetCriterion(sigma=1.0)(labels, scores).numpy().round(4))
      [0.6931]
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        """Checks the argument."""
        object.__setattr__(self, "sigma", _arguments.real("sigma", self.sigma, above=0.0))

    def pair_losses(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list, list]: the loss at (i, j) if i should be ranked above j."""
        return pairs.logistic(scores, self.sigma)
