r"""SoftRank: the metric expected when scores are noisy, without a sort and without the cubic recursion.

Taylor, Guiver, Robertson, Minka: "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008. SoftNDCG replaces the
discount at a document's rank by its expectation under the rank distribution (Eq. 14 and 15):

$$E[D(r_j)] = \sum_r D(r) \, p_j(r)$$

The paper computes $p_j(r)$ by a recursion that is cubic in the list. NDCG's discount does not need it: it is a mixture
of exponentials (see `discounts`), and the rank is a sum of independent contests, so

$$D(r) = \sum_m w_m (1 - c_m)^r \quad\Rightarrow\quad E[D(r_j)] = \sum_m w_m \prod_{i \ne j} (1 - c_m \pi_{ij}), \qquad
  \frac{\partial E[D(r_j)]}{\partial \pi_{ij}} = -\sum_m w_m c_m \prod_{k \ne i, j} (1 - c_m \pi_{kj})$$

with about twenty terms m. As every $c_m < 1$ no factor is 0, so the last product is the first one divided by its
factor. A product may underflow to 0, and that is right: the terms with the smallest c, whose products are largest, are
what the sum then consists of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import discounts, lists
from tfr_smooth.ops.rank_binomial import losses, mean_and_variance, rank_binomial, wins


@dataclasses.dataclass(frozen=True)
class SoftRank:
    r"""The SoftRank ranking: hand it to any metric of `tfr_smooth.functional` to make that metric smooth.

    Every score gets Gaussian noise of deviation $\sigma$ (Eq. 8 of SoftRank, WSDM 2008); a document is at each rank
    with the probability that the noise gives (Eq. 12).

    Args:
      sigma: The deviation of a score, > 0, in the unit of the scores: as it falls to 0 the ranking becomes exact.

    Raises:
      ValueError: If `sigma` is out of its range.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> scores, relevance = tf.constant([[0.0, 3.0, 1.0]]), tf.constant([[0.0, 2.0, 1.0]])
      >>> print(ops.SoftRank(sigma=0.1).relevance(scores, relevance).numpy().round(3))
      [[2. 1. 0.]]
      >>> print(ops.SoftRank(sigma=0.1).document_discounts(scores).numpy().round(3))
      [[0.5   1.    0.631]]
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        """Checks the argument."""
        object.__setattr__(self, "sigma", _arguments.real("sigma", self.sigma, above=0.0))

    def passes_over_pairs(self, topn: int | None) -> int:
        """Returns about how often it passes over all pairs of documents, with a cut-off too."""
        return 16

    def relevance(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor | None = None,
        topn: int | None = None,
    ) -> tf.Tensor:
        r"""The relevance expected at each rank: $y_r = \sum_j rel_j \, p_j(r)$ with the $p_j(r)$ of Eq. 12.

        Args:
          scores: [batch, list], any float type.
          relevance: [batch, list], what is found at a document.
          mask: [batch, list] bool, False for padding. None: all documents are real.
          topn: The number of ranks K; None or more than the list has: the list's length.

        Returns:
          [batch, K], float64 for float64 scores, else float32 (computed in float64). Ranks beyond the number of real
          documents hold 0; NaN for a list with a NaN among its real scores.

        Raises:
          ValueError: If `topn` is out of its range or the shapes do not match.

        Time O(K N^2); memory O(N^2 + K N), and for the gradient O((N / 16 + 16) K N), a list.
        """
        topn = _arguments.topn(topn)
        scores, mask, poison = lists.clean(scores, mask)
        relevance = tf.cast(lists.aligned("relevance", relevance, scores, mask), tf.float64)
        beaten = wins(scores, mask, self.sigma)
        found = rank_binomial(beaten, losses(beaten), lists.cut(scores, topn))
        return poison * tf.cast(tf.linalg.matvec(found, relevance, transpose_a=True), scores.dtype)

    def document_discounts(
        self,
        scores: tf.Tensor,
        mask: tf.Tensor | None = None,
        discount: discounts.Discount = "log2",
        topn: int | None = None,
    ) -> tf.Tensor:
        """Returns what each document's rank is expected to be worth; see `expected_discount`."""
        return expected_discount(scores, mask, sigma=self.sigma, discount=discount, topn=topn)


