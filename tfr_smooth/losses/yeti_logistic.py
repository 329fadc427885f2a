"""YetiRank's logistic loss of neighbors in sampled rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tfr_smooth import _about
from tfr_smooth.losses.gumbel import SampledLoss
from tfr_smooth.losses.lambda_weights import LambdaWeight, YetiDCGLambdaWeight
from tfr_smooth.losses.pairwise_logistic import PairwiseLogisticLoss
from tfr_smooth.losses.ranking_loss import LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class YetiLogisticLoss(SampledLoss):
    r"""Mean logistic loss of neighbors in rankings by scores with Gumbel noise.

    $$\frac{1}{S N} \sum_{a=1}^S \sum_{i, j: y_i > y_j} w^a_{ij} \log(1 + e^{-(s^a_i - s^a_j) / \tau}), \qquad
      s^a = \frac{s + \epsilon^a}{\beta}$$

    (Lyzhin et al., "Which Tricks are Important for Learning to Rank?", ICML 2023, after Gulin et al., "Winning the
    Transfer Learning Track of Yahoo!'s Learning to Rank Challenge with YetiRank", 2011; TF-Ranking's
    `YetiLogisticLoss`.) N is the number of documents in the list. $w^a$ is the weight in the ranking by $s^a$, by
    default 0 except for neighbors. The noise $\epsilon^a$ is drawn at each call. Lists with only one distinct label are
    excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

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

    about: ClassVar = _about.AboutLoss(
        name="yeti_logistic", citation="Lyzhin et al. 2023", cost=("S N^2 with S samples", "S N^2")
    )

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
