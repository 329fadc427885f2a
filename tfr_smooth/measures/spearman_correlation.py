"""Spearman's rank correlation."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _lists, _serialization
from tfr_smooth.measures.measure import Measure
from tfr_smooth.rankings import ExactRanking, PositionRanking, Ranking, exact


@_serialization.register
@dataclasses.dataclass(frozen=True)
class SpearmanCorrelation(Measure):
    r"""Spearman's rank correlation of labels and scores, per list: Pearson's correlation of their ranks.

    $$\rho = \frac{\sum_j (r_j - \bar r)(q_j - \bar q)}
      {\sqrt{\sum_j (r_j - \bar r)^2 \; \sum_j (q_j - \bar q)^2}}$$

    where $r_j$ are the ranks by score and $q_j$ the ranks by label; tied documents share the mean of their ranks
    (Spearman 1904; `scipy.stats.spearmanr`). It is in [-1, 1], and 0 if all scores are tied, where SciPy returns NaN.
    Labels may be graded or any real numbers >= 0. Lists with equal labels, also those of one document, have no
    correlation; they are treated as lists without a relevant document.

    A smooth ranking replaces $r_j$ by positions $\pi_j$, as in Blondel et al. 2020 (arXiv:2002.08871, Section 6), who
    minimize the squared difference of the ranks. The variance of the positions is replaced by that of the ranks
    1, .., n:

    $$\rho = \frac{\sum_j (\pi_j - \frac{n + 1}{2})(q_j - \bar q)}
      {\sqrt{\frac{n (n^2 - 1)}{12} \sum_j (q_j - \bar q)^2}}$$

    This is the same for distinct scores and a sharp ranking. For soft positions it is closer to 0. Unlike the
    correlation of the soft positions themselves, it is 0 with a finite gradient if all scores are tied.

    The ranking is `rankings.ExactRanking()` or a `rankings.PositionRanking`.

    Time O(N log N) and memory O(N) per list in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures, rankings
      >>> labels, scores = tf.constant([[0.0, 2.5, 1.2, 0.3]]), tf.constant([[1.0, 4.0, 2.0, 3.0]])
      >>> spearman = measures.SpearmanCorrelation()
      >>> print(spearman(labels, scores).numpy(), spearman(labels, scores, ranking=rankings.FastSort(2.0)).numpy())
      [0.8] [0.4]
    """

    ranking_class: ClassVar[type[Ranking]] = PositionRanking

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        count = _lists.count(mask, scores.dtype)

        def centered(ranks: tf.Tensor) -> tf.Tensor:
            return _lists.fill(ranks - 0.5 * (count + 1.0), mask, 0.0)

        by_label = centered(exact.average_ranks(labels, mask))
        if isinstance(ranking, ExactRanking):
            by_score = centered(exact.average_ranks(scores, mask))
            spread = tf.reduce_sum(tf.square(by_score), axis=1)
        elif not isinstance(ranking, PositionRanking):
            raise ValueError(f"`ranking` must be exact or a rankings.PositionRanking, got {ranking!r}.")
        else:
            by_score = centered(ranking.positions(scores, mask))
            spread = (count * (tf.square(count) - 1.0) / 12.0)[:, 0]
        norm = tf.sqrt(spread * tf.reduce_sum(tf.square(by_label), axis=1))
        return tf.math.divide_no_nan(tf.reduce_sum(by_score * by_label, axis=1), norm)

    def has_relevant(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with equal labels, which have no correlation."""
        return _lists.varies(labels, mask)
