"""RankNet: a logistic loss over pairs of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments
from tfr_smooth.losses import pairwise
from tfr_smooth.losses.pairwise import PairwiseLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RankNetLoss(PairwiseLoss):
    r"""Mean logistic loss over the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{-\sigma (s_i - s_j)}), \qquad P = \{(i, j): y_i > y_j\}$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.) The
    loss is the mean over the pairs of each list, not their sum: a list has up to N^2 pairs, so a list of 1000 documents
    would have the weight of ten thousand lists of 10. TF-Ranking divides the sum over a batch by its number of
    documents, including padding, so its loss grows with N and shrinks with padding. The loss is at least 0, and log 2
    if all scores are tied. Lists with only one distinct label are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      sigma: Slope of the logistic function, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `sigma` is out of range.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])
      >>> print(losses.RankNetLoss(sigma=1.0, reduction="none")(labels, scores).numpy().round(4))
      [0.6931]
    """

    about: ClassVar = _about.AboutLoss(name="rank_net", citation="Burges et al. 2005, Eq. 3", cost=("N^2", "N^2"))

    def __init__(self, *, sigma: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.sigma = _arguments.real("sigma", sigma, above=0.0)

    def pair_losses(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list, list]: the loss at (i, j) if i should be ranked above j."""
        return pairwise.logistic(scores, self.sigma)
