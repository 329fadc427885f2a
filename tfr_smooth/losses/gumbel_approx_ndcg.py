"""The ApproxNDCG loss of scores with Gumbel noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tfr_smooth import _about, measures, rankings
from tfr_smooth.losses.gumbel import SampledLoss
from tfr_smooth.losses.ranking_loss import LossOptions, MeasureLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class GumbelApproxNDCGLoss(SampledLoss):
    r"""Mean ApproxNDCG loss over scores with Gumbel noise: `GumbelLoss(ApproxNDCGLoss())`.

    $$\frac{1}{S} \sum_{a=1}^S \left(1 - \mathrm{ApproxNDCG}(y, (s + \epsilon^a) / \beta)\right)$$

    (Bruch et al., "A Stochastic Treatment of Learning to Rank Scoring Functions", WSDM 2020; TF-Ranking's
    `GumbelApproxNDCGLoss` plus 1.) The noise $\epsilon^a$ is drawn at each call. The loss is in [0, 1]. Lists without a
    relevant document are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

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

    about: ClassVar = _about.AboutLoss(
        name="gumbel_approx_ndcg", citation="Bruch et al. 2020", cost=("S N^2 with S samples", "S N")
    )

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
