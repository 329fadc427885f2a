"""RankNet: a logistic loss over pairs of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses import pairwise
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RankNetLoss(RankingLoss):
    r"""Mean logistic loss over the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{-\sigma (s_i - s_j)}), \qquad P = \{(i, j): y_i > y_j\}$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.) The
    loss is the mean over the pairs of each list, not their sum: a list has up to N^2 pairs, so a list of 1000 documents
    would have the weight of ten thousand lists of 10. `PairwiseLogisticLoss` is TF-Ranking's sum over pairs. The loss
    is at least 0, and log 2 if all scores are tied. Lists with only one distinct label are excluded.

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

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        pairs = tf.cast(_lists.preferences(labels, mask), scores.dtype)
        total = tf.reduce_sum(pairs * pairwise.logistic(scores, self.sigma), axis=[1, 2])
        return tf.math.divide_no_nan(total, tf.reduce_sum(pairs, axis=[1, 2]))

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _lists.varies(labels, mask)
