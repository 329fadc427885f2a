"""The losses of the LambdaLoss framework."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.lambda_loss import METRICS, cut_off, lambda_loss, relevance
from tfr_smooth.functional.rank_net import has_preferences
from tfr_smooth.losses.base import RankingLoss


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class LambdaLoss(RankingLoss):
    r"""Logistic loss of pairs of documents, weighted by what their order means to a metric.

    $$\sum_{ij} w_{ij} \log_2(1 + e^{-\sigma (s_i - s_j)})$$

    with weights held constant in the gradient, over the pairs with $y_i > y_j$ ("ndcg_loss1": over all $i \neq j$):

    - "ndcg_loss1": $G_i / D_{r_i}$, NDCG-Loss1;
    - "ndcg_loss2": $\delta_{ij} |G_i - G_j|$, NDCG-Loss2;
    - "ndcg_loss2++": $(\rho_{ij} + \mu \delta_{ij}) |G_i - G_j|$, NDCG-Loss2++;
    - "lambda_rank": $\rho_{ij} |G_i - G_j|$, LambdaRank: the change of NDCG when the two are swapped;
    - "precision": 1 / K if only one of the two is among the first K, the change of P@K when they are swapped, over the
      pairs of a relevant (label >= 1) and another document;

    $$G_i = \frac{2^{y_i} - 1}{\mathrm{maxDCG}}, \quad D_r = \log_2(1 + r), \quad
      \rho_{ij} = \left|\frac{1}{D_{r_i}} - \frac{1}{D_{r_j}}\right|, \quad
      \delta_{ij} = \frac{1}{D_{|r_i - r_j|}} - \frac{1}{D_{|r_i - r_j| + 1}}$$

    (Wang et al., "The LambdaLoss Framework for Ranking Metric Optimization", CIKM 2018, which leaves cut-offs out.)
    With a cut-off K, $1 / D_r$ is 0 in $\rho$ for r > K, and $\delta_{ij}$ is multiplied by $1 / (1 - 1 / D_m)$ where
    $m = \max(r_i, r_j) > K$ (Jagerman et al., "On Optimizing Top-K Metrics for Neural Ranking Models", SIGIR 2022); so
    is $1 / D_{r_i}$ in NDCG-Loss1, by the same argument, with $m = r_i > K$.

    The $r_i$ are the exact ranks by the current scores. A pair with tied documents has the mean of its weights over all
    orders of the ties: nothing hangs on positions in the list, and there is a gradient at ties.

    Args:
      metric: One of the names above.
      sigma: Slope of the logistic function, > 0.
      mu: Weight of $\delta$ in NDCG-Loss2++, > 0; the paper recommends 10.
      topn: The cut-off K; None for the whole list. "precision" needs one.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At least 0; "ndcg_loss1" is at least 1 - NDCG@K. Lists whose labels (for "precision": relevant
    or not) are all the same are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory O(N^2) a list: a dozen [batch, list, list] tensors at once, some in float64, so about 60 bytes a
    pair (60 MB for a list of 1000).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])
      >>> print(round(float(tfr_smooth.losses.LambdaLoss(metric="lambda_rank")(labels, scores)), 4))
      0.3691
    """

    def __init__(
        self,
        *,
        metric: str = "ndcg_loss2++",
        sigma: float = 1.0,
        mu: float = 10.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "lambda_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._metric = _arguments.choice("metric", metric, METRICS)
        self._sigma = _arguments.real("sigma", sigma, above=0.0)
        self._mu = _arguments.real("mu", mu, above=0.0)
        self._topn = cut_off(metric, topn)

    def passes_over_pairs(self) -> int:
        """Returns 4."""
        return 4

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ([batch] losses, [batch] whether the list has a pair)."""
        losses = lambda_loss(labels, scores, metric=self._metric, sigma=self._sigma, mu=self._mu, topn=self._topn)
        return losses, has_preferences(relevance(tf.cast(labels, losses.dtype), self._metric))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        own = {"metric": self._metric, "sigma": self._sigma, "mu": self._mu, "topn": self._topn}
        return {**own, **super().get_config()}