def expected_discount(
    scores: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    sigma: float = 1.0,
    discount: discounts.Discount = "log2",
    topn: int | None = None,
) -> tf.Tensor:
    r"""What each document's rank is expected to be worth: $E[D(r_j)] = \sum_r D(r) \, p_j(r)$ (Eq. 15 of SoftRank).

    Only first derivatives can be taken.

    Args:
      scores: [batch, list], any float type.
      mask: [batch, list] bool, False for padding. None: all documents are real. What stands in a padded place, NaN
        too, reaches nothing.
      sigma: The deviation of a score, > 0.
      discount: What rank r, from 0, is worth: "log2" for NDCG's $1 / \log_2(2 + r)$; `discounts.ShallowDiscount`
        for the paper's shallower ones, or "linear" for that of them with alpha = 0; a table D[0], D[1], .., and 0
        beyond it; or a function from float64 ranks [K] to their discounts [K].
      topn: The number of ranks K that are worth anything; None: all.

    Returns:
      [batch, list], float64 for float64 scores, else float32 (computed in float64); 0 at padding; NaN for a list with
      a NaN among its real scores. The mixture behind "log2" has a relative error of up to 1e-7.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    "log2" without `topn`: time O(M N^2) with M = 12 to 33 terms, memory O(N^2) a list; shallow discounts without
    `topn`: time and memory O(N^2). All others use the recursion over K ranks: time O(K N^2), memory
    O(N^2 + K N), and for the gradient O((N / 16 + 16) K N). (A cut discount is no positive mixture, and where a
    document hardly ever reaches the top K a signed or complex one loses all digits; the recursion adds positive
    numbers only.)

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import ops
      >>> scores = tf.constant([[2.0, 1.0, 0.0]])
      >>> print(ops.expected_discount(scores, sigma=1e-3).numpy().round(4))
      [[1.     0.6309 0.5   ]]
      >>> print(ops.expected_discount(scores, sigma=1.0).numpy().round(4))
      [[0.887  0.6743 0.5462]]
    """
    sigma = _arguments.real("sigma", sigma, above=0.0)
    topn = _arguments.topn(topn)
    discount = discounts.checked(discount)
    scores, mask, poison = lists.clean(scores, mask)
    beaten = wins(scores, mask, sigma)
    length = lists.cut(scores, None)
    if topn is not None and isinstance(length, int) and topn >= length:
        topn = None
    if topn is None and isinstance(discount, str):
        expected = _expected_under_mixture(beaten, *discounts.log2_mixture(length))
    elif topn is None and isinstance(discount, discounts.ShallowDiscount):
        expected = discount.expected(*mean_and_variance(beaten), _count(mask))
    else:
        expected = _expected_under_recursion(beaten, mask, discount, lists.cut(scores, topn))
    expected = lists.filled(expected, mask, 0.0)
    return poison * tf.cast(expected, scores.dtype)


def _count(mask: tf.Tensor) -> tf.Tensor:
    """The number of real documents, [batch, 1] float64, at least 1."""
    return tf.maximum(tf.reduce_sum(tf.cast(mask, tf.float64), axis=1, keepdims=True), 1.0)


def _expected_under_mixture(beaten: tf.Tensor, weights: tf.Tensor, decays: tf.Tensor) -> tf.Tensor:
    """[batch, list]: the mixture's expectation from `wins` [batch, i, j], without more than N^2 memory."""
    terms = tf.shape(weights)[0]

    @tf.custom_gradient
    def expected(beaten: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def add(m: tf.Tensor, products: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            return m + 1, products.write(m, tf.reduce_prod(1.0 - decays[m] * beaten, axis=1))

        products = tf.TensorArray(beaten.dtype, size=terms, element_shape=beaten.shape[:1] + beaten.shape[2:])
        products = tf.while_loop(lambda m, _: m < terms, add, (0, products))[1].stack()

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            scaled = products * (weights * decays)[:, tf.newaxis, tf.newaxis] * upstream

            def add(m: tf.Tensor, slopes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                return m + 1, slopes - scaled[m][:, tf.newaxis] / (1.0 - decays[m] * beaten)

            return tf.while_loop(lambda m, _: m < terms, add, (0, tf.zeros_like(beaten)))[1]

        return tf.tensordot(weights, products, axes=1), gradient

    return expected(beaten)


def _expected_under_recursion(beaten: tf.Tensor, mask: tf.Tensor, discount: Any, ranks: tf.Tensor | int) -> tf.Tensor:
    """[batch, list]: the expectation of any discount, by the distribution of the first K ranks."""
    if isinstance(discount, np.ndarray):
        ranks = min(len(discount), ranks) if isinstance(ranks, int) else tf.minimum(len(discount), ranks)
    worth = discounts.at_ranks(discount, ranks, _count(mask))[:, tf.newaxis]
    found = rank_binomial(beaten, losses(beaten), ranks)
    return tf.reduce_sum(found * worth, axis=2)
