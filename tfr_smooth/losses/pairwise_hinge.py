"""The pairwise hinge loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments
from tfr_smooth.losses import pairwise
from tfr_smooth.losses.pairwise import PairwiseLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PairwiseHingeLoss(PairwiseLoss):
    r"""Mean hinge loss over the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \max(0, m - (s_i - s_j)), \qquad P = \{(i, j): y_i > y_j\}$$

    (Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002, Optimization Problem 1 without its
    regularizer; MacAvaney et al., "CEDR", SIGIR 2019, use it to train BERT.) The mean is over the pairs of each list,
    as in `RankNetLoss`. The loss is at least 0, and equals the margin if all scores are tied. Lists with only one
    distinct label are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      margin: The difference of scores m at which the loss of a pair becomes 0, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `margin` is out of range.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 1.75, 9.0]])
      >>> print(losses.PairwiseHingeLoss(margin=1.0, reduction="none")(labels, scores).numpy())
      [0.75]
    """

    about: ClassVar = _about.AboutLoss(name="pairwise_hinge", citation="Joachims 2002", cost=("N^2", "N^2"))

    def __init__(self, *, margin: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.margin = _arguments.real("margin", margin, above=0.0)

    def pair_losses(self, scores: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list, list]: the loss at (i, j) if i should be ranked above j."""
        behind = pairwise.scaled_differences(scores, tf.ones([], scores.dtype))
        return tf.nn.relu(tf.convert_to_tensor(self.margin, scores.dtype) + behind)
