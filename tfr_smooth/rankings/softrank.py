r"""SoftRank: expected metrics under noisy scores, without a sort and, for NDCG, without the cubic recursion.

Taylor, Guiver, Robertson, Minka: "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008. SoftNDCG replaces the
discount at a document's rank by its expectation under the rank distribution (Eq. 14 and 15):

$$E[D(r_j)] = \sum_r D(r) \, p_j(r)$$

The paper computes $p_j(r)$ by a recursion that is cubic in the list length. NDCG's discount does not need it: it is a
mixture of exponentials (see `log2_mixture`), and the rank is a sum of independent contests, so

$$D(r) = \sum_m w_m (1 - c_m)^r \quad\Rightarrow\quad E[D(r_j)] = \sum_m w_m \prod_{i \ne j} (1 - c_m \pi_{ij}), \qquad
  \frac{\partial E[D(r_j)]}{\partial \pi_{ij}} = -\sum_m w_m c_m \prod_{k \ne i, j} (1 - c_m \pi_{kj})$$

with about twenty terms m. Since every $c_m < 1$, no factor is 0, and the last product is the first product divided by
one factor. A product may underflow to 0 without harm: the sum then consists of the terms with the smallest c, which
have the largest products.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import dcg, rank_distributions
from tfr_smooth.rankings.ranking import RANKINGS, DocumentRanking


@RANKINGS.register("soft")
@dataclasses.dataclass(frozen=True)
class SoftRank(DocumentRanking):
    r"""The SoftRank ranking: the distribution of each document's rank under noisy scores.

    Each score has Gaussian noise with standard deviation $\sigma$ (Eq. 8 of SoftRank, WSDM 2008), which defines the
    probability of each document at each rank (Eq. 12).

    Args:
      sigma: Standard deviation of a score, > 0, in the unit of the scores. The ranking is exact in the limit of 0. A
        number or a non-trainable `tf.Variable`.
      distribution: "binomial", the Rank-Binomial distribution, or "normal" (Section 3.6), normal distributions with its
        mean and variance, integrated over $r \pm 1/2$. The 16 documents with the expected rank farthest from the middle
        stay Rank-Binomial; ties that do not fit in these 16 are normal.
      sinkhorn_steps: The number of Sinkhorn steps (Section 3.2), >= 0. Independent contests give some ranks to more and
        others to less than one document. A step scales each rank to sum to 1, then each document. Documents sum to 1
        after any number of steps, ranks in the limit.

    Raises:
      ValueError: If an argument is out of range.

    Time O(M N^2) and memory O(N^2) per list for NDCG without a cutoff, with M = 16 to 33 terms, for "binomial" without
    Sinkhorn steps. Everything else uses the distributions over K ranks: time O(K N^2), memory O(N^2 + K N), and
    O((N / 16 + 16) K N) for the gradient; for "normal" time O(N^2 + 16 K N), memory O(N^2). Sinkhorn steps need all
    ranks, K = N, and take time O(N^2) and memory O(N) each. Computed in float64.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 4.0, 2.0]])
      >>> print(rankings.SoftRank(sigma=0.1).document_discounts(scores, scores > 0.0).numpy().round(3))
      [[0.5   1.    0.631]]
    """

    sigma: float | tf.Variable = 1.0
    distribution: str = "binomial"
    sinkhorn_steps: int = 0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "sigma", _arguments.temperature("sigma", self.sigma))
        _arguments.choice("distribution", self.distribution, ("binomial", "normal"))
        steps = _arguments.integer("sinkhorn_steps", self.sinkhorn_steps, least=0)
        object.__setattr__(self, "sinkhorn_steps", steps)

    def indicators(self, scores: tf.Tensor, mask: tf.Tensor, topn: int | None = None) -> tf.Tensor:
        r"""Returns the probability $p_j(r)$ of each document at each rank (Eq. 12).

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          topn: The number of ranks K, >= 1; None for the length of the lists.

        Returns:
          [batch, K, list], in the type of the scores; 0 at padding and at ranks beyond the real documents.
        """
        distributions = self._distributions(scores, mask, _padded.num_ranks(scores, topn))
        return tf.cast(tf.transpose(distributions, [0, 2, 1]), scores.dtype)

    def document_discounts(
        self, scores: tf.Tensor, mask: tf.Tensor, *, discount: dcg.Discount = "log2", topn: int | None = None
    ) -> tf.Tensor:
        r"""Returns the expected discount of each document, $E[D(r_j)] = \sum_r D(r) \, p_j(r)$ (Eq. 15).

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.
          discount: The discount D; see `measures.NDCG`. The mixture for "log2" has a relative error of up to 1e-7.
          topn: The cutoff K, >= 1; None for no cutoff.

        Returns:
          [batch, list]; 0 at padding.

        For "binomial" without Sinkhorn steps and cutoff, "log2" takes time O(M N^2) and a `ShallowDiscount` O(N^2). All
        others use the distributions over K ranks. (A truncated discount is not a positive mixture. A signed or complex
        mixture loses all precision for documents that hardly ever reach the top K; the recursion only adds positive
        numbers.)
        """
        discount = dcg.checked_discount(discount)
        ranks, length = _padded.num_ranks(scores, topn), _padded.length(scores)
        has_all_ranks = topn is None or (isinstance(ranks, int) and ranks == length)
        is_binomial = has_all_ranks and self.distribution == "binomial" and not self.sinkhorn_steps
        if is_binomial and isinstance(discount, str):
            sigma = _compiled.scalar(self.sigma, tf.float64)
            expected = _expected_discounts(scores, mask, sigma, *log2_mixture(length))
            return tf.ensure_shape(expected, scores.shape)
        if is_binomial and isinstance(discount, dcg.ShallowDiscount):
            moments = rank_distributions.mean_and_variance(self._wins(scores, mask))
            expected = discount.expected(*moments, _padded.count(mask, tf.float64))
        else:
            if isinstance(discount, tuple):  # 0 beyond the table
                ranks = min(len(discount), ranks) if isinstance(ranks, int) else tf.minimum(len(discount), ranks)
            distributions = self._distributions(scores, mask, ranks)
            expected = tf.linalg.matvec(distributions, dcg.discounts_at_ranks(discount, ranks, mask))
        return _padded.fill(tf.cast(expected, scores.dtype), mask, 0.0)

    def _distributions(self, scores: tf.Tensor, mask: tf.Tensor, ranks: tf.Tensor | int) -> tf.Tensor:
        """Returns p_j(r), [batch, list, K] float64; 0 at padding and at ranks beyond the real documents."""
        wins = self._wins(scores, mask)
        computed = _padded.length(scores) if self.sinkhorn_steps else ranks  # Every rank counts in a sum.
        if self.distribution == "normal":
            distributions = rank_distributions.rank_normal(wins, mask, computed)
        else:
            distributions = rank_distributions.rank_binomial(wins, computed)
        places = tf.logical_and(mask[:, :, tf.newaxis], _padded.rank_mask(mask, computed)[:, tf.newaxis])
        distributions = _padded.fill(distributions, places, 0.0)
        if self.sinkhorn_steps:
            distributions = rank_distributions.sinkhorn_scaled(distributions, places, self.sinkhorn_steps)
        return distributions[:, :, :ranks]

    def _wins(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        return rank_distributions.win_probabilities_of(scores, mask, _compiled.scalar(self.sigma, tf.float64))


@_compiled.program
def _expected_program(
    scores: tf.Tensor, mask: tf.Tensor, sigma: tf.Tensor, weights: tf.Tensor, decays: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the expected discounts [batch, list], the products [M, batch, list] of the terms, and the wins."""
    wins = rank_distributions.win_probabilities_of(scores, mask, sigma)
    by_contest, decays = tf.transpose(wins, [1, 0, 2]), decays[:, tf.newaxis, tf.newaxis]

    # One contest at a time for all documents and terms: XLA multiplies arrays faster than it reduces an array. The
    # length of the lists is even.
    def body(i: tf.Tensor, products: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 2, products * (1.0 - decays * by_contest[i]) * (1.0 - decays * by_contest[i + 1])

    ones = tf.ones([tf.shape(weights)[0], *tf.unstack(tf.shape(scores))], tf.float64)
    products = tf.while_loop(lambda i, _: i < tf.shape(scores)[1], body, (0, ones))[1]
    expected = tf.reduce_sum(weights[:, tf.newaxis, tf.newaxis] * products, axis=0)
    return tf.cast(tf.where(mask, expected, tf.zeros_like(expected)), scores.dtype), products, wins


@_compiled.program
def _gradient_program(
    scores: tf.Tensor,
    mask: tf.Tensor,
    sigma: tf.Tensor,
    weights: tf.Tensor,
    decays: tf.Tensor,
    products: tf.Tensor,
    wins: tf.Tensor,
    upstream: tf.Tensor,
) -> tf.Tensor:
    """Returns the gradient with respect to the scores, [batch, list], using O(N^2) memory."""
    upstream = tf.where(mask, tf.cast(upstream, tf.float64), tf.zeros([], tf.float64))
    scaled = products * (weights * decays)[:, tf.newaxis, tf.newaxis] * upstream

    def body(m: tf.Tensor, to_wins: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return m + 1, to_wins - scaled[m][:, tf.newaxis] / (1.0 - decays[m] * wins)

    to_wins = tf.while_loop(lambda m, _: m < tf.shape(weights)[0], body, (0, tf.zeros_like(wins)))[1]
    to_differences = to_wins * rank_distributions.win_densities(scores, mask, sigma)
    return tf.cast(tf.reduce_sum(to_differences, axis=2) - tf.reduce_sum(to_differences, axis=1), scores.dtype)


@_compiled.differentiable
def _expected_discounts(
    scores: tf.Tensor, mask: tf.Tensor, sigma: tf.Tensor, weights: tf.Tensor, decays: tf.Tensor
) -> _compiled.WithGradient:
    """Returns the expected discounts, [batch, list], and their gradient function."""
    arguments = _compiled.pad(scores), _compiled.pad(mask), sigma, weights, decays
    expected, products, wins = _expected_program(*arguments)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return _compiled.unpad(_gradient_program(*arguments, products, wins, _compiled.pad(upstream)), scores)

    return _compiled.unpad(expected, scores), gradient


# NDCG's discount as a mixture of exponentials, which have simple expectations over sums of independent contests.
#
# 1 / log2(2 + r) is completely monotone, as the reciprocal of a Bernstein function of r. So it is a mixture of
# exponentials with positive weights (Bernstein's theorem), and E[z^r] is a product over the contests.

# Numbers of ranks, each with a fit of its own, as few ranks need fewer terms. In graphs with unknown list length, the
# largest is the limit; the pairs of a list of this length would take 34 GB.
_BOUNDS = (64, 1024, 65536)


@functools.cache
def _fitted(bound: int) -> np.ndarray:
    """Returns the weight and the decay of each term [M, 2]: non-negative least squares on a logarithmic grid of rates.

    Rates below the lowest one of the grid are as good as 0 up to this number of ranks, and those above the highest one
    only count at the first rank.
    """
    from scipy import optimize

    ranks = np.unique(np.geomspace(1, bound, 300).round())[:, np.newaxis] - 1
    rates = np.exp(np.arange(math.log(0.02 / bound), math.log(26.0), 0.5))
    relative = np.exp(-rates * ranks) * np.log2(2.0 + ranks)
    weights, _ = optimize.nnls(relative, np.ones(len(ranks)))
    terms = np.stack([weights / weights.sum(), -np.expm1(-rates)], axis=1)
    return terms[weights > 0.0]


def log2_mixture(length: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns the log discount as a mixture: $1 / \log_2(2 + r) = \sum_m w_m (1 - c_m)^r$ for r = 0 .. length - 1.

    Args:
      length: The number of ranks, 0 to 65,536: a Python int or an int32 scalar.

    Returns:
      The weights w [M], positive with sum 1, and the decays c [M], in (0, 1); float64. The relative error is below
      1e-7 at every rank. M is 16 up to 64 ranks, 22 up to 1,024 and 29 above.

    Raises:
      ValueError: If `length` is an int above 65,536.

    Example:
      >>> from tfr_smooth.rankings.softrank import log2_mixture
      >>> weights, decays = log2_mixture(40)
      >>> print(((weights * (1 - decays) ** 6).numpy().sum() * 3).round(6))
      1.0
    """
    if isinstance(length, int):
        if length > _BOUNDS[-1]:
            raise ValueError(f"`length` must be at most {_BOUNDS[-1]} for the log discount of SoftRank, got {length}.")
        terms = tf.constant(_fitted(next(bound for bound in _BOUNDS if length <= bound)))
    else:
        fits = [_fitted(bound) for bound in _BOUNDS]
        every = tf.RaggedTensor.from_row_lengths(np.concatenate(fits), [len(fit) for fit in fits])
        terms = every[tf.searchsorted(_BOUNDS, [length])[0]]
    weights, decays = tf.unstack(terms, axis=1)
    return weights, decays
