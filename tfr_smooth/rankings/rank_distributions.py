r"""SoftRank's rank distributions: the probability of each document at each rank under noisy scores.

Taylor, Guiver, Robertson, Minka: "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008. Each score is the mean of a
Gaussian (Eq. 8), so document i beats document j with a probability $\pi_{ij}$ (Eq. 9). The rank of j, starting at 0, is
the number of documents that beat it. If its contests are independent, it has the Rank-Binomial distribution, computed
one contest at a time:

$$p_j^{(i)}(r) = p_j^{(i-1)}(r - 1) \, \pi_{ij} + p_j^{(i-1)}(r) \, (1 - \pi_{ij}), \qquad p_j^{(1)}(r) = \delta(r)
  \qquad \text{(Eq. 11, 12)}$$

All computations use float64, regardless of the type of the scores. In float32, a thousand contests cause a rounding
error of 2e-5, gradients are differences of large sums if the noise is much wider than the scores (error 6e-5), and a
factor that rounds to 0 causes NaN.
"""

from __future__ import annotations

import math

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded

# One in this many states of the recursion is stored for the gradient; the others are recomputed. Not tuned: near the
# square root of a few hundred contests, which needs the least memory.
_STATES_BETWEEN = 16
# `rank_normal` keeps the Rank-Binomial distribution of this many documents at the ends of the ranking. Documents whose
# distances from the ends differ by rounding are tied, and tied documents are treated alike.
_AT_ENDS, _ROUNDING = 16, 1e-6
# The least probability of `sinkhorn_scaled`: a matrix with zeros may have no doubly stochastic scaling.
_LEAST = 1e-280


def win_probabilities(scores: tf.Tensor, mask: tf.Tensor, *, sigma: float = 1.0) -> tf.Tensor:
    r"""Returns the probability $\pi_{ij}$ that document i beats document j under noisy scores.

    $\pi_{ij} = \Pr(S_i - S_j > 0) = \Phi((s_i - s_j) / (\sigma \sqrt 2))$ (Eq. 9 of SoftRank, WSDM 2008), where $S_j$
    is normal with mean $s_j$ and standard deviation $\sigma$ (Eq. 8).

    Args:
      scores: [batch, list], float32 or float64.
      mask: [batch, list] bool, False for padding.
      sigma: Standard deviation of a score, > 0, in the unit of the scores.

    Returns:
      [batch, i, j] float64 in [0, 1]; 0 for i = j and where i or j is padding.

    Raises:
      ValueError: If `sigma` is out of range.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> print(rankings.win_probabilities(tf.constant([[1.0, 0.0, 1.0]]), tf.ones([1, 3], tf.bool)).numpy().round(3))
      [[[0.   0.76 0.5 ]
        [0.24 0.   0.24]
        [0.5  0.76 0.  ]]]
    """
    return win_probabilities_of(scores, mask, tf.constant(_arguments.scale("sigma", sigma), tf.float64))


def win_probabilities_of(scores: tf.Tensor, mask: tf.Tensor, sigma: tf.Tensor) -> tf.Tensor:
    """Returns `win_probabilities` for a float64 scalar sigma."""
    probabilities = 0.5 * tf.math.erfc(_deviations_behind(scores, sigma))
    return tf.where(_padded.different_pairs(mask), probabilities, tf.zeros_like(probabilities))


def win_densities(scores: tf.Tensor, mask: tf.Tensor, sigma: tf.Tensor) -> tf.Tensor:
    """Returns the derivative of `win_probabilities_of` with respect to the score of i; its negative is that for j."""
    densities = tf.exp(-tf.square(_deviations_behind(scores, sigma))) / (2.0 * math.sqrt(math.pi) * sigma)
    return tf.where(_padded.different_pairs(mask), densities, tf.zeros_like(densities))


def _deviations_behind(scores: tf.Tensor, sigma: tf.Tensor) -> tf.Tensor:
    """Returns x in Phi(-x sqrt 2) = erfc(x) / 2, [batch, i, j] float64; erfc is accurate where it is small."""
    rows, columns = _padded.pairs(tf.cast(scores, tf.float64))
    # Beyond 40 erfc is 0 or 2. Scores are at most a quarter of the largest float, so no difference overflows.
    limit = 80.0 * tf.minimum(sigma, 1e300)
    return tf.clip_by_value(columns - rows, -limit, limit) / (2.0 * sigma)


