r"""NeuralSort: a row-stochastic matrix that relaxes the sorting permutation.

Grover, Wang, Zweig, Ermon: "Stochastic Optimization of Sorting Networks via Continuous Relaxations", ICLR 2019
(arXiv:1903.08850). For a list of n scores and the matrix A of $|s_i - s_j|$, the indicator of document j at rank r is

$$\hat P_{r \cdot} = \mathrm{softmax}\left[((n + 1 - 2r) s - A \mathbf{1}) / \tau\right] \qquad \text{(Eq. 5)}$$

In sorted order, $s_1 \ge .. \ge s_n$ with the gaps $g_t = s_t - s_{t+1}$, the logits of row r are highest at document
r. They decrease by $g_t (2(t - r) + 1)$ at each step t to the right and by $g_t (2(r - t) - 1)$ to the left. They are
computed in this form, which does not depend on n, so padding has no effect, does not need the quadratic matrix A, and
does not overflow for any scores.

The columns of $\hat P$ do not sum to 1. NeuralNDCG (Pobrotyn, Bialobrzeski: "NeuralNDCG: Direct Optimisation of a
Ranking Metric via Differentiable Relaxation of Sorting", arXiv:2102.07831, Section 3) scales columns and rows in turn,
by Sinkhorn's algorithm. As each row has its largest value on the diagonal, no sum underflows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import exact
from tfr_smooth.rankings.rank_distributions import sinkhorn_scaled
from tfr_smooth.rankings.ranking import RANKINGS, Ranking

# exp(-800) is 0, also in float64: a document behind a gap of at least this size has weight 0.
_LARGEST_GAP = 800.0


@RANKINGS.register("neuralsort")
@dataclasses.dataclass(frozen=True)
class NeuralSort(Ranking):
    r"""The NeuralSort ranking: each rank is a softmax over the documents.

    $\hat P_{r \cdot} = \mathrm{softmax}[((n + 1 - 2r) s - A \mathbf{1}) / \tau]$ (Eq. 5 of arXiv:1903.08850).

    Invariant to padding, to the order of the documents and to a shift of the scores. Scaling the scores and the
    temperature by the same factor leaves the indicators unchanged.

    Args:
      temperature: Tau, > 0. The ranking is exact in the limit of 0. The SmoothI paper searches {0.1, 1, 10, 100}. A
        number or a non-trainable `tf.Variable`.
      sinkhorn_steps: The number of Sinkhorn steps, >= 0, each of which scales the documents and then the ranks to sum
        to 1. NeuralNDCG takes up to 50. With `measures.NDCG(gain="linear")` and labels 2^y - 1, the NDCG is NeuralNDCG.

    Raises:
      ValueError: If an argument is out of range.

    Time O(N log N + K N), memory O(K N) per list. With S Sinkhorn steps, K = N and each step takes time O(N^2) and
    memory O(N).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 3.0, 2.0]])
      >>> print(rankings.NeuralSort(temperature=0.1).indicators(scores, scores > 0.0).numpy().round(2))
      [[[0. 1. 0.]
        [0. 0. 1.]
        [1. 0. 0.]]]
    """

    temperature: float | tf.Variable = 1.0
    sinkhorn_steps: int = 0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "temperature", _arguments.temperature("temperature", self.temperature))
        steps = _arguments.integer("sinkhorn_steps", self.sinkhorn_steps, least=0)
        object.__setattr__(self, "sinkhorn_steps", steps)

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        r"""Returns $\hat P$, the softmax over the documents at each rank.

        Row r is highest at the document of rank r (Theorem 4).

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        rows, order = self._sorted_rows(scores, mask, topn)
        return tf.gather(rows, tf.argsort(order, axis=1), axis=2, batch_dims=1)

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> tf.Tensor:
        """Returns the relevance at each rank.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          relevance: [batch, list]; 0 at padding.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K]; 0 at ranks beyond the real documents.
        """
        rows, order = self._sorted_rows(scores, mask, topn)
        return tf.linalg.matvec(rows, tf.gather(tf.stop_gradient(relevance), order, batch_dims=1))

    def _sorted_rows(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the indicators with documents in sorted order, [batch, K, list], and the order."""
        # Every rank counts in the sum of a document.
        ranks = _padded.num_ranks(scores, None if self.sinkhorn_steps else topn)
        order = exact.descending_order(scores, mask)
        places = tf.gather(mask, order, batch_dims=1)
        tau = _compiled.scalar(self.temperature, tf.float64)
        logits = _logits(tf.gather(scores, order, batch_dims=1), places, tf.convert_to_tensor(ranks), tau)
        shape = [*scores.shape[:1], ranks if isinstance(ranks, int) else None, scores.shape[1]]
        real = tf.logical_and(_padded.rank_mask(mask, ranks)[:, :, tf.newaxis], places[:, tf.newaxis])
        weights = _padded.fill(tf.exp(tf.ensure_shape(logits, shape)), real, 0.0)
        # Row r has a 1 at document r, so the maximum only affects ranks of padding.
        rows = weights / tf.maximum(tf.reduce_sum(weights, axis=2, keepdims=True), 1.0)
        if self.sinkhorn_steps:
            rows = tf.cast(sinkhorn_scaled(tf.cast(rows, tf.float64), real, self.sinkhorn_steps), rows.dtype)
        return rows[:, : _padded.num_ranks(scores, topn)], order


@_compiled.graph
def _logits(falling: tf.Tensor, places: tf.Tensor, ranks: tf.Tensor, tau: tf.Tensor) -> tf.Tensor:
    """Returns the softmax logits minus the maximum of each row, [batch, K, list], from scores in descending order.

    The gradient is that of Eq. 5 (the maximum of a row cancels in the softmax), with a slope of 0 for |0|. So tied
    documents get the same gradient, unlike with a differentiation of the gaps in one of the orders of the ties.
    """
    dtype = falling.dtype
    # float64 up to the differences, so that a shift loses no precision.
    precise = tf.cast(tf.stop_gradient(falling), tf.float64)
    rank = tf.range(1, ranks + 1)[:, tf.newaxis]

    @tf.custom_gradient
    def logits(_: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        step = tf.cast(tf.range(1, tf.shape(precise)[1]), precise.dtype)
        gaps = tf.minimum((precise[:, :-1] - precise[:, 1:]) / tau, _LARGEST_GAP)
        gaps = _padded.fill(gaps, places[:, 1:], 0.0)
        fallen = tf.pad(tf.cumsum(gaps, axis=1), [[0, 0], [1, 0]])
        weighted = tf.pad(tf.cumsum(gaps * (2.0 * step + 1.0), axis=1), [[0, 0], [1, 0]])
        across, rows = weighted[:, tf.newaxis] - weighted[:, :ranks, tf.newaxis], tf.cast(rank, precise.dtype)
        below = across - 2.0 * rows * (fallen[:, tf.newaxis] - fallen[:, :ranks, tf.newaxis])
        return tf.cast(-tf.maximum(below, 0.0), dtype), gradient

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        rising = _padded.fill(-precise, places, precise.dtype.max)
        above = tf.searchsorted(rising, rising, side="left")
        not_below = tf.searchsorted(rising, rising, side="right")
        # A document's own term is 2 (rank - r), with the mean rank of its ties ...
        middle = tf.cast(above + not_below + 1, upstream.dtype)[:, tf.newaxis] / 2.0
        own = tf.reduce_sum(upstream * (middle - tf.cast(rank, upstream.dtype)), axis=1)
        # ... and in sum_i |s_i - s_j| every other document adds 1 or -1, depending on whether it is above or below.
        totals = tf.cumsum(tf.cast(tf.reduce_sum(upstream, axis=1), precise.dtype), axis=1)
        totals = tf.pad(totals, [[0, 0], [1, 0]])
        before, until = (tf.gather(totals, index, batch_dims=1) for index in (above, not_below))
        return tf.cast((2.0 * tf.cast(own, precise.dtype) + before - (totals[:, -1:] - until)) / tau, dtype)

    return logits(falling)
