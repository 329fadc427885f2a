"""ListNet: cross entropy between two top-one distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss
from tfr_smooth.losses.softmax import cross_entropy

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ListNetLoss(RankingLoss):
    r"""ListNet: $-\sum_j \mathrm{softmax}(y)_j \log \mathrm{softmax}(s / \tau)_j$.

    (Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007, the top-one case.)
    Invariant to a shift of the scores. The loss is at least 0; its minimum is the entropy of softmax(y). Lists without
    a relevant document are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `temperature` is out of range.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 0.0, 5.0]])
      >>> print(losses.ListNetLoss(temperature=1.0, reduction="none")(labels, scores).numpy().round(4))
      [0.5822]
    """

    about: ClassVar = _about.AboutLoss(name="list_net", citation="Cao et al. 2007, top-one", cost=("N", "N"))

    def __init__(self, *, temperature: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        targets = tf.nn.softmax(_lists.fill(labels, mask, scores.dtype.min / 4.0), axis=1)
        return cross_entropy(targets, scores, mask, self.temperature)
