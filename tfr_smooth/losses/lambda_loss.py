"""The LambdaLoss framework: pairwise logistic losses weighted by the effect of each pair on a metric."""

from __future__ import annotations

import math

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.losses import lambda_weights
from tfr_smooth.losses.lambda_weights import NDCGLambdaWeightV2
from tfr_smooth.losses.pairwise import weighted_logistic
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, RankingLoss

METRICS = ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2++", "lambda_rank", "precision")


@LOSSES.register("lambda_loss")
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
    with only relevant or only irrelevant documents) are excluded. The weight of a document multiplies its pairs with
    documents of lower labels.

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

    shift_invariant = True

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
        self.sigma = _arguments.scale("sigma", sigma)
        self.mu = _arguments.scale("mu", mu)
        self.topn = _arguments.topn(topn)

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists, with each pair times the weight of its first document."""
        labels = self._relevance(labels)
        weight = NDCGLambdaWeightV2(topn=self.topn)
        gains = labels if self.metric == "precision" else weight.gains(labels, mask)
        # Cumulative sums outside of XLA, where they were quadratic up to TensorFlow 2.15.
        discounts = _rank_discounts(weight, _compiled.padded_length(_padded.length(scores)), self.metric, self.mu)
        sums = lambda_weights.cumulative(discounts)
        # The pairs of NDCG-Loss1 are all pairs, each with the gain of its first document.
        all_pairs = self.metric == "ndcg_loss1"
        losses = weighted_logistic(scores, labels, mask, weights, gains, sums, self.sigma, all_pairs=all_pairs)
        return losses / math.log(2.0)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with one distinct label (for "precision": relevant or not)."""
        return _padded.varies(self._relevance(labels), mask)

    def _relevance(self, labels: tf.Tensor) -> tf.Tensor:
        return tf.cast(labels >= 1.0, labels.dtype) if self.metric == "precision" else labels


def _rank_discounts(weight: NDCGLambdaWeightV2, length: tf.Tensor | int, metric: str, mu: float) -> tf.Tensor:
    """Returns the metric's weight of each pair of ranks without the gains, [list, list]; 0 on the diagonal."""
    topn = weight.topn
    # float64, for the sums over blocks of ties.
    ranks = tf.cast(tf.range(1, length + 1), tf.float64)
    if metric == "precision":
        return lambda_weights.swap(tf.ones_like, ranks, topn) / tf.cast(topn, ranks.dtype)
    if metric == "ndcg_loss1":
        discounts = weight.discount(ranks) * lambda_weights.beyond_cutoff(weight.discount, ranks, topn)
        return tf.linalg.set_diag(tf.tile(discounts[:, tf.newaxis], [1, length]), tf.zeros_like(ranks))
    swap, loss2 = lambda_weights.swap(weight.discount, ranks, topn), weight.of_ranks(ranks)
    return {"ndcg_loss2": loss2, "ndcg_loss2++": swap + mu * loss2, "lambda_rank": swap}[metric]
