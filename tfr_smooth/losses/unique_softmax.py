"""The unique softmax loss: each document against the documents with lower labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses import pairwise
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss
from tfr_smooth.rankings.dcg import NDCGGain

if TYPE_CHECKING:
    from typing_extensions import Unpack


class UniqueSoftmaxLoss(RankingLoss):
    r"""Softmax cross entropy of each document among itself and the documents with lower labels.

    $$-\sum_j (2^{y_j} - 1) \log \frac{e^{s_j / \tau}}{e^{s_j / \tau} + \sum_{l: y_l < y_j} e^{s_l / \tau}}$$

    (Zhu and Klabjan, "Listwise Learning to Rank by Exploring Unique Ratings", WSDM 2020; TF-Ranking's
    `UniqueSoftmaxLoss`.) Documents with equal labels are not compared. Invariant to a shift of the scores. The loss is
    at least 0. Lists with only one distinct label are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `temperature` is out of range.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, 2.0]]), tf.constant([[0.6, 0.8, 0.6]])
      >>> print(losses.UniqueSoftmaxLoss(reduction="none")(labels, scores).numpy().round(4))
      [4.3076]
    """

    about: ClassVar = _about.AboutLoss(name="unique_softmax", citation="Zhu, Klabjan 2020", cost=("N^2", "N^2"))

    def __init__(self, *, temperature: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        behind = pairwise.scaled_differences(scores, tf.convert_to_tensor(1.0 / self.temperature, scores.dtype))
        lower = _lists.preferences(labels, mask)
        behind = _lists.fill(behind, lower, scores.dtype.min / 4.0)
        terms = tf.nn.softplus(tf.reduce_logsumexp(behind, axis=2))
        return tf.reduce_sum(NDCGGain.of("exponential", labels)(labels) * terms, axis=1)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _lists.varies(labels, mask)