def _loss_probabilities(win_probabilities: tf.Tensor) -> tf.Tensor:
    """Returns 1 - `win_probabilities`, accurate also where a win is almost certain; 1 without a contest."""
    lost = tf.transpose(win_probabilities, [0, 2, 1])
    return _padded.fill(lost, win_probabilities + lost > 0.0, 1.0)


def rank_binomial(wins: tf.Tensor, ranks: tf.Tensor | int, documents: tf.Tensor | None = None) -> tf.Tensor:
    """Returns rank distributions by the recursion of Eq. 11 and 12, cut at K ranks: no rank depends on a later rank.

    Args:
      wins: [batch, i, j] float64, the probability that i beats j; the gradient flows to it.
      ranks: The number of ranks K.
      documents: [batch, M] int32, the documents j to return; None for all.

    Returns:
      [batch, j, K] float64: p_j(r).

    Time O(K M N); memory O(K M), and for the gradient O((N / 16 + 16) K M), per list (M documents j, N contests i).
    """
    lost = _loss_probabilities(wins)
    if documents is not None:
        wins, lost = (tf.gather(pairs, documents, axis=2, batch_dims=1) for pairs in (wins, lost))
    start = tf.one_hot(tf.zeros_like(wins[:, 0], tf.int32), ranks, dtype=wins.dtype)
    return tf.ensure_shape(_by_recursion(wins, lost, start), start.shape)


