"""Losses for a student that learns the ranking of a teacher, whose scores are the labels."""

from __future__ import annotations

import math

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _padded, rankings
from tfr_smooth.losses import gumbel, listwise
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, RankingLoss, TemperedLoss
from tfr_smooth.rankings import exact


@LOSSES.register("adr_mse")
class ADRMSELoss(RankingLoss):
    r"""Distillation: the discounted squared error of approximate ranks as estimates of the teacher's ranks.

    $$\frac{1}{N} \sum_j \frac{(q_j - \pi_j)^2}{\log_2(1 + q_j)}, \qquad
      \pi_j = 1 + \sum_{i \ne j} \sigma(\alpha (s_i - s_j))$$

    (ADR-MSE of Schlatt et al., "Rank-DistiLLM: Closing the Effectiveness Gap Between Cross-Encoders and LLMs for
    Passage Re-Ranking", arXiv:2405.07920.) Labels are the scores of the teacher, of which only the order matters: $q_j$
    are the ranks by label, and documents with equal labels share the mean of their ranks. $\pi_j$ are the positions of
    `rankings.Approx`. The loss is at least 0. Lists with equal labels are excluded: they have no order. As negative
    labels mark padding, shift the scores of the teacher to at least 0. Weights of documents become one weight per list
    (`list_weights`).

    Args:
      alpha: Inverse temperature of the positions, > 0; see `rankings.Approx`. 1 is the default of the authors' code.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(N^2), memory O(N) per list (O(N^2) where TensorFlow has no XLA).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> teacher, scores = tf.constant([[7.1, 5.2, 0.0]]), tf.constant([[2.0, 1.0, 3.0]])
      >>> print(losses.ADRMSELoss(alpha=100.0)(teacher, scores).numpy().round(4))  # ranks 2, 3 and 1
      1.2103
    """

    shift_invariant = True

    def __init__(self, *, alpha: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self._ranking = rankings.Approx(alpha=alpha)
        self.alpha = self._ranking.alpha

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        ranks = _padded.fill(exact.average_ranks(labels, mask), mask, 1.0)
        errors = _padded.fill(ranks - self._ranking.positions(scores, mask), mask, 0.0)
        discounted = tf.square(errors) * (math.log(2.0) / tf.math.log1p(ranks))
        return tf.reduce_sum(discounted, axis=1) / _padded.count(mask, scores.dtype)[:, 0]

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with equal labels."""
        return _padded.varies(labels, mask)


@LOSSES.register("coupled_rankdistil")
class CoupledRankDistilLoss(TemperedLoss):
    r"""Distillation: the negative log likelihood of the first K documents of rankings sampled from the teacher.

    $$\frac{1}{S} \sum_{a=1}^S \sum_{i=1}^{\min(K, N)}
      \left(\log \sum_{k=i}^N e^{s_{\pi_a(k)} / \tau} - \frac{s_{\pi_a(i)}}{\tau}\right)$$

    (Reddi et al., "RankDistil: Knowledge Distillation for Ranking", AISTATS 2021; TF-Ranking's
    `CoupledRankDistilLoss`.) Labels are the scores y of the teacher. $\pi_a$ is the order by $y + \epsilon^a$ with
    standard Gumbel noise: a sample of the Plackett-Luce distribution of y, drawn at each call. So the loss estimates a
    cross entropy of two distributions of rankings; for K = 1, that of softmax(y) and $\mathrm{softmax}(s / \tau)$,
    which is ListNet. The loss is at least 0. Lists without a relevant document are excluded. As negative labels mark
    padding, shift the scores of the teacher to at least 0. Weights of documents become one weight per list
    (`list_weights`).

    Args:
      sample_size: The number of samples S, >= 1.
      topk: K, the number of documents whose order is learned, >= 1; None for all.
      temperature: Tau, the divisor of the scores, > 0.
      seed: Seed of the noise, >= 0; see `GumbelLoss`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(S N log N), memory O(S N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels = tf.constant([[90.0, 60.0, 30.0]])  # The noise cannot change their order.
      >>> print(losses.CoupledRankDistilLoss(topk=2)(labels, tf.zeros([1, 3])).numpy().round(4))
      1.7918
    """

    def __init__(
        self,
        *,
        sample_size: int = 8,
        topk: int | None = None,
        temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.sample_size = _arguments.integer("sample_size", sample_size, least=1)
        self.topk = _arguments.integer_or_none("topk", topk, least=1)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        teacher = labels[:, tf.newaxis] + gumbel.gumbel_noise(labels, self.sample_size, self.seed)
        samples = tf.shape(teacher)
        teacher = tf.reshape(teacher, [-1, samples[2]])
        scores, mask = (tf.repeat(tensor, self.sample_size, axis=0) for tensor in (scores, mask))
        # From the last document to the first, so that the sums run forward; padding comes last.
        order = tf.math.top_k(_padded.fill(-teacher, mask, labels.dtype.min), samples[2]).indices
        # float64, as in ListMLE.
        logits = tf.cast(tf.gather(scores, order, batch_dims=1), tf.float64) / self.temperature
        place = _padded.count(mask, tf.float64) - tf.cast(tf.range(samples[2]), tf.float64)  # 1 for the first
        chosen = place >= 1.0 if self.topk is None else tf.logical_and(place >= 1.0, place <= self.topk)
        weights = tf.cast(chosen, tf.float64)
        highest = tf.stop_gradient(tf.reduce_max(logits, axis=1, keepdims=True))
        logits -= highest
        losses = listwise.weighted_log_sums(logits, weights) - tf.reduce_sum(weights * logits, axis=1)
        return tf.cast(tf.reduce_mean(tf.reshape(losses, samples[:2]), axis=1), labels.dtype)
