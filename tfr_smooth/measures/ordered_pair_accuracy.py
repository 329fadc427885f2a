"""Ordered pair accuracy."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _lists, _serialization
from tfr_smooth.measures.measure import Measure
from tfr_smooth.rankings import ExactRanking, Ranking


@_serialization.register
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
        pairs, (higher, lower) = _lists.preferences(labels, mask), _lists.pairs(scores)
        return tf.math.divide_no_nan(_count(tf.logical_and(pairs, higher > lower), scores), _count(pairs, scores))

    def list_weights(self, sample_weight: tf.Tensor | float | None, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weight of each list times the number of its pairs, [batch]."""
        return super().list_weights(sample_weight, labels, mask) * _count(_lists.preferences(labels, mask), labels)


def _count(pairs: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns the number of pairs of each list, [batch], in the type of `like`."""
    return tf.reduce_sum(tf.cast(pairs, like.dtype), axis=[1, 2])
