"""Losses with random noise: means over rankings that it samples, and a cross entropy whose targets it changes."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _padded, _serialization, measures, rankings
from tfr_smooth.losses.lambda_weights import LambdaWeight, YetiDCGLambdaWeight
from tfr_smooth.losses.pairwise import PairwiseLogisticLoss
from tfr_smooth.losses.ranking_loss import HIGHEST_GRADE, LOSSES, LossOptions, RankingLoss, TemperedLoss
from tfr_smooth.losses.smooth import MeasureLoss
from tfr_smooth.losses.softmax import cross_entropy


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
        loss = MeasureLoss(ranking, measure)
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
        lambda_weight: LambdaWeight | None = None,
        temperature: float = 1.0,
        sample_size: int = 8,
        gumbel_temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        weight = YetiDCGLambdaWeight() if lambda_weight is None else lambda_weight
        loss = PairwiseLogisticLoss(lambda_weight=weight, temperature=temperature)
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
        return cross_entropy(targets, scores, mask, self.temperature)


def gumbel_noise(like: tf.Tensor, sample_size: int, seed: int | None) -> tf.Tensor:
    """Returns standard Gumbel noise, [batch, samples, list], for a tensor [batch, list], in its type."""
    return -tf.math.log(-tf.math.log(uniform_noise(like, sample_size, seed)))


def uniform_noise(like: tf.Tensor, sample_size: int, seed: int | None) -> tf.Tensor:
    """Returns noise between 0 and 1, not included, as `gumbel_noise` does."""
    batch, length = tf.unstack(tf.shape(like))
    # Not from 0, where the logarithm is infinite.
    return tf.random.uniform([batch, sample_size, length], 1e-30, 1.0, like.dtype, seed)
