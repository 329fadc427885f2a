# Written by tools/write_stubs.py from the registry: `make stubs`.
import tensorflow as tf

from tfr_smooth.losses.base import CriterionLoss, MetricLoss, RankingLoss
from tfr_smooth.ops.discounts import Discount

CLASSES: dict[str, type[RankingLoss]]
__all__ = [
    "ApproxERRLoss",
    "ApproxMAPLoss",
    "ApproxMRRLoss",
    "ApproxNDCGLoss",
    "ApproxPrecisionLoss",
    "FastSortERRLoss",
    "FastSortMAPLoss",
    "FastSortMRRLoss",
    "FastSortNDCGLoss",
    "FastSortPrecisionLoss",
    "LambdaLoss",
    "ListAPLoss",
    "ListMLELoss",
    "ListNetLoss",
    "MeanSquaredLoss",
    "NeuralSortERRLoss",
    "NeuralSortMAPLoss",
    "NeuralSortMRRLoss",
    "NeuralSortNDCGLoss",
    "NeuralSortPrecisionLoss",
    "PairwiseHingeLoss",
    "RankNetLoss",
    "SinkhornERRLoss",
    "SinkhornMAPLoss",
    "SinkhornMRRLoss",
    "SinkhornNDCGLoss",
    "SinkhornPrecisionLoss",
    "SmoothIERRLoss",
    "SmoothIMAPLoss",
    "SmoothIMRRLoss",
    "SmoothINDCGLoss",
    "SmoothIPrecisionLoss",
    "SoftERRLoss",
    "SoftMAPLoss",
    "SoftMRRLoss",
    "SoftNDCGLoss",
    "SoftPrecisionLoss",
    "SoftSortERRLoss",
    "SoftSortMAPLoss",
    "SoftSortMRRLoss",
    "SoftSortNDCGLoss",
    "SoftSortPrecisionLoss",
]

class SmoothINDCGLoss(MetricLoss):
    """1 - NDCG@K of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "smoothi_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIPrecisionLoss(MetricLoss):
    """1 - P@K of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "smoothi_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIMAPLoss(MetricLoss):
    """1 - average precision of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        ragged: bool = False,
        name: str | None = "smoothi_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIMRRLoss(MetricLoss):
    """1 - reciprocal rank of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "smoothi_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIERRLoss(MetricLoss):
    """1 - expected reciprocal rank of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        max_grade: float = 4.0,
        ragged: bool = False,
        name: str | None = "smoothi_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxNDCGLoss(MetricLoss):
    """1 - NDCG@K of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "approx_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxPrecisionLoss(MetricLoss):
    """1 - P@K of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "approx_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxMAPLoss(MetricLoss):
    """1 - average precision of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        ragged: bool = False,
        name: str | None = "approx_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxMRRLoss(MetricLoss):
    """1 - reciprocal rank of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "approx_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxERRLoss(MetricLoss):
    """1 - expected reciprocal rank of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        ragged: bool = False,
        name: str | None = "approx_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftNDCGLoss(MetricLoss):
    """1 - NDCG@K of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "soft_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftPrecisionLoss(MetricLoss):
    """1 - P@K of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "soft_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftMAPLoss(MetricLoss):
    """1 - average precision of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        ragged: bool = False,
        name: str | None = "soft_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftMRRLoss(MetricLoss):
    """1 - reciprocal rank of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "soft_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftERRLoss(MetricLoss):
    """1 - expected reciprocal rank of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        ragged: bool = False,
        name: str | None = "soft_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortNDCGLoss(MetricLoss):
    """1 - NDCG@K of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "neuralsort_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortPrecisionLoss(MetricLoss):
    """1 - P@K of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "neuralsort_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortMAPLoss(MetricLoss):
    """1 - average precision of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        ragged: bool = False,
        name: str | None = "neuralsort_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortMRRLoss(MetricLoss):
    """1 - reciprocal rank of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "neuralsort_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortERRLoss(MetricLoss):
    """1 - expected reciprocal rank of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        ragged: bool = False,
        name: str | None = "neuralsort_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortNDCGLoss(MetricLoss):
    """1 - NDCG@K of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "softsort_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortPrecisionLoss(MetricLoss):
    """1 - P@K of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "softsort_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortMAPLoss(MetricLoss):
    """1 - average precision of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        ragged: bool = False,
        name: str | None = "softsort_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortMRRLoss(MetricLoss):
    """1 - reciprocal rank of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "softsort_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortERRLoss(MetricLoss):
    """1 - expected reciprocal rank of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        ragged: bool = False,
        name: str | None = "softsort_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortNDCGLoss(MetricLoss):
    """1 - NDCG@K of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "fastsort_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortPrecisionLoss(MetricLoss):
    """1 - P@K of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "fastsort_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortMAPLoss(MetricLoss):
    """1 - average precision of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        ragged: bool = False,
        name: str | None = "fastsort_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortMRRLoss(MetricLoss):
    """1 - reciprocal rank of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "fastsort_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortERRLoss(MetricLoss):
    """1 - expected reciprocal rank of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        ragged: bool = False,
        name: str | None = "fastsort_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornNDCGLoss(MetricLoss):
    """1 - NDCG@K of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "sinkhorn_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornPrecisionLoss(MetricLoss):
    """1 - P@K of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "sinkhorn_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornMAPLoss(MetricLoss):
    """1 - average precision of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        ragged: bool = False,
        name: str | None = "sinkhorn_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornMRRLoss(MetricLoss):
    """1 - reciprocal rank of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornERRLoss(MetricLoss):
    """1 - expected reciprocal rank of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        ragged: bool = False,
        name: str | None = "sinkhorn_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ListAPLoss(CriterionLoss):
    """1 - average precision of a histogram of the scores."""

    def __init__(
        self,
        *,
        num_bins: int = 20,
        temperature: float = 1.0,
        ragged: bool = False,
        name: str | None = "list_ap_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class LambdaLoss(CriterionLoss):
    """Logistic loss over pairs of documents, weighted by the effect of their order on a metric."""

    def __init__(
        self,
        *,
        metric: str = "ndcg_loss2++",
        sigma: float = 1.0,
        mu: float = 10.0,
        topn: int | None = None,
        ragged: bool = False,
        name: str | None = "lambda_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ListMLELoss(CriterionLoss):
    r"""ListMLE: $\sum_{i=1}^N \alpha_i \left(\log \sum_{k=i}^N e^{s_{\pi(k)}} - s_{\pi(i)}\right)$."""

    def __init__(
        self,
        *,
        position_aware: bool = False,
        ragged: bool = False,
        name: str | None = "list_mle_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ListNetLoss(CriterionLoss):
    r"""ListNet: $-\sum_j \mathrm{softmax}(y)_j \log \mathrm{softmax}(s / \tau)_j$."""

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        ragged: bool = False,
        name: str | None = "list_net_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class MeanSquaredLoss(CriterionLoss):
    r"""Mean squared error of the scores as estimates of the labels: $\frac{1}{N} \sum_j (y_j - s_j)^2$."""

    def __init__(
        self,
        *,
        ragged: bool = False,
        name: str | None = "mean_squared_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class PairwiseHingeLoss(CriterionLoss):
    """Mean hinge loss over the pairs of documents with different labels."""

    def __init__(
        self,
        *,
        margin: float = 1.0,
        ragged: bool = False,
        name: str | None = "pairwise_hinge_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class RankNetLoss(CriterionLoss):
    """Mean logistic loss over the pairs of documents with different labels."""

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        ragged: bool = False,
        name: str | None = "rank_net_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...