@_compiled.differentiable
def _by_recursion(wins: tf.Tensor, lost: tf.Tensor, start: tf.Tensor) -> _compiled.WithGradient:
    """Returns the distributions, [batch, j, K], and their gradient function."""
    # The gradient is Eq. 18 in reverse mode: one more recursion for all scores instead of one per score.
    won, lost, contests = _by_contest(wins), _by_contest(lost), tf.shape(wins)[1]
    blocks = (contests + _STATES_BETWEEN - 1) // _STATES_BETWEEN

    def end_of(block: tf.Tensor) -> tf.Tensor:
        return tf.minimum((block + 1) * _STATES_BETWEEN, contests)

    def next_state(i: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        if_won = tf.pad(state[..., :-1], [[0, 0], [0, 0], [1, 0]])
        return state * tf.gather(lost, i) + if_won * tf.gather(won, i)

    def run_block(block: tf.Tensor, state: tf.Tensor, kept: tf.TensorArray) -> tuple[tf.Tensor, ...]:
        kept = kept.write(block, state)
        first = (block * _STATES_BETWEEN, state)
        state = tf.while_loop(lambda i, _: i < end_of(block), lambda i, s: (i + 1, next_state(i, s)), first)[1]
        return block + 1, state, kept

    kept = tf.TensorArray(start.dtype, size=blocks, element_shape=start.shape)
    result, kept = tf.while_loop(lambda block, *_: block < blocks, run_block, (0, start, kept))[1:]
    result, kept = tf.stop_gradient(result), tf.stop_gradient(kept.stack())

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        def again(i: tf.Tensor, state: tf.Tensor, states: tf.TensorArray) -> tuple[tf.Tensor, ...]:
            return i + 1, next_state(i, state), states.write(i % _STATES_BETWEEN, state)

        def back_block(block: tf.Tensor, values: tf.Tensor, gradients: tf.TensorArray) -> tuple[tf.Tensor, ...]:
            first, end = block * _STATES_BETWEEN, end_of(block)
            states = tf.TensorArray(kept.dtype, size=_STATES_BETWEEN, element_shape=kept.shape[1:])
            states = tf.while_loop(lambda i, *_: i < end, again, (first, tf.gather(kept, block), states))[2]

            def back(i: tf.Tensor, values: tf.Tensor, gradients: tf.TensorArray) -> tuple[tf.Tensor, ...]:
                # `values` is the gradient with respect to each rank before contest i; if i wins, the next rank's.
                if_won = tf.pad(values[..., 1:], [[0, 0], [0, 0], [0, 1]])
                of_contest = tf.reduce_sum(states.read(i % _STATES_BETWEEN) * (if_won - values), axis=-1)
                values = values * tf.gather(lost, i) + if_won * tf.gather(won, i)
                return i - 1, values, gradients.write(i, of_contest)

            state = (end - 1, values, gradients)
            return block - 1, *tf.while_loop(lambda i, *_: i >= first, back, state)[1:]

        # XLA would compile a size that comes from the value's function anew at each call.
        gradients = tf.TensorArray(upstream.dtype, size=tf.shape(won)[0], element_shape=upstream.shape[:-1])
        state = (tf.shape(kept)[0] - 1, upstream, gradients)
        return tf.transpose(tf.while_loop(lambda block, *_: block >= 0, back_block, state)[2].stack(), [1, 0, 2])

    return result, gradient


def _by_contest(pairs: tf.Tensor) -> tf.Tensor:
    return tf.transpose(pairs, [1, 0, 2])[..., tf.newaxis]


def mean_and_variance(wins: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the mean of each document's rank (Eq. 10) and its variance (section 3.6), [batch, list] each."""
    return tf.reduce_sum(wins, axis=1), tf.reduce_sum(wins * (1.0 - wins), axis=1)


def rank_normal(wins: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor | int) -> tf.Tensor:
    r"""Returns rank distributions by the approximation of section 3.6, cut at K ranks.

    A normal distribution with the mean and the variance of the rank, integrated over $r \pm 1/2$; its tails are added
    to the first and the last rank. The 16 documents with the expected rank farthest from the middle stay Rank-Binomial.

    Args:
      wins: [batch, i, j] float64, the probability that i beats j; the gradient flows to it.
      mask: [batch, list] bool, False for padding.
      ranks: The number of ranks K.

    Returns:
      [batch, j, K] float64: p_j(r); undefined at padding.

    Time O(N^2 + 16 K N); memory O(N^2), per list.
    """
    mean, variance = mean_and_variance(wins)
    last = _padded.count(mask, wins.dtype) - 1.0
    # A variance of 0 means that the rank is certain and equals the mean: any small deviation gives this result.
    deviation = tf.sqrt(tf.maximum(variance, 1e-12))
    at = tf.range(tf.cast(ranks, wins.dtype), dtype=wins.dtype)
    edges = (at + 0.5 - mean[:, :, tf.newaxis]) / deviation[:, :, tf.newaxis]
    below = 0.5 * tf.math.erfc(edges / -math.sqrt(2.0))
    below = tf.where((at < last)[:, tf.newaxis], below, tf.ones_like(below))
    normal = below - tf.pad(below[:, :, :-1], [[0, 0], [0, 0], [1, 0]])

    to_end = _padded.fill(tf.minimum(mean, last - mean), mask, math.inf)
    nearest = tf.math.top_k(-to_end, tf.minimum(_AT_ENDS, tf.shape(mask)[1]))
    others = tf.pad(to_end, [[0, 0], [0, _AT_ENDS + 1]], constant_values=math.inf)
    first_other = -tf.math.top_k(-others, _AT_ENDS + 1).values[:, -1:]
    is_at_end = -nearest.values < first_other - _ROUNDING
    binomial = rank_binomial(wins, ranks, nearest.indices)
    kept = tf.gather(normal, nearest.indices, batch_dims=1)
    binomial = tf.where(is_at_end[:, :, tf.newaxis], binomial, kept)
    lists = tf.repeat(tf.range(tf.shape(mask)[0])[:, tf.newaxis], tf.shape(nearest.indices)[1], axis=1)
    return tf.tensor_scatter_nd_update(normal, tf.stack([lists, nearest.indices], axis=-1), binomial)


def sinkhorn_scaled(distributions: tf.Tensor, places: tf.Tensor, steps: int) -> tf.Tensor:
    """Returns distributions after Sinkhorn steps (section 3.2): each scales ranks, then documents, to sum to 1.

    Args:
      distributions: [batch, list, rank] float64: p_j(r); the gradient flows to it.
      places: [batch, list, rank] bool, True for a real document at a rank of the list.
      steps: The number of steps, >= 1.

    Returns:
      [batch, list, rank] float64; 0 where `places` is False.

    Time O(N^2) per step; memory O(N^2), and O(N) per step for the gradient, per list.
    """
    matrix = tf.maximum(distributions, _LEAST)
    # The first step removes any scale of a rank. This one keeps the factors of all steps in the range of float64.
    matrix = _padded.fill(matrix / tf.stop_gradient(tf.reduce_max(matrix, axis=1, keepdims=True)), places, 0.0)

    def step(of_documents: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        of_ranks = tf.math.reciprocal_no_nan(tf.linalg.matvec(matrix, of_documents, transpose_a=True))
        return tf.math.reciprocal_no_nan(tf.linalg.matvec(matrix, of_ranks)), of_ranks

    start = tf.ones_like(matrix[:, :, 0]), tf.ones_like(matrix[:, 0])
    of_documents, of_ranks = tf.while_loop(lambda *_: True, step, start, maximum_iterations=steps)
    return of_documents[:, :, tf.newaxis] * matrix * of_ranks[:, tf.newaxis]
