r"""SoftSort: each rank looks for the documents whose scores are near the score of that rank.

Prillo, Eisenschlos: "SoftSort: A Continuous Relaxation for the argsort Operator", ICML 2020 (arXiv:2006.16038). With
$s_{[r]}$ the r-th highest score of a list, "document j is at rank r" is

$$P_{rj} = \mathrm{softmax}_j\left(-|s_{[r]} - s_j|^p / \tau\right)$$

The paper's $\mathrm{SoftSort}^d_\tau(s) = \mathrm{softmax}(-d(\mathrm{sort}(s) 1^\top, 1 s^\top) / \tau)$ with the
distance $d = |\cdot|^p$.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import exact, lists

# exp(-800) is 0, also in float64: farther away than this (distance over temperature), all documents are alike.
_FARTHEST = 800.0
# Exponents of the scale and of the farthest distance are cut here, so that both are float32 numbers.
_LARGEST_EXPONENT = 80.0


@dataclasses.dataclass(frozen=True)
class SoftSort:
    r"""The SoftSort ranking: hand it to any metric of `tfr_smooth.functional` to make that metric smooth.

    $P_{rj} = \mathrm{softmax}_j(-|s_{[r]} - s_j|^p / \tau)$ (arXiv:2006.16038).

    Invariant to padding, to the order of the documents and to a shift of the scores; a factor c on the scores is one of
    $c^{-p}$ on the temperature.

    Args:
      temperature: Tau, > 0; the exact ranking in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.
      power: The p of the distance, > 0; the SoftSort paper uses 1 and 2. Below 1 the slope is infinite at ties (0 is
        taken there). $\tau^{1/p}$ is kept within $e^{\pm 80}$.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.softsort import SoftSort
      >>> y = SoftSort(temperature=0.1).relevance(tf.constant([[0.0, 3.0, 1.0]]), tf.constant([[0.0, 2.0, 1.0]]))
      >>> print(y.numpy().round(3))
      [[2. 1. 0.]]
    """

    temperature: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "temperature", _arguments.real("temperature", self.temperature, above=0.0))
        object.__setattr__(self, "power", _arguments.real("power", self.power, above=0.0))

    def passes_over_pairs(self, topn: int | None) -> int:
        """Returns about how often it passes over all pairs of documents: with a cut-off never."""
        return 2 if topn is None else 0

    def relevance(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor | None = None,
        topn: int | None = None,
    ) -> tf.Tensor:
        """Returns the relevance found at ranks 1..K; see `softsort_relevance`."""
        return softsort_relevance(scores, relevance, mask, topn=topn, **dataclasses.asdict(self))

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor | None = None, topn: int | None = None) -> tf.Tensor:
        """Returns the rank indicators; see `softsort_indicators`."""
        return softsort_indicators(scores, mask, topn=topn, **dataclasses.asdict(self))


def softsort_relevance(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    temperature: float = 1.0,
    power: float = 1.0,
    topn: int | None = None,
) -> tf.Tensor:
    r"""The relevance found at each rank: $y_r = \sum_j rel_j P_{rj}$ (arXiv:2006.16038).

    Args:
      scores: [batch, list], any float type. float16 and bfloat16 are computed in float32.
      relevance: [batch, list], what is found at a document; a constant, no gradient flows to it.
      mask: [batch, list] bool, False for padding. None: all documents are real. What stands in a padded place,
        NaN too, reaches nothing.
      temperature: Tau, > 0.
      power: The p of the distance, > 0.
      topn: The number of ranks K; None or more than the list has: the list's length.

    Returns:
      [batch, K], float64 for float64 scores, else float32; within the range of the list's relevance. Ranks beyond the
      number of real documents hold 0.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + K N), memory O(K N) a list. Runs in graphs and under XLA.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.softsort import softsort_relevance
      >>> y = softsort_relevance(tf.constant([[2.0, 1.0, 0.0]]), tf.constant([[1.0, 0.0, 0.0]]), topn=2)
      >>> print(y.numpy().round(4))
      [[0.6652 0.2119]]
    """
    ranking, topn = SoftSort(temperature, power), _arguments.topn(topn)
    scores, mask, poison = lists.clean(scores, mask)
    relevance = tf.stop_gradient(lists.aligned("relevance", relevance, scores, mask))
    return poison * tf.linalg.matvec(_rows(scores, mask, ranking, topn), relevance)


def softsort_indicators(
    scores: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    temperature: float = 1.0,
    power: float = 1.0,
    topn: int | None = None,
) -> tf.Tensor:
    r"""The matrix P itself (arXiv:2006.16038): row r says where rank r looks.

    Args:
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for padding. None: all documents are real.
      temperature: Tau, > 0.
      power: The p of the distance, > 0.
      topn: The number of ranks K; None or more than the list has: the list's length.

    Returns:
      [batch, K, list], float64 for float64 scores, else float32. Each rank sums to 1 over the real documents and is
      highest at the document of that rank; padded documents and ranks beyond the number of real documents hold 0.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + K N), memory O(K N) a list. Runs in graphs and under XLA.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.softsort import softsort_indicators
      >>> print(softsort_indicators(tf.constant([[1.0, 3.0, 2.0]]), temperature=0.1).numpy().round(2))
      [[[0. 1. 0.]
        [0. 0. 1.]
        [1. 0. 0.]]]
    """
    ranking, topn = SoftSort(temperature, power), _arguments.topn(topn)
    scores, mask, poison = lists.clean(scores, mask)
    return poison[:, :, tf.newaxis] * _rows(scores, mask, ranking, topn)


def _rows(scores: tf.Tensor, mask: tf.Tensor, ranking: SoftSort, topn: int | None) -> tf.Tensor:
    """The indicators without the poison, [batch, K, list]."""
    ranks = lists.cut(scores, topn)
    scores = tf.clip_by_value(scores, scores.dtype.min / 4, scores.dtype.max / 4)  # infinite ones have no difference
    sought = _highest(scores, mask, ranks)
    # |d|^p / tau as |d tau^(-1/p)|^p, which is cut before it can overflow.
    scale = math.exp(_within(-math.log(ranking.temperature) / ranking.power))
    farthest = math.exp(_within(math.log(_FARTHEST) / ranking.power))
    distance = tf.minimum(scale * tf.abs(sought[:, :, tf.newaxis] - scores[:, tf.newaxis]), farthest)
    if ranking.power != 1.0:
        away = distance > 0.0  # The slope of 0^p is infinite for p < 1.
        distance = tf.where(away, tf.pow(tf.where(away, distance, 1.0), ranking.power), 0.0)
    real = tf.logical_and(lists.rank_mask(mask, ranks)[:, :, tf.newaxis], mask[:, tf.newaxis])
    weights = lists.filled(tf.exp(-distance), real, 0.0)
    # Row r has a 1 at the document of rank r: the maximum is a no-op except for the ranks of padding.
    return weights / tf.maximum(tf.reduce_sum(weights, axis=2, keepdims=True), 1.0)


def _within(exponent: float) -> float:
    return max(-_LARGEST_EXPONENT, min(exponent, _LARGEST_EXPONENT))


def _highest(scores: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor | int) -> tf.Tensor:
    """The K highest scores in falling order, [batch, K]; tied documents share their ranks' gradient equally."""
    order = exact.descending_order(scores, mask)

    @tf.custom_gradient
    def highest(scores: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        falling = tf.gather(scores, order, batch_dims=1)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            rising = lists.filled(-falling, tf.gather(mask, order, batch_dims=1), math.inf)
            first, end = (tf.searchsorted(rising, rising, side=side) for side in ("left", "right"))
            totals = tf.pad(tf.cumsum(tf.cast(upstream, tf.float64), axis=1), [[0, 0], [1, 0]])
            until, before = (tf.gather(totals, tf.minimum(index, ranks), batch_dims=1) for index in (end, first))
            shared = tf.cast(until - before, upstream.dtype) / tf.cast(end - first, upstream.dtype)
            return exact.unsorted(shared, order)

        return falling[:, :ranks], gradient

    return highest(scores)
