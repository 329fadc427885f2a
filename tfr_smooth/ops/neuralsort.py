r"""NeuralSort: a row-stochastic matrix in place of the sorting permutation.

Grover, Wang, Zweig, Ermon: "Stochastic Optimization of Sorting Networks via Continuous Relaxations", ICLR 2019
(arXiv:1903.08850). For a list of n scores and A the matrix of $|s_i - s_j|$, "document j is at rank r" is

$$\hat P_{r \cdot} = \mathrm{softmax}\left[((n + 1 - 2r) s - A \mathbf{1}) / \tau\right] \qquad \text{(Eq. 5)}$$

In sorted order, $s_1 \ge .. \ge s_n$ with the gaps $g_t = s_t - s_{t+1}$, the input of row r falls from its highest
value, at document r, by $g_t (2(t - r) + 1)$ at each step t to the right and by $g_t (2(r - t) - 1)$ to the left. That
is how it is computed here: n, and with it every padded document, has left the formula; so has A, with the square of
the list's length; and nothing overflows, whatever the scores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import exact, lists

# exp(-800) is 0, also in float64: a document behind a gap of this size has the weight 0 whatever the gap is.
_LARGEST_GAP = 800.0
# Infinite scores stand here (in float64): far out, but with finite differences.
_LARGEST = 1e300


@dataclasses.dataclass(frozen=True)
class NeuralSort:
    r"""The NeuralSort ranking: hand it to any metric of `tfr_smooth.functional` to make that metric smooth.

    $\hat P_{r \cdot} = \mathrm{softmax}[((n + 1 - 2r) s - A \mathbf{1}) / \tau]$ (Eq. 5 of arXiv:1903.08850).

    Invariant to padding, to the order of the documents and to a shift of the scores; a factor on the scores is one on
    the temperature.

    Args:
      temperature: Tau, > 0; the exact ranking in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.neuralsort import NeuralSort
      >>> y = NeuralSort(temperature=0.1).relevance(tf.constant([[0.0, 3.0, 1.0]]), tf.constant([[0.0, 2.0, 1.0]]))
      >>> print(y.numpy().round(3))
      [[2. 1. 0.]]
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "temperature", _arguments.real("temperature", self.temperature, above=0.0))

    def passes_over_pairs(self, topn: int | None) -> int:
        """Returns about how often it passes over all pairs of documents: with a cut-off never."""
        return 4 if topn is None else 0

    def relevance(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor | None = None,
        topn: int | None = None,
    ) -> tf.Tensor:
        """Returns the relevance found at ranks 1..K; see `neuralsort_relevance`."""
        return neuralsort_relevance(scores, relevance, mask, topn=topn, **dataclasses.asdict(self))

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor | None = None, topn: int | None = None) -> tf.Tensor:
        """Returns the rank indicators; see `neuralsort_indicators`."""
        return neuralsort_indicators(scores, mask, topn=topn, **dataclasses.asdict(self))


def neuralsort_relevance(
    scores: tf.Tensor,
    relevance: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    temperature: float = 1.0,
    topn: int | None = None,
) -> tf.Tensor:
    r"""The relevance found at each rank: $y_r = \sum_j rel_j \hat P_{rj}$ (Eq. 5 of arXiv:1903.08850).

    Args:
      scores: [batch, list], any float type. float16 and bfloat16 are computed in float32.
      relevance: [batch, list], what is found at a document; a constant, no gradient flows to it.
      mask: [batch, list] bool, False for padding. None: all documents are real. What stands in a padded place,
        NaN too, reaches nothing.
      temperature: Tau, > 0.
      topn: The number of ranks K; None or more than the list has: the list's length.

    Returns:
      [batch, K], float64 for float64 scores, else float32; within the range of the list's relevance. Ranks beyond the
      number of real documents hold 0.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + K N), memory O(K N) a list. Runs in graphs and under XLA.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.neuralsort import neuralsort_relevance
      >>> y = neuralsort_relevance(tf.constant([[2.0, 1.0, 0.0]]), tf.constant([[1.0, 0.0, 0.0]]), topn=2)
      >>> print(y.numpy().round(4))
      [[0.7214 0.2119]]
    """
    ranking, topn = NeuralSort(temperature), _arguments.topn(topn)
    scores, mask, poison = lists.clean(scores, mask)
    relevance = tf.stop_gradient(lists.aligned("relevance", relevance, scores, mask))
    rows, order = _sorted_rows(scores, mask, ranking, topn)
    return poison * tf.linalg.matvec(rows, tf.gather(relevance, order, batch_dims=1))


