"""Measures of pairs and ranks: Kendall's and Spearman's correlation, and ordered pair accuracy."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _arguments, _padded
from tfr_smooth.measures.measure import EXACT_ONLY, MEASURES, Measure
from tfr_smooth.rankings import ExactRanking, PositionRanking, Ranking, exact


@EXACT_ONLY.register("kendall_tau")
@dataclasses.dataclass(frozen=True)
class KendallTau(Measure):
    r"""Kendall's rank correlation $\tau_b$ of labels and scores, per list.

    $$\tau_b = \frac{\sum_{i < j} \mathrm{sign}(s_i - s_j) \, \mathrm{sign}(y_i - y_j)}
      {\sqrt{\sum_{i < j} [s_i \ne s_j] \; \sum_{i < j} [y_i \ne y_j]}}$$

    (Kendall 1945; `scipy.stats.kendalltau`.) Without ties, it is the share of the pairs in the right order minus that
    in the wrong order. It is in [-1, 1], and 0 if all scores are tied, where SciPy returns NaN. Labels may be graded or
    any real numbers >= 0. Lists with equal labels, also those of one document, have no correlation; they are treated as
    lists without a relevant document. The only ranking is `rankings.ExactRanking()`.

    `losses.PairwiseSoftZeroOneLoss` is the smooth counterpart: with $\tanh(x / 2) = 2 \sigma(x) - 1$ instead of the
    sign of $s_i - s_j$ (as in DiffKendall, arXiv:2307.15317), the numerator is the number of pairs with different
    labels, minus two times the loss times the number of documents.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels, scores = tf.constant([[0.0, 2.5, 1.2, 0.3]]), tf.constant([[1.0, 4.0, 2.0, 3.0]])
      >>> print(measures.KendallTau()(labels, scores).numpy().round(4))
      [0.6667]
    """

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        _arguments.instance("ranking", ranking, ExactRanking)

        def signs(values: tf.Tensor) -> tf.Tensor:
            return _padded.fill(tf.sign(tf.subtract(*_padded.pairs(values))), _padded.real_pairs(mask), 0.0)

        by_label, by_score = signs(labels), signs(scores)
        pairs = [tf.reduce_sum(tf.abs(each), axis=[1, 2]) for each in (by_label, by_score)]
        return tf.math.divide_no_nan(tf.reduce_sum(by_label * by_score, axis=[1, 2]), tf.sqrt(pairs[0] * pairs[1]))

    def has_relevant(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with equal labels, which have no correlation."""
        return _padded.varies(labels, mask)


@MEASURES.register("spearman")
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
        count = _padded.count(mask, scores.dtype)

        def centered(ranks: tf.Tensor) -> tf.Tensor:
            return _padded.fill(ranks - 0.5 * (count + 1.0), mask, 0.0)

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
        return _padded.varies(labels, mask)


@EXACT_ONLY.register("ordered_pair_accuracy")
@dataclasses.dataclass(frozen=True)
class OrderedPairAccuracy(Measure):
    r"""OPA of each list: the share of the pairs with different labels that the scores order correctly.

    $$\mathrm{OPA} = \frac{\sum_{i, j} [y_i > y_j] \, [s_i > s_j]}{\sum_{i, j} [y_i > y_j]}$$

    Tied scores are not correct. In the mean over lists, the weight of a list is multiplied by the number of its pairs,
    as in TF-Ranking: the mean is over all pairs of the data set. Lists without a pair therefore do not count. The only
    ranking is `rankings.ExactRanking()`.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> opa = measures.OrderedPairAccuracy()
      >>> print(opa(tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])).numpy().round(4))
      [0.3333]
    """

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        _arguments.instance("ranking", ranking, ExactRanking)
        pairs, (higher, lower) = _padded.preferences(labels, mask), _padded.pairs(scores)
        return tf.math.divide_no_nan(_count(tf.logical_and(pairs, higher > lower), scores), _count(pairs, scores))

    def list_weights(self, sample_weight: tf.Tensor | float | None, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weight of each list times the number of its pairs, [batch]."""
        return super().list_weights(sample_weight, labels, mask) * _count(_padded.preferences(labels, mask), labels)


def _count(pairs: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns the number of pairs of each list, [batch], in the type of `like`."""
    return tf.reduce_sum(tf.cast(pairs, like.dtype), axis=[1, 2])
