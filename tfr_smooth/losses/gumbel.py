"""Losses with random noise: means over rankings that it samples, and a cross entropy whose targets it changes.

Scores with Gumbel noise are sampled from the Plackett-Luce distribution, of which there are gradients of expectations.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NoReturn

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _compiled, _padded, _serialization, measures, rankings
from tfr_smooth.losses import lambda_weights, listwise, pairwise, smooth, softmax
from tfr_smooth.losses.ranking_loss import HIGHEST_GRADE, LOSSES, LossOptions, RankingLoss, TemperedLoss
from tfr_smooth.rankings import Ranking, dcg, exact
from tfr_smooth.rankings.ranking import Gain


@_serialization.register
class GumbelLoss(RankingLoss):
    r"""Mean of a loss over scores with Gumbel noise: $\frac{1}{S} \sum_{a=1}^S L(y, (s + \epsilon^a) / \beta)$.

    (Bruch et al., "A Stochastic Treatment of Learning to Rank Scoring Functions", WSDM 2020.) The $\epsilon^a$ are
    independent samples of the standard Gumbel distribution, drawn at each call, so the orders of the noisy scores are
    samples of the Plackett-Luce distribution of the scores. The gradient is that of the sampled losses. The lists that
    the loss excludes are excluded. Weights multiply what they multiply in the loss.

    Args:
      loss: A ranking loss. Its own `dtype`, `ragged` and `reduction` are not used.
      sample_size: The number of samples S, >= 1.
      gumbel_temperature: $\beta$, the divisor of the noisy scores, > 0.
      seed: Seed of the noise, >= 0, as in `tf.random.uniform`: a program draws the same sequence each time it runs.
        None draws different ones, unless `tf.random.set_seed` is called.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are S times those of the loss.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.GumbelLoss(losses.SmoothINDCGLoss(alpha=1.0), sample_size=4, seed=1)
      >>> value = loss(tf.constant([[1.0, 0.0, 0.0]]), tf.constant([[2.0, 1.0, 0.0]]))
      >>> 0.0 < float(value) < 1.0
      True
    """

    def __init__(
        self,
        loss: RankingLoss,
        *,
        sample_size: int = 8,
        gumbel_temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        self.loss = _arguments.instance("loss", loss, RankingLoss)
        self.highest_label, self.shift_invariant = loss.highest_label, loss.shift_invariant
        self.sample_size = _arguments.integer("sample_size", sample_size, least=1)
        self.gumbel_temperature = _arguments.scale("gumbel_temperature", gumbel_temperature)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists, with the weights as the loss takes them."""
        noise = gumbel_noise(labels, self.sample_size, self.seed)
        noisy = _padded.clipped((scores[:, tf.newaxis] + noise) / self.gumbel_temperature, _padded.LARGEST_SCORE)
        shape = tf.shape(noisy)
        noisy = tf.reshape(noisy, [-1, shape[2]])
        labels, mask, weights = (tf.repeat(tensor, self.sample_size, axis=0) for tensor in (labels, mask, weights))
        values = self.loss.weighted(labels, _padded.fill(noisy, mask, 0.0), mask, weights)
        return tf.reduce_mean(tf.reshape(values, shape[:2]), axis=1)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists that the loss excludes."""
        return self.loss.counts(labels, mask)


@LOSSES.register("gumbel_approx_ndcg")
class GumbelApproxNDCGLoss(GumbelLoss):
    r"""Mean ApproxNDCG loss over scores with Gumbel noise: `GumbelLoss(ApproxNDCGLoss())`.

    $$\frac{1}{S} \sum_{a=1}^S \left(1 - \mathrm{ApproxNDCG}(y, (s + \epsilon^a) / \beta)\right)$$

    (Bruch et al., "A Stochastic Treatment of Learning to Rank Scoring Functions", WSDM 2020; TF-Ranking's
    `GumbelApproxNDCGLoss` plus 1.) The noise $\epsilon^a$ is drawn at each call. The loss is in [0, 1]. Lists without a
    relevant document are excluded. Weights of documents become one weight per list (`list_weights`).

    Args:
      alpha: Sharpness of the comparison of two scores, > 0; one over TF-Ranking's `temperature`.
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1, "linear" for y.
      discount: The discount of a rank; see `measures.NDCG`.
      sample_size: The number of samples S, >= 1.
      gumbel_temperature: $\beta$, the divisor of the noisy scores, > 0.
      seed: Seed of the noise, >= 0; see `GumbelLoss`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(S N^2), memory O(S N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> value = losses.GumbelApproxNDCGLoss(seed=1)(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]]))
      >>> 0.0 < float(value) < 1.0
      True
    """

    def __init__(
        self,
        *,
        alpha: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Any = "log2",
        sample_size: int = 8,
        gumbel_temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        ranking, measure = rankings.Approx(alpha=alpha), measures.NDCG(topn=topn, gain=gain, discount=discount)
        loss = smooth.MeasureLoss(ranking, measure)
        super().__init__(loss, sample_size=sample_size, gumbel_temperature=gumbel_temperature, seed=seed, **options)
        self.alpha, self.topn, self.gain, self.discount = ranking.alpha, measure.topn, measure.gain, measure.discount


@LOSSES.register("yeti_logistic")
class YetiLogisticLoss(GumbelLoss):
    r"""Mean logistic loss of neighbors in rankings by scores with Gumbel noise.

    $$\frac{1}{S N} \sum_{a=1}^S \sum_{i, j: y_i > y_j} w^a_{ij} \log(1 + e^{-(s^a_i - s^a_j) / \tau}), \qquad
      s^a = \frac{s + \epsilon^a}{\beta}$$

    (Lyzhin et al., "Which Tricks are Important for Learning to Rank?", ICML 2023, after Gulin et al., "Winning the
    Transfer Learning Track of Yahoo!'s Learning to Rank Challenge with YetiRank", 2011; TF-Ranking's
    `YetiLogisticLoss`.) N is the number of documents in the list. $w^a$ is the weight in the ranking by $s^a$, by
    default 0 except for neighbors. The noise $\epsilon^a$ is drawn at each call. Lists with only one distinct label are
    excluded. The weight of a document multiplies its pairs with documents of lower labels.

    Args:
      lambda_weight: Weights of the pairs. None uses `YetiDCGLambdaWeight()`.
      temperature: Tau, the divisor of the noisy scores, > 0.
      sample_size: The number of samples S, >= 1.
      gumbel_temperature: $\beta$, a divisor of the noisy scores, > 0.
      seed: Seed of the noise, >= 0; see `GumbelLoss`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(S N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> value = losses.YetiLogisticLoss(seed=1)(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]]))
      >>> float(value) > 0.0
      True
    """

    def __init__(
        self,
        *,
        lambda_weight: lambda_weights.LambdaWeight | None = None,
        temperature: float = 1.0,
        sample_size: int = 8,
        gumbel_temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        weight = lambda_weights.YetiDCGLambdaWeight() if lambda_weight is None else lambda_weight
        loss = pairwise.PairwiseLogisticLoss(lambda_weight=weight, temperature=temperature)
        super().__init__(loss, sample_size=sample_size, gumbel_temperature=gumbel_temperature, seed=seed, **options)
        self.lambda_weight, self.temperature = lambda_weight, loss.temperature
        if lambda_weight is None:
            self.highest_label = HIGHEST_GRADE


@LOSSES.register("xe_ndcg")
class XENDCGLoss(TemperedLoss):
    r"""XE-NDCG: cross entropy of softmax and random gains, a convex bound of NDCG.

    $$-\sum_j \frac{2^{y_j} - \gamma_j}{\sum_l (2^{y_l} - \gamma_l)} \log \mathrm{softmax}(s / \tau)_j$$

    (Bruch, "An Alternative Cross Entropy Loss for Learning-to-Rank", WWW 2021; LightGBM's `rank_xendcg`, whose gradient
    has two more terms.) The $\gamma_j$ are uniform in (0, 1), drawn at each call. Invariant to a shift of the scores.
    The loss is at least 0. Lists without a relevant document are excluded. Weights of documents become one weight per
    list (`list_weights`).

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      seed: Seed of the noise, >= 0; see `GumbelLoss`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> print(losses.XENDCGLoss()(tf.constant([[3.0, 0.0]]), tf.zeros([1, 2])).numpy().round(4))  # for any noise
      0.6931
    """

    highest_label = HIGHEST_GRADE

    def __init__(self, *, temperature: float = 1.0, seed: int | None = None, **options: Unpack[LossOptions]) -> None:
        super().__init__(temperature=temperature, **options)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        noise = uniform_noise(labels, 1, self.seed)[:, 0]
        # Divided by the largest 2^y, which may overflow.
        highest = tf.reduce_max(labels, axis=1, keepdims=True)
        gains = tf.exp(math.log(2.0) * (labels - highest)) - noise * tf.exp(-math.log(2.0) * highest)
        gains = _padded.fill(tf.nn.relu(gains), mask, 0.0)
        targets = tf.math.divide_no_nan(gains, tf.reduce_sum(gains, axis=1, keepdims=True))
        return softmax.cross_entropy(targets, scores, mask, self.temperature)


def gumbel_noise(like: tf.Tensor, sample_size: int, seed: int | None) -> tf.Tensor:
    """Returns standard Gumbel noise, [batch, samples, list], for a tensor [batch, list], in its type."""
    return -tf.math.log(-tf.math.log(uniform_noise(like, sample_size, seed)))


def uniform_noise(like: tf.Tensor, sample_size: int, seed: int | None) -> tf.Tensor:
    """Returns noise between 0 and 1, not included, as `gumbel_noise` does."""
    batch, length = tf.unstack(tf.shape(like))
    # Not from 0, where the logarithm is infinite.
    return tf.random.uniform([batch, sample_size, length], 1e-30, 1.0, like.dtype, seed)


@_serialization.register
class PLRankLoss(smooth.MeasureLoss):
    r"""1 - the mean of a measure over rankings sampled from the scores, with an unbiased gradient of its expectation.

    $$1 - \frac{1}{S} \sum_{a=1}^S \sum_{k=1}^K \theta_k \rho_{y_a(k)}, \qquad
      P(y) = \prod_{k=1}^N \frac{e^{s_{y(k)} / \tau}}{\sum_{l=k}^N e^{s_{y(l)} / \tau}}$$

    The rankings $y_a$ are drawn from the Plackett-Luce distribution P at each call. The measure is a sum over ranks of
    a weight $\theta_k$ times the gain $\rho_d$ of the document. With $r_d$, the rank of document d, and $Z_k$, the sum
    of $e^{s / \tau}$ from rank k on, the gradient of the measure is the mean over samples of PL-Rank-3,

    $$\frac{\partial}{\partial s_d} \approx \frac{1}{\tau} \left(\sum_{k=r_d+1}^K \theta_k \rho_{y(k)}
      + e^{s_d / \tau} \left(\rho_d \sum_{k=1}^{r_d} \frac{\theta_k}{Z_k}
      - \sum_{k=1}^{r_d} \frac{1}{Z_k} \sum_{l=k}^K \theta_l \rho_{y(l)}\right)\right)$$

    (Oosterhuis, "Learning-to-Rank at the Speed of Sampling: Plackett-Luce Gradient Estimation with Minimal
    Computational Complexity", SIGIR 2022. It equals PL-Rank-2 of Oosterhuis, SIGIR 2021, on the same samples.) The
    estimate has no bias, unlike that of `GumbelLoss`, but a larger variance. Lists without a relevant document are
    excluded. Weights of documents become one weight per list (`list_weights`).

    Args:
      measure: A measure that is such a sum: `measures.NDCG`, `DCG`, `Precision`, `Recall`, or one of your own.
      sample_size: The number of samples S, >= 1.
      temperature: $\tau$, the divisor of the scores, > 0.
      seed: Seed of the samples, >= 0; see `GumbelLoss`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid; in a call, if the measure is not such a sum.

    Time O(S N log N), memory O(S N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses, measures
      >>> loss = losses.PLRankLoss(measures.Precision(topn=1), sample_size=4, seed=1)
      >>> float(loss(tf.constant([[1.0, 0.0, 0.0]]), tf.constant([[90.0, 60.0, 30.0]])))  # Samples hardly differ.
      0.0
    """

    def __init__(
        self,
        measure: measures.Measure,
        *,
        sample_size: int = 32,
        temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        self.sample_size = _arguments.integer("sample_size", sample_size, least=1)
        self.temperature = _arguments.scale("temperature", temperature)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)
        # The minimum of a sum and 1, which would be that of the mean over samples.
        if isinstance(measure, measures.Hits):
            raise ValueError(f"`measure` must be a sum of discounted gains, such as NDCG, got {measure}.")
        super().__init__(_PlackettLuce(self.sample_size, self.temperature, self.seed), measure, **options)
        self.highest_label = math.inf  # The gain of a document, unlike that of a mean label, has a gradient.


@LOSSES.register("pl_rank_ndcg")
class PLRankNDCGLoss(PLRankLoss):
    r"""1 - the mean NDCG of rankings sampled from the scores: `PLRankLoss(measures.NDCG())`.

    (Oosterhuis, SIGIR 2022: PL-Rank-3.) The loss is in [0, 1]. Lists without a relevant document are excluded. Weights
    of documents become one weight per list (`list_weights`).

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1, "linear" for y.
      discount: The discount of a rank; see `measures.NDCG`.
      sample_size: The number of samples S, >= 1.
      temperature: $\tau$, the divisor of the scores, > 0.
      seed: Seed of the samples, >= 0; see `GumbelLoss`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(S N log N), memory O(S N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> value = losses.PLRankNDCGLoss(seed=1)(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]]))
      >>> 0.0 < float(value) < 0.37
      True
    """

    def __init__(
        self,
        *,
        topn: int | None = None,
        gain: str = "exponential",
        discount: dcg.Discount = "log2",
        sample_size: int = 32,
        temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        measure = measures.NDCG(topn=topn, gain=gain, discount=discount)
        super().__init__(measure, sample_size=sample_size, temperature=temperature, seed=seed, **options)
        self.topn, self.gain, self.discount = measure.topn, measure.gain, measure.discount


@dataclasses.dataclass(frozen=True)
class _PlackettLuce(Ranking):
    """Rankings sampled from the scores, for discounted sums of gains."""

    sample_size: int
    temperature: float
    seed: int | None

    def discounted_gain(
        self,
        scores: tf.Tensor,
        relevance: tf.Tensor,
        mask: tf.Tensor,
        *,
        discount: dcg.Discount = "log2",
        topn: int | None = None,
        gain: Gain,
    ) -> tf.Tensor:
        """Returns the mean over samples, [batch]."""
        noise = gumbel_noise(relevance, self.sample_size, self.seed)
        at_ranks = dcg.discounts_at_ranks(discount, _padded.num_ranks(scores, topn), mask)
        at_ranks = tf.pad(at_ranks, [[0, 0], [0, tf.shape(scores)[1] - tf.shape(at_ranks)[1]]])
        temperature = tf.constant(self.temperature, tf.float64)
        return tf.reduce_sum(gain(relevance) * _mean_discounts(scores, mask, noise, at_ranks, temperature), axis=1)

    def rank_relevance(
        self, scores: tf.Tensor, relevance: tf.Tensor, mask: tf.Tensor, topn: int | None = None
    ) -> NoReturn:
        """Raises an error."""
        raise ValueError("`measure` must be a sum of discounted gains, such as NDCG, got one of ranked relevance.")


@_compiled.differentiable
def _mean_discounts(
    scores: tf.Tensor, mask: tf.Tensor, noise: tf.Tensor, at_ranks: tf.Tensor, temperature: tf.Tensor
) -> _compiled.WithGradient:
    """Returns the mean discount of each document, [batch, list], with PL-Rank-3 for the gains that flow back."""
    samples, length = tf.shape(noise)[1], tf.shape(noise)[2]
    highest = tf.reduce_max(_padded.fill(scores, mask, scores.dtype.min), axis=1, keepdims=True)
    # float64, as in ListMLE.
    logits = tf.cast(scores - highest, tf.float64) / temperature
    at_ranks = tf.broadcast_to(at_ranks, tf.shape(scores))
    logits, mask, at_ranks = (tf.repeat(tensor, samples, axis=0) for tensor in (logits, mask, at_ranks))
    noisy = logits + tf.cast(tf.reshape(noise, tf.shape(logits)), tf.float64)
    # From the last document to the first, so that the sums run forward; padding comes last.
    order = tf.math.top_k(_padded.fill(-noisy, mask, tf.float64.min), length).indices
    logits, real = (tf.gather(tensor, order, batch_dims=1) for tensor in (logits, mask))
    ranks = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1, keepdims=True) - 1 - tf.range(length)
    discounts = _padded.fill(tf.gather(at_ranks, tf.maximum(ranks, 0), batch_dims=1), real, 0.0)

    def of_documents(values: tf.Tensor) -> tf.Tensor:
        sizes = tf.shape(scores)
        by_list = tf.reshape(exact.unsort(values, order), [sizes[0], _copies(order, scores), sizes[1]])
        return tf.cast(tf.reduce_mean(by_list, axis=1), scores.dtype)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        copies = _copies(order, upstream)
        gains = tf.gather(tf.repeat(tf.cast(upstream, tf.float64), copies, axis=0), order, batch_dims=1)
        following = tf.cumsum(gains * discounts, axis=1, exclusive=True)
        inputs = _padded.fill(logits, real, listwise.LOG_OF_NOTHING)
        sums = tf.math.cumulative_logsumexp(inputs, axis=1)

        def slopes(weights: tf.Tensor) -> tf.Tensor:
            """Returns the gradient of the weighted sum of the logarithms of Z."""
            signs = (listwise.log_sum_slopes(inputs, sums, tf.nn.relu(sign * weights)) for sign in (1.0, -1.0))
            return tf.subtract(*signs)

        placed = _padded.fill(following + gains * discounts, real, 0.0)
        return of_documents(following + gains * slopes(discounts) - slopes(placed)) / tf.cast(temperature, scores.dtype)

    return of_documents(discounts), gradient


def _copies(many: tf.Tensor, few: tf.Tensor) -> tf.Tensor:
    """Returns how many rows of a tensor there are for each row of another.

    A size that the gradient takes from the value's function, XLA would compile anew at each call.
    """
    return tf.shape(many)[0] // tf.maximum(tf.shape(few)[0], 1)
