"""ADR-MSE: the discounted squared error of approximate ranks as estimates of a teacher's ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _lists, rankings
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss
from tfr_smooth.rankings import exact

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ADRMSELoss(RankingLoss):
    r"""Distillation: the discounted squared error of approximate ranks as estimates of the teacher's ranks.

    $$\frac{1}{N} \sum_j \frac{(q_j - \pi_j)^2}{\log_2(1 + q_j)}, \qquad
      \pi_j = 1 + \sum_{i \ne j} \sigma(\alpha (s_i - s_j))$$

    (ADR-MSE of Schlatt et al., "Rank-DistiLLM: Closing the Effectiveness Gap Between Cross-Encoders and LLMs for
    Passage Re-Ranking", arXiv:2405.07920.) Labels are the scores of the teacher, of which only the order matters: $q_j$
    are the ranks by label, and documents with equal labels share the mean of their ranks. $\pi_j$ are the positions of
    `rankings.Approx`. The loss is at least 0. Lists with equal labels are excluded: they have no order. As negative
    labels mark padding, shift the scores of the teacher to at least 0 (`data.labels_from_scores`).

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      alpha: Inverse temperature of the positions, > 0; see `rankings.Approx`. 1 is the default of the authors' code.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(N^2), memory O(N) per list (O(N^2) where TensorFlow has no XLA).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> teacher, scores = tf.constant([[7.1, 5.2, 0.0]]), tf.constant([[2.0, 1.0, 3.0]])
      >>> print(losses.ADRMSELoss(alpha=100.0)(teacher, scores).numpy().round(4))  # ranks 2, 3 and 1
      1.2103
    """

    about: ClassVar = _about.AboutLoss(name="adr_mse", citation="Schlatt et al. 2024", cost=("N^2", "N"))

    def __init__(self, *, alpha: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self._ranking = rankings.Approx(alpha=alpha)
        self.alpha = self._ranking.alpha

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        ranks = _lists.fill(exact.average_ranks(labels, mask), mask, 1.0)
        errors = _lists.fill(ranks - self._ranking.positions(scores, mask), mask, 0.0)
        discounted = tf.square(errors) * (math.log(2.0) / tf.math.log1p(ranks))
        return tf.reduce_sum(discounted, axis=1) / _lists.count(mask, scores.dtype)[:, 0]

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with equal labels."""
        return _lists.varies(labels, mask)
