"""Coupled RankDistil: the likelihood of rankings sampled from a teacher's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tensorflow as tf

from tfr_smooth import _about, _arguments, _lists
from tfr_smooth.losses import gumbel
from tfr_smooth.losses.list_mle import weighted_log_sums
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class CoupledRankDistilLoss(RankingLoss):
    r"""Distillation: the negative log likelihood of the first K documents of rankings sampled from the teacher.

    $$\frac{1}{S} \sum_{a=1}^S \sum_{i=1}^{\min(K, N)}
      \left(\log \sum_{k=i}^N e^{s_{\pi_a(k)} / \tau} - \frac{s_{\pi_a(i)}}{\tau}\right)$$

    (Reddi et al., "RankDistil: Knowledge Distillation for Ranking", AISTATS 2021; TF-Ranking's
    `CoupledRankDistilLoss`.) Labels are the scores y of the teacher. $\pi_a$ is the order by $y + \epsilon^a$ with
    standard Gumbel noise: a sample of the Plackett-Luce distribution of y, drawn at each call. So the loss estimates a
    cross entropy of two distributions of rankings; for K = 1, that of softmax(y) and $\mathrm{softmax}(s / \tau)$,
    which is ListNet. The loss is at least 0. Lists without a relevant document are excluded. As negative labels mark
    padding, shift the scores of the teacher to at least 0.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

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

    about: ClassVar = _about.AboutLoss(
        name="coupled_rankdistil", citation="Reddi et al. 2021", cost=("S N log N with S samples", "S N")
    )

    def __init__(
        self,
        *,
        sample_size: int = 8,
        topk: int | None = None,
        temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        self.sample_size = _arguments.integer("sample_size", sample_size, least=1)
        self.topk = _arguments.integer_or_none("topk", topk, least=1)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        teacher = labels[:, tf.newaxis] + gumbel.gumbel_noise(labels, self.sample_size, self.seed)
        samples = tf.shape(teacher)
        teacher = tf.reshape(teacher, [-1, samples[2]])
        scores, mask = (tf.repeat(tensor, self.sample_size, axis=0) for tensor in (scores, mask))
        # From the last document to the first, so that the sums run forward; padding comes last.
        order = tf.math.top_k(_lists.fill(-teacher, mask, labels.dtype.min), samples[2]).indices
        # float64, as in ListMLE.
        logits = tf.cast(tf.gather(scores, order, batch_dims=1), tf.float64) / self.temperature
        place = _lists.count(mask, tf.float64) - tf.cast(tf.range(samples[2]), tf.float64)  # 1 for the first
        chosen = place >= 1.0 if self.topk is None else tf.logical_and(place >= 1.0, place <= self.topk)
        weights = tf.cast(chosen, tf.float64)
        highest = tf.stop_gradient(tf.reduce_max(logits, axis=1, keepdims=True))
        logits -= highest
        losses = weighted_log_sums(logits, weights) - tf.reduce_sum(weights * logits, axis=1)
        return tf.cast(tf.reduce_mean(tf.reshape(losses, samples[:2]), axis=1), labels.dtype)
