"""The LambdaLoss framework: pairwise logistic losses weighted by what the order of a pair means to a metric."""

from __future__ import annotations

import dataclasses
import math

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import pairs
from tfr_smooth.functional.criterion import Criterion
from tfr_smooth.functional.metric import binary
from tfr_smooth.functional.ndcg import ideal_dcg
from tfr_smooth.ops import compiled, lists
from tfr_smooth.ops.discounts import log2_discount
from tfr_smooth.ops.gains import Gain

METRICS = ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2++", "lambda_rank", "precision")


def lambda_loss(
    labels: tf.Tensor,
    scores: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    metric: str = "ndcg_loss2++",
    sigma: float = 1.0,
    mu: float = 10.0,
    topn: int | None = None,
) -> tf.Tensor:
    """Computes the LambdaLoss of each list, [batch]; see `LambdaCriterion`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import functional
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])
      >>> print(functional.lambda_loss(labels, scores, metric="lambda_rank").numpy().round(4))
      [0.3691]
    """
    return LambdaCriterion(metric=metric, sigma=sigma, mu=mu, topn=topn)(labels, scores, mask)


@dataclasses.dataclass(frozen=True)
class LambdaCriterion(Criterion):
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

    At least 0; "ndcg_loss1" is at least 1 - NDCG@K. Lists whose labels (for "precision": relevant or not) are all the
    same are left out.

    Args:
      metric: One of the names above.
      sigma: Slope of the logistic function, > 0.
      mu: Weight of $\delta$ in NDCG-Loss2++, > 0; the paper recommends 10.
      topn: The cut-off K; None for the whole list. "precision" needs one.

    Raises:
      ValueError: If an argument is out of its range.

    Time and memory O(N^2) per list.
    """

    metric: str = "ndcg_loss2++"
    sigma: float = 1.0
    mu: float = 10.0
    topn: int | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.choice("metric", self.metric, METRICS)
        object.__setattr__(self, "sigma", _arguments.real("sigma", self.sigma, above=0.0))
        object.__setattr__(self, "mu", _arguments.real("mu", self.mu, above=0.0))
        if self.metric == "precision" and self.topn is None:
            raise ValueError('`topn` must be an integer >= 1 for the metric "precision", got None.')
        object.__setattr__(self, "topn", _arguments.topn(self.topn))

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        labels = self._relevance(labels)
        gains = labels if self.metric == "precision" else _normalized_gains(labels, mask, self.topn)
        # Summed here: XLA's running sums were quadratic up to TensorFlow 2.15.
        discounts = _rank_discounts(compiled.padded_length(lists.length(scores)), self.metric, self.mu, self.topn)
        sums = tf.pad(tf.cumsum(tf.cumsum(discounts, axis=0), axis=1), [[1, 0], [1, 0]])
        # The pairs of NDCG-Loss1 are all pairs, each with the gain of its first document.
        constants = sums, tf.constant(self.sigma, scores.dtype), tf.constant(self.metric == "ndcg_loss1")
        losses = _losses(scores, labels, mask, gains, *constants)
        return tf.ensure_shape(losses, scores.shape[:1]) / math.log(2.0)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists whose labels (for "precision": relevant or not) are all the same."""
        return pairs.has_preferences(self._relevance(labels), mask)

    def _relevance(self, labels: tf.Tensor) -> tf.Tensor:
        return binary(labels) if self.metric == "precision" else labels


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
    return tf.reduce_sum(weights * pairs.logistic(scores, sigma), axis=[1, 2])


@compiled.differentiable(_plain_losses)
def _losses(
    scores: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor, gains: tf.Tensor, *constants: tf.Tensor
) -> compiled.WithGradient:
    """Returns the sum over pairs, [batch], and its gradient; arguments as in `_losses_and_gradient`."""
    padded = [compiled.pad(tensor) for tensor in (scores, labels, mask, gains)]
    losses, gradient = _losses_and_gradient(*padded, *constants)
    gradient = compiled.unpad(gradient, scores)
    return losses[: tf.shape(scores)[0]], lambda upstream: upstream[:, tf.newaxis] * gradient


