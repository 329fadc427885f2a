"""The regression compatible loss: a listwise and a pointwise cross entropy with the same minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses.ranking_loss import LossOptions
from tfr_smooth.losses.sigmoid_cross_entropy import SigmoidCrossEntropyLoss
from tfr_smooth.losses.softmax import cross_entropy

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RegressionCompatibleLoss(SigmoidCrossEntropyLoss):
    r"""Sigmoid cross entropy plus the cross entropy of the labels and the normalized sigmoids of the scores.

    $$-\frac{1 - w}{N} \sum_j \left[y_j \log \sigma(s_j) + (1 - y_j) \log (1 - \sigma(s_j))\right]
      - \frac{w}{\sum_l y_l} \sum_j y_j \log \frac{\sigma(s_j)}{\sum_l \sigma(s_l)}$$

    (Bai et al., "Regression Compatible Listwise Objectives for Calibrated Ranking with Binary Relevance", CIKM 2023:
    SigmoidCE and ListCE.) Both terms are at their minimum where $\sigma(s_j)$ is the probability of relevance, so the
    ranking term does not oppose the calibration, as a softmax loss does. The loss is at least 0 for labels in [0, 1];
    with larger labels, the first term has no lower bound. Lists without a relevant document are included, with 0 for
    the second term; empty lists are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      list_weight: The weight $w$ of the listwise term, in [0, 1].
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.RegressionCompatibleLoss(list_weight=0.5)
      >>> print(loss(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]])).numpy().round(4))
      0.7656
    """

    about: ClassVar = _about.AboutLoss(name="regression_compatible", citation="Bai et al. 2023", cost=("N", "N"))

    def __init__(self, *, list_weight: float = 0.5, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.list_weight = _arguments.real("list_weight", list_weight, least=0.0, most=1.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        total = tf.reduce_sum(labels, axis=1)
        targets = tf.math.divide_no_nan(labels, total[:, tf.newaxis])
        # The softmax of the logarithms of the sigmoids.
        listwise = _lists.fill(cross_entropy(targets, tf.math.log_sigmoid(scores), mask, 1.0), total > 0.0, 0.0)
        return (1.0 - self.list_weight) * super().compute(labels, scores, mask) + self.list_weight * listwise
