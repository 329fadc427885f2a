"""Kendall's rank correlation."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _lists, _serialization
from tfr_smooth.measures.measure import Measure
from tfr_smooth.rankings import ExactRanking, Ranking


@_serialization.register
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
            return _lists.fill(tf.sign(tf.subtract(*_lists.pairs(values))), _lists.real_pairs(mask), 0.0)

        by_label, by_score = signs(labels), signs(scores)
        pairs = [tf.reduce_sum(tf.abs(each), axis=[1, 2]) for each in (by_label, by_score)]
        return tf.math.divide_no_nan(tf.reduce_sum(by_label * by_score, axis=[1, 2]), tf.sqrt(pairs[0] * pairs[1]))

    def has_relevant(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with equal labels, which have no correlation."""
        return _lists.varies(labels, mask)