def neuralsort_indicators(
    scores: tf.Tensor, mask: tf.Tensor | None = None, *, temperature: float = 1.0, topn: int | None = None
) -> tf.Tensor:
    r"""The matrix $\hat P$ itself (Eq. 5 of arXiv:1903.08850): row r says where rank r looks.

    Args:
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for padding. None: all documents are real.
      temperature: Tau, > 0.
      topn: The number of ranks K; None or more than the list has: the list's length.

    Returns:
      [batch, K, list], float64 for float64 scores, else float32. Each rank sums to 1 over the real documents and is
      highest at the document of that rank (Theorem 4); padded documents and ranks beyond the number of real documents
      hold 0.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + K N), memory O(K N) a list. Runs in graphs and under XLA.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.ops.neuralsort import neuralsort_indicators
      >>> print(neuralsort_indicators(tf.constant([[1.0, 3.0, 2.0]]), temperature=0.1).numpy().round(2))
      [[[0. 1. 0.]
        [0. 0. 1.]
        [1. 0. 0.]]]
    """
    ranking, topn = NeuralSort(temperature), _arguments.topn(topn)
    scores, mask, poison = lists.clean(scores, mask)
    rows, order = _sorted_rows(scores, mask, ranking, topn)
    return poison[:, :, tf.newaxis] * tf.gather(rows, tf.argsort(order, axis=1), axis=2, batch_dims=1)


def _sorted_rows(
    scores: tf.Tensor, mask: tf.Tensor, ranking: NeuralSort, topn: int | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the indicators with the documents in sorted order, [batch, K, list], and that order."""
    ranks = lists.cut(scores, topn)
    order = exact.descending_order(scores, mask)
    places = tf.gather(mask, order, batch_dims=1)
    # float64 up to the differences, so that a shift loses nothing.
    wide = tf.clip_by_value(tf.cast(scores, tf.float64), -_LARGEST, _LARGEST)
    logits = _logits(tf.gather(wide, order, batch_dims=1), places, ranks, ranking.temperature, scores.dtype)
    real = tf.logical_and(lists.rank_mask(mask, ranks)[:, :, tf.newaxis], places[:, tf.newaxis])
    weights = lists.filled(tf.exp(logits), real, 0.0)
    # Row r has a 1 at document r: the maximum is a no-op except for the ranks of padding.
    return weights / tf.maximum(tf.reduce_sum(weights, axis=2, keepdims=True), 1.0), order


def _logits(
    falling: tf.Tensor, places: tf.Tensor, ranks: tf.Tensor | int, temperature: float, dtype: tf.DType
) -> tf.Tensor:
    """The softmax's inputs less the highest of their row, [batch, K, list] in `dtype`, from scores in falling order.

    The gradient is that of Eq. 5 as it stands (the highest of a row drops out of a softmax), and |0| has the slope 0:
    tied documents get the same gradient, which differentiating the gaps in one of their orders would not give.
    """
    rank = tf.range(1, ranks + 1)[:, tf.newaxis]

    @tf.custom_gradient
    def logits(falling: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        step = tf.cast(tf.range(1, tf.shape(falling)[1]), falling.dtype)
        gaps = tf.minimum((falling[:, :-1] - falling[:, 1:]) / temperature, _LARGEST_GAP)
        gaps = lists.filled(gaps, places[:, 1:], 0.0)
        fallen = tf.pad(tf.cumsum(gaps, axis=1), [[0, 0], [1, 0]])
        weighted = tf.pad(tf.cumsum(gaps * (2.0 * step + 1.0), axis=1), [[0, 0], [1, 0]])
        across, rows = weighted[:, tf.newaxis] - weighted[:, :ranks, tf.newaxis], tf.cast(rank, falling.dtype)
        below = across - 2.0 * rows * (fallen[:, tf.newaxis] - fallen[:, :ranks, tf.newaxis])
        return tf.cast(-tf.maximum(below, 0.0), dtype), gradient

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        rising = lists.filled(-falling, places, float("inf"))
        above = tf.searchsorted(rising, rising, side="left")
        not_below = tf.searchsorted(rising, rising, side="right")
        # A document's own share is 2 (rank - r), with the mean rank of its ties ...
        middle = tf.cast(above + not_below + 1, upstream.dtype)[:, tf.newaxis] / 2.0
        own = tf.reduce_sum(upstream * (middle - tf.cast(rank, upstream.dtype)), axis=1)
        # ... and from sum_i |s_i - s_j| every other one adds or takes as it is above or below.
        totals = tf.cumsum(tf.cast(tf.reduce_sum(upstream, axis=1), falling.dtype), axis=1)
        totals = tf.pad(totals, [[0, 0], [1, 0]])
        before, until = (tf.gather(totals, index, batch_dims=1) for index in (above, not_below))
        return (2.0 * tf.cast(own, falling.dtype) + before - (totals[:, -1:] - until)) / temperature

    return logits(falling)
