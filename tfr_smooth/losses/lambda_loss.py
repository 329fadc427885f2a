"""The LambdaLoss framework: pairwise logistic losses weighted by the effect of each pair on a metric."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _lists, _serialization
from tfr_smooth.losses import pair_ranks, pairwise
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss
from tfr_smooth.measures import ideal_dcg
from tfr_smooth.rankings.dcg import NDCGGain, log2_discount

if TYPE_CHECKING:
    from typing_extensions import Unpack


METRICS = ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2++", "lambda_rank", "precision")


@_serialization.register
class LambdaLoss(RankingLoss):
    r"""Logistic loss over pairs of documents, weighted by the effect of their order on a metric.

    $$\sum_{ij} w_{ij} \log_2(1 + e^{-\sigma (s_i - s_j)})$$

    over the pairs with $y_i > y_j$ ("ndcg_loss1": all $i \neq j$). The weights are constant to the gradient:

    - "ndcg_loss1": $G_i / D_{r_i}$, NDCG-Loss1;
    - "ndcg_loss2": $\delta_{ij} |G_i - G_j|$, NDCG-Loss2;
    - "ndcg_loss2++": $(\rho_{ij} + \mu \delta_{ij}) |G_i - G_j|$, NDCG-Loss2++;
    - "lambda_rank": $\rho_{ij} |G_i - G_j|$, LambdaRank: the change of NDCG if the two documents are swapped;
    - "precision": 1 / K if exactly one of the two documents is among the first K, the change of P@K if they are
      swapped. The pairs consist of a relevant document (label >= 1) and one that is not relevant.

    $$G_i = \frac{2^{y_i} - 1}{\mathrm{maxDCG}}, \quad D_r = \log_2(1 + r), \quad
      \rho_{ij} = \left|\frac{1}{D_{r_i}} - \frac{1}{D_{r_j}}\right|, \quad
      \delta_{ij} = \frac{1}{D_{|r_i - r_j|}} - \frac{1}{D_{|r_i - r_j| + 1}}$$

    (Wang et al., "The LambdaLoss Framework for Ranking Metric Optimization", CIKM 2018, which has no cutoffs.) With a
    cutoff K, $1 / D_r$ is 0 in $\rho$ for r > K, and $\delta_{ij}$ is multiplied by $1 / (1 - 1 / D_m)$ if
    $m = \max(r_i, r_j) > K$ (Jagerman et al., "On Optimizing Top-K Metrics for Neural Ranking Models", SIGIR 2022). By
    the same argument, $1 / D_{r_i}$ in NDCG-Loss1 has this factor with $m = r_i > K$.

    The $r_i$ are the exact ranks by the current scores. The weight of a pair with ties is the mean over all orders of
    the tied documents. So the loss does not depend on the order of documents in the list, and ties have a gradient.

    The loss is at least 0; "ndcg_loss1" is at least 1 - NDCG@K. Lists with only one distinct label (for "precision":
    with only relevant or only irrelevant documents) are excluded.

    Args:
      metric: One of the names above.
      sigma: Slope of the logistic function, > 0.
      mu: Weight of $\delta$ in NDCG-Loss2++, > 0; the paper recommends 10.
      topn: The cutoff K, >= 1; None for the whole list. Required for "precision".
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])
      >>> print(losses.LambdaLoss(metric="lambda_rank", reduction="none")(labels, scores).numpy().round(4))
      [0.3691]
    """

    def __init__(
        self,
        *,
        metric: str = "ndcg_loss2++",
        sigma: float = 1.0,
        mu: float = 10.0,
        topn: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        if metric == "precision" and topn is None:
            raise ValueError('`topn` must be an integer >= 1 for the metric "precision", got None.')
        self.metric = _arguments.choice("metric", metric, METRICS)
        self.sigma = _arguments.real("sigma", sigma, above=0.0)
        self.mu = _arguments.real("mu", mu, above=0.0)
        self.topn = _arguments.topn(topn)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        labels = self._relevance(labels)
        gains = labels if self.metric == "precision" else _normalized_gains(labels, mask, self.topn)
        # Cumulative sums outside of XLA, where they were quadratic up to TensorFlow 2.15.
        discounts = _rank_discounts(_compiled.padded_length(_lists.length(scores)), self.metric, self.mu, self.topn)
        sums = pair_ranks.cumulative(discounts)
        # The pairs of NDCG-Loss1 are all pairs, each with the gain of its first document.
        constants = sums, tf.constant(self.sigma, scores.dtype), tf.constant(self.metric == "ndcg_loss1")
        losses = _losses(scores, labels, mask, gains, *constants)
        return tf.ensure_shape(losses, scores.shape[:1]) / math.log(2.0)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with one distinct label (for "precision": relevant or not)."""
        return _lists.varies(self._relevance(labels), mask)

    def _relevance(self, labels: tf.Tensor) -> tf.Tensor:
        return tf.cast(labels >= 1.0, labels.dtype) if self.metric == "precision" else labels


