"""Losses that are one minus a measure of a smooth ranking."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _lookup, _serialization
from tfr_smooth.losses.ranking_loss import HIGHEST_GRADE, LOSSES, LossOptions, RankingLoss
from tfr_smooth.measures import NDCG, AveragePrecision, Measure, Precision, ReciprocalRank
from tfr_smooth.rankings import Approx, Ranking, SmoothI, SoftRank
from tfr_smooth.rankings.dcg import Discount
from tfr_smooth.rankings.ranking import DocumentRanking


@_serialization.register
class MeasureLoss(RankingLoss):
    r"""1 - measure for any measure of any ranking: $1 - m(y, s; \mathrm{ranking})$.

    Losses of the rankings and measures of this library also have names: `losses.get("neuralsort_err@10",
    temperature=0.5)` is `MeasureLoss(rankings.NeuralSort(temperature=0.5), measures.ExpectedReciprocalRank(topn=10))`.
    The loss is at most 1. It may be below 0, as a smooth ranking may place a document at more than one rank.
    Lists without a relevant document are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none". Weights of documents become one weight per list (`list_weights`).

    Args:
      ranking: A smooth ranking, such as `rankings.SmoothI(alpha=10.0)` or `rankings.Approx()`.
      measure: A measure of which higher is better, such as `measures.NDCG(topn=10)`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the ranking. The config contains the ranking and the measure. To load models with a
    ranking or measure of your own, make it a frozen dataclass and register it with
    `tf.keras.utils.register_keras_serializable`.

    Attributes:
      ranking: The ranking.
      measure: The measure; the loss is one minus its value under `ranking`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses, measures, rankings
      >>> loss = losses.MeasureLoss(rankings.Approx(alpha=100.0), measures.AveragePrecision())
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 2))
      0.17
    """

    def __init__(self, ranking: Ranking, measure: Measure, **options: Unpack[LossOptions]) -> None:
        self.ranking = _arguments.instance("ranking", ranking, Ranking)
        self.measure = _arguments.instance("measure", measure, Measure)
        if measure.lower_is_better:  # The loss would rank the relevant documents last.
            raise ValueError(f"`measure` must be one of which higher is better, got {measure}.")
        self.shift_invariant = ranking.shift_invariant
        # The gain of a document, unlike that of the mean label at a rank, has a gradient for all labels.
        if isinstance(measure, NDCG) and measure.gain == "exponential" and not isinstance(ranking, DocumentRanking):
            self.highest_label = HIGHEST_GRADE
        super().__init__(**options)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch]: 1 - measure."""
        return 1.0 - self.measure.compute(labels, scores, mask, self.ranking)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists without a relevant document."""
        return self.measure.has_relevant(labels, mask)

    def _default_name(self) -> str:
        """Returns the name of the combination and "_loss", such as "smoothi_ndcg_loss"."""
        name = _lookup.name_of(self.ranking, self.measure)
        return super()._default_name() if name is None else f"{name}_loss"


class _NamedLoss(MeasureLoss):
    """Base class of measure losses with the arguments of ranking and measure in place of the two."""

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self.ranking.get_config(), **self.measure.get_config(), **super().get_config()}


@LOSSES.register("smoothi_ndcg")
class SmoothINDCGLoss(_NamedLoss):
    r"""1 - NDCG@K of the SmoothI ranking.

    $$1 - \frac{1}{N_K} \sum_{r=1}^K \frac{2^{y_r} - 1}{\log_2(r + 1)}, \qquad y_r = \sum_j rel_j I^r_j, \quad
      I^r_j = \mathrm{softmax}_j(\alpha S_j \, \mathrm{sg}[\prod_{l<r} (1 - I^l_j - \delta)])$$

    (Thonet et al. 2021, arXiv:2105.00942, Eq. 7, 9 and 12.) `MeasureLoss(rankings.SmoothI(...), measures.NDCG(...))`;
    see `MeasureLoss` for the labels and scores, the range, and excluded lists. Weights of documents become one weight
    per list (`list_weights`).

    Args:
      alpha: Inverse temperature, > 0. With 1, training needs more steps or a higher learning rate than with 10 or 30
        (docs/relaxations/smoothi.md); the paper searches {0.1, 1, 10, 100}. A number or a non-trainable `tf.Variable`.
      delta: The constant of Eq. 7, in (0, 0.5).
      stop_gradient: Whether no gradient flows through the product (Eq. 9).
      shift: Whether the lowest score of the list is subtracted from its scores, which the formula needs to be positive.
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1, "linear" for y, for labels above 31, where the former has hardly a gradient.
      discount: The discount of a rank; see `measures.NDCG`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(min(K, 80) N), memory O(N + K) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.SmoothINDCGLoss(alpha=1e4)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.34
    """

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        **options: Unpack[LossOptions],
    ) -> None:
        ranking = SmoothI(alpha=alpha, delta=delta, stop_gradient=stop_gradient, shift=shift)
        super().__init__(ranking, NDCG(topn=topn, gain=gain, discount=discount), **options)


@LOSSES.register("smoothi_precision")
class SmoothIPrecisionLoss(_NamedLoss):
    r"""1 - P@K of the SmoothI ranking.

    $$1 - \frac{1}{K} \sum_{r=1}^K y_r, \qquad y_r = \sum_j [rel_j \ge 1] \, I^r_j$$

    (Thonet et al. 2021, arXiv:2105.00942, Eq. 7, 9 and 10.) `MeasureLoss(rankings.SmoothI(...),
    measures.Precision(...))`; see `MeasureLoss` for the labels and scores, the range, and excluded lists. Weights of
    documents become one weight per list (`list_weights`).

    Args:
      alpha: Inverse temperature; see `SmoothINDCGLoss`.
      delta: See `SmoothINDCGLoss`.
      stop_gradient: See `SmoothINDCGLoss`.
      shift: See `SmoothINDCGLoss`.
      topn: The cutoff K, >= 1; None for the number of real documents in the list.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(min(K, 80) N), memory O(N + K) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.SmoothIPrecisionLoss(alpha=1e4, topn=2)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.5
    """

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = 10,
        **options: Unpack[LossOptions],
    ) -> None:
        ranking = SmoothI(alpha=alpha, delta=delta, stop_gradient=stop_gradient, shift=shift)
        super().__init__(ranking, Precision(topn=topn), **options)


@LOSSES.register("smoothi_map")
class SmoothIMAPLoss(_NamedLoss):
    r"""1 - average precision of the SmoothI ranking.

    $$1 - \frac{1}{R} \sum_{r=1}^K y_r \frac{1}{r} \sum_{l=1}^r y_l, \qquad y_r = \sum_j [rel_j \ge 1] \, I^r_j$$

    (Thonet et al. 2021, arXiv:2105.00942, Eq. 7, 9 and 11.) `MeasureLoss(rankings.SmoothI(...),
    measures.AveragePrecision(...))`; see `MeasureLoss` for the labels and scores, the range, and excluded lists.
    Weights of documents become one weight per list (`list_weights`).

    Args:
      alpha: Inverse temperature; see `SmoothINDCGLoss`.
      delta: See `SmoothINDCGLoss`.
      stop_gradient: See `SmoothINDCGLoss`.
      shift: See `SmoothINDCGLoss`.
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(min(K, 200) N), memory O(N + K) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.SmoothIMAPLoss(alpha=1e4)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.42
    """

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        ranking = SmoothI(alpha=alpha, delta=delta, stop_gradient=stop_gradient, shift=shift)
        super().__init__(ranking, AveragePrecision(topn=topn), **options)


@LOSSES.register("soft_ndcg")
class SoftNDCGLoss(_NamedLoss):
    r"""1 - SoftNDCG: NDCG@K of SoftRank's rank distributions.

    $$1 - \frac{1}{N_K} \sum_j (2^{rel_j} - 1) \, E[D(r_j)], \qquad
      E[D(r_j)] = \sum_{r=0}^{K-1} \frac{p_j(r)}{\log_2(2 + r)}$$

    where document i is ranked above document j with the probability $\Phi((s_i - s_j) / (\sigma \sqrt 2))$ (Taylor et
    al., WSDM 2008, Eq. 9 to 15). `MeasureLoss(rankings.SoftRank(...), measures.NDCG(...))`; see `MeasureLoss` for the
    labels and scores, the range, and excluded lists. Weights of documents become one weight per list (`list_weights`).

    Args:
      sigma: Standard deviation of a score, > 0; the paper searches powers of ten from 1e-4 to 1. A number or a
        non-trainable `tf.Variable`.
      distribution: "binomial" or "normal"; see `rankings.SoftRank`.
      sinkhorn_steps: The number of Sinkhorn steps, >= 0; see `rankings.SoftRank`.
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1, "linear" for y.
      discount: The discount of a rank; see `measures.NDCG`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(20 N^2), with a cutoff O(K N^2), memory O(N^2) per list; with a normal distribution or Sinkhorn steps, those
    of `rankings.SoftRank`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.SoftNDCGLoss(sigma=1e-3)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.34
    """

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        distribution: str = "binomial",
        sinkhorn_steps: int = 0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        **options: Unpack[LossOptions],
    ) -> None:
        ranking = SoftRank(sigma=sigma, distribution=distribution, sinkhorn_steps=sinkhorn_steps)
        super().__init__(ranking, NDCG(topn=topn, gain=gain, discount=discount), **options)


@LOSSES.register("approx_ndcg")
class ApproxNDCGLoss(_NamedLoss):
    r"""1 - NDCG@K of the Approx ranking.

    $$1 - \frac{1}{N_K} \sum_j \frac{2^{rel_j} - 1}{\log_2(1 + \pi_j)} \, \sigma(\beta (K + \tfrac12 - \pi_j)), \qquad
      \pi_j = 1 + \sum_{i \ne j} \sigma(\alpha (s_i - s_j))$$

    (Qin, Liu, Li 2010; Bruch et al., SIGIR 2019, Eq. 5. Without a cutoff, the last factor is 1.)
    `MeasureLoss(rankings.Approx(...), measures.NDCG(...))`; see `MeasureLoss` for the labels and scores, the range, and
    excluded lists. Weights of documents become one weight per list (`list_weights`).

    Args:
      alpha: Inverse temperature of the positions, > 0; the papers search {0.1, 1, 10, 100}. A number or a non-trainable
        `tf.Variable`.
      beta: Inverse temperature of the comparison with the cutoff, > 0.
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1, "linear" for y.
      discount: The discount of a rank; see `measures.NDCG`.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N^2), memory O(N) per list (O(N^2) where TensorFlow has no XLA).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.ApproxNDCGLoss(alpha=1e3)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.34
    """

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(Approx(alpha=alpha, beta=beta), NDCG(topn=topn, gain=gain, discount=discount), **options)


@LOSSES.register("approx_mrr")
class ApproxMRRLoss(_NamedLoss):
    r"""1 - reciprocal rank of the Approx ranking.

    $$1 - \sum_j \frac{rel_j}{\pi_j} \, \sigma(\beta (K + \tfrac12 - \pi_j)) \prod_i (1 - rel_i A_{ji}), \qquad
      A_{ji} = \sigma(\beta (\pi_j - \tfrac12 - \pi_i))$$

    where $rel_j$ is 1 for labels >= 1 and $\pi_j$ is as for `ApproxNDCGLoss` (Qin, Liu, Li 2010). Without a cutoff, the
    factor with K is 1. `MeasureLoss(rankings.Approx(...), measures.ReciprocalRank(...))`; see `MeasureLoss` for the
    labels and scores, the range, and excluded lists. Weights of documents become one weight per list (`list_weights`).

    Args:
      alpha: Inverse temperature of the positions; see `ApproxNDCGLoss`.
      beta: Inverse temperature of the comparisons of positions, > 0.
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.ApproxMRRLoss(alpha=1e3, beta=1e3)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.5
    """

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(Approx(alpha=alpha, beta=beta), ReciprocalRank(topn=topn), **options)