@compiled.program
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
    behind = pairs.scaled_differences(scores, sigma)
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
    """Returns the weights of the pairs, [batch, list, list], given `_rank_discounts`, summed."""
    rows, columns = lists.pairs(gains)
    chosen = tf.where(is_loss1, lists.different_pairs(mask), pairs.preferences(labels, mask))
    differences = rows - tf.where(is_loss1, tf.zeros_like(columns), columns)
    return lists.fill(differences * _over_orders_of_ties(sums, scores, mask), chosen, 0.0)


def _normalized_gains(labels: tf.Tensor, mask: tf.Tensor, topn: int | None) -> tf.Tensor:
    """G_i = (2^(y_i) - 1) / maxDCG@K, [batch, list]."""
    gain = Gain.of("exponential", labels)
    return tf.math.divide_no_nan(gain(labels), ideal_dcg(labels, mask, topn, gain=gain)[:, tf.newaxis])


def _inverse_discount(ranks: tf.Tensor) -> tf.Tensor:
    """1 / D_r = 1 / log2(1 + r)."""
    return log2_discount(ranks - 1.0)


def _rank_discounts(length: tf.Tensor | int, metric: str, mu: float, topn: int | None) -> tf.Tensor:
    """The metric's weight of a pair of ranks but for the gains, [list, list]: 0 on the diagonal."""
    # float64, for the sums over blocks below.
    ranks = tf.cast(tf.range(1, length + 1), tf.float64)
    first, second = ranks[:, tf.newaxis], ranks[tf.newaxis, :]
    within = tf.ones_like(ranks) if topn is None else tf.cast(ranks <= topn, ranks.dtype)
    inverse = _inverse_discount(ranks)
    if metric == "precision":
        return tf.abs(within[:, tf.newaxis] - within[tf.newaxis, :]) / tf.cast(topn or length, ranks.dtype)

    def beyond(rank: tf.Tensor) -> tf.Tensor:
        # What lifts the weights below the cut-off, where a gain is lost whole: at rank 1 there is no such thing.
        lifted = 1.0 / (1.0 - _inverse_discount(tf.maximum(rank, 2.0)))
        return tf.ones_like(rank) if topn is None else lists.fill(lifted, rank > topn, 1.0)

    apart = tf.maximum(tf.abs(first - second), 1.0)
    loss2 = (_inverse_discount(apart) - _inverse_discount(apart + 1.0)) * beyond(tf.maximum(first, second))
    visible = within * inverse
    swap = tf.abs(visible[:, tf.newaxis] - visible[tf.newaxis, :])
    discounts = {
        "ndcg_loss1": tf.broadcast_to((inverse * beyond(ranks))[:, tf.newaxis], tf.shape(apart)),
        "ndcg_loss2": loss2,
        "ndcg_loss2++": swap + mu * loss2,
        "lambda_rank": swap,
    }[metric]
    return tf.where(tf.equal(first, second), tf.zeros_like(discounts), discounts)


def _over_orders_of_ties(sums: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The discounts at the ranks of each pair of documents, [batch, list, list]; at ties its mean over their orders.

    Tied documents hold a block of ranks, of which each order gives every document each rank equally often: so the mean
    is that over a block of the matrix, and the differences of four of its running sums give it.
    """
    mine, others = lists.pairs(scores)
    real = mask[:, tf.newaxis, :]
    above = tf.reduce_sum(tf.cast(tf.logical_and(others > mine, real), tf.int32), axis=2)
    tied = tf.reduce_sum(tf.cast(tf.logical_and(tf.equal(others, mine), real), tf.int32), axis=2)
    rows = tf.gather(sums, above + tied) - tf.gather(sums, above)
    blocks = tf.gather(rows, above + tied, axis=2, batch_dims=1) - tf.gather(rows, above, axis=2, batch_dims=1)
    blocks = lists.fill(blocks, blocks > 1e-9, 0.0)  # Less is rounding of the sums.
    # Two documents of one block never have the same rank: there the diagonal, which is 0, is not counted.
    same = tf.cast(tf.equal(above[:, :, tf.newaxis], above[:, tf.newaxis, :]), tf.int32)
    count = tied[:, :, tf.newaxis] * (tied[:, tf.newaxis, :] - same)
    return tf.cast(tf.math.divide_no_nan(blocks, tf.cast(count, blocks.dtype)), scores.dtype)