def _plain_losses(
    scores: tf.Tensor,
    labels: tf.Tensor,
    mask: tf.Tensor,
    gains: tf.Tensor,
    sums: tf.Tensor,
    sigma: tf.Tensor,
    is_loss1: tf.Tensor,
) -> tf.Tensor:
    weights = _weights(tf.stop_gradient(scores), labels, mask, gains, sums, is_loss1)
    return tf.reduce_sum(weights * pairwise.logistic(scores, sigma), axis=[1, 2])


@_compiled.differentiable(_plain_losses)
def _losses(
    scores: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor, gains: tf.Tensor, *constants: tf.Tensor
) -> _compiled.WithGradient:
    """Returns the sum over pairs, [batch], and its gradient function; arguments as in `_losses_and_gradient`."""
    padded = [_compiled.pad(tensor) for tensor in (scores, labels, mask, gains)]
    losses, gradient = _losses_and_gradient(*padded, *constants)
    gradient = _compiled.unpad(gradient, scores)
    return losses[: tf.shape(scores)[0]], lambda upstream: upstream[:, tf.newaxis] * gradient


@_compiled.program
def _losses_and_gradient(
    scores: tf.Tensor,
    labels: tf.Tensor,
    mask: tf.Tensor,
    gains: tf.Tensor,
    sums: tf.Tensor,
    sigma: tf.Tensor,
    is_loss1: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the sum over pairs, [batch], and its gradient with respect to the scores, [batch, list]."""
    weights = _weights(scores, labels, mask, gains, sums, is_loss1)
    behind = pairwise.scaled_differences(scores, sigma)
    losses = tf.reduce_sum(weights * tf.nn.softplus(behind), axis=[1, 2])
    derivatives = sigma * weights * tf.sigmoid(behind)
    return losses, tf.reduce_sum(derivatives, axis=1) - tf.reduce_sum(derivatives, axis=2)


def _weights(
    scores: tf.Tensor,
    labels: tf.Tensor,
    mask: tf.Tensor,
    gains: tf.Tensor,
    sums: tf.Tensor,
    is_loss1: tf.Tensor,
) -> tf.Tensor:
    """Returns the weights of the pairs, [batch, list, list], given the cumulative sums of `_rank_discounts`."""
    rows, columns = _lists.pairs(gains)
    chosen = tf.where(is_loss1, _lists.different_pairs(mask), _lists.preferences(labels, mask))
    differences = rows - tf.where(is_loss1, tf.zeros_like(columns), columns)
    return _lists.fill(differences * pair_ranks.over_orders_of_ties(sums, scores, mask), chosen, 0.0)


def _normalized_gains(labels: tf.Tensor, mask: tf.Tensor, topn: int | None) -> tf.Tensor:
    """Returns G_i = (2^(y_i) - 1) / maxDCG@K, [batch, list]."""
    gain = NDCGGain.of("exponential", labels)
    return tf.math.divide_no_nan(gain(labels), ideal_dcg(labels, mask, topn, gain=gain)[:, tf.newaxis])


def _inverse_discount(ranks: tf.Tensor) -> tf.Tensor:
    """Returns 1 / D_r = 1 / log2(1 + r)."""
    return log2_discount(ranks - 1.0)


def _rank_discounts(length: tf.Tensor | int, metric: str, mu: float, topn: int | None) -> tf.Tensor:
    """Returns the metric's weight of each pair of ranks without the gains, [list, list]; 0 on the diagonal."""
    # float64, for the sums over blocks of ties.
    ranks = tf.cast(tf.range(1, length + 1), tf.float64)
    if metric == "precision":
        return pair_ranks.swap(tf.ones_like, ranks, topn) / tf.cast(topn or length, ranks.dtype)
    if metric == "ndcg_loss1":
        discounts = _inverse_discount(ranks) * pair_ranks.beyond_cutoff(_inverse_discount, ranks, topn)
        return tf.linalg.set_diag(tf.tile(discounts[:, tf.newaxis], [1, length]), tf.zeros_like(ranks))
    swap = pair_ranks.swap(_inverse_discount, ranks, topn)
    loss2 = pair_ranks.distance(_inverse_discount, ranks)
    loss2 *= pair_ranks.beyond_cutoff(_inverse_discount, pair_ranks.later(ranks), topn)
    return {"ndcg_loss2": loss2, "ndcg_loss2++": swap + mu * loss2, "lambda_rank": swap}[metric]
