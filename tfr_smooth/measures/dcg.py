"""Discounted cumulative gain."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _lists, _serialization
from tfr_smooth.measures.measure import Measure
from tfr_smooth.rankings import Ranking
from tfr_smooth.rankings.dcg import Discount, TensorFunction, exponential_gain

_LARGEST = 100.0


@_serialization.register
@dataclasses.dataclass(frozen=True)
class DCG(Measure):
    r"""DCG@K of each list, without `NDCG`'s division by the value of the ideal order.

    $$\mathrm{DCG@}K = \sum_{r=1}^K g(y_r) \, D(r)$$

    where $y_r$ is the label of the document at rank r.

    To save models with functions of your own, register them with `tf.keras.utils.register_keras_serializable`.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain_fn: The gain g, an elementwise function of labels. None for $2^y - 1$, for labels up to 100.
      rank_discount_fn: The discount D, an elementwise function of float32 ranks, which start at 1. None for
        $1 / \log_2(r + 1)$.

    Raises:
      ValueError: If an argument is out of range; in a call, if a label is above 100 without `gain_fn` (in a graph:
        `tf.errors.InvalidArgumentError`, which XLA leaves out).

    Time and memory O(K) per list in addition to the ranking.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels, scores = tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[2.0, 1.0, 0.0]])
      >>> print(measures.DCG()(labels, scores).numpy().round(4))
      [2.3928]
      >>> reciprocal = measures.DCG(gain_fn=tf.identity, rank_discount_fn=tf.math.reciprocal)
      >>> print(reciprocal(labels, scores).numpy().round(4))
      [1.3333]
    """

    topn: int | None = None
    gain_fn: TensorFunction | None = None
    rank_discount_fn: TensorFunction | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.function("gain_fn", self.gain_fn, optional=True)
        _arguments.function("rank_discount_fn", self.rank_discount_fn, optional=True)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        gains = tf.cast(self.gain_fn(labels), labels.dtype) if self.gain_fn else exponential_gain(_small(labels))
        return ranking.discounted_gain(
            scores,
            _lists.fill(gains, mask, 0.0),  # The gain of the label 0 may be another number.
            mask,
            discount=discount_of(self.rank_discount_fn),
            topn=self.topn,
            gain=tf.identity,
        )


def _small(labels: tf.Tensor) -> tf.Tensor:
    """Returns the labels; raises an error if a sum of gains 2^y may exceed the largest float32."""
    expected = f"`labels` must be at most {_LARGEST:g} for the gain 2^y - 1; use `gain_fn` for other labels"
    try:
        check = tf.debugging.assert_less_equal(labels, tf.constant(_LARGEST, labels.dtype), expected)
    except tf.errors.InvalidArgumentError:
        raise ValueError(f"{expected}, got {tf.reduce_max(labels).numpy():g}.") from None
    with tf.control_dependencies([] if check is None else [check]):
        return tf.identity(labels)


def discount_of(rank_discount_fn: TensorFunction | None) -> Discount:
    """Returns the discount of a function of ranks that start at 1; None for NDCG's."""
    if rank_discount_fn is None:
        return "log2"
    return lambda ranks: rank_discount_fn(tf.cast(ranks + 1.0, tf.float32))
