# Written by tools/write_stubs.py from the registry: `make stubs`.
from typing import Any

import tensorflow as tf

from tfr_smooth.losses.ranking_loss import MeasureLoss, RankingLoss
from tfr_smooth.rankings.dcg import Discount

CLASSES: dict[str, type[RankingLoss]]
__all__ = [
    "ApproxERRLoss",
    "ApproxMAPLoss",
    "ApproxMRRLoss",
    "ApproxNDCGLoss",
    "ApproxPrecisionLoss",
    "ApproxRecallLoss",
    "ApproxSpearmanLoss",
    "FastSortERRLoss",
    "FastSortMAPLoss",
    "FastSortMRRLoss",
    "FastSortNDCGLoss",
    "FastSortPrecisionLoss",
    "FastSortRecallLoss",
    "FastSortSpearmanLoss",
    "NeuralSortERRLoss",
    "NeuralSortMAPLoss",
    "NeuralSortMRRLoss",
    "NeuralSortNDCGLoss",
    "NeuralSortPrecisionLoss",
    "NeuralSortRecallLoss",
    "SinkhornERRLoss",
    "SinkhornMAPLoss",
    "SinkhornMRRLoss",
    "SinkhornNDCGLoss",
    "SinkhornPrecisionLoss",
    "SinkhornRecallLoss",
    "SinkhornSpearmanLoss",
    "SmoothIERRLoss",
    "SmoothIMAPLoss",
    "SmoothIMRRLoss",
    "SmoothINDCGLoss",
    "SmoothIPrecisionLoss",
    "SmoothIRecallLoss",
    "SoftERRLoss",
    "SoftMAPLoss",
    "SoftMRRLoss",
    "SoftNDCGLoss",
    "SoftPrecisionLoss",
    "SoftRecallLoss",
    "SoftSortERRLoss",
    "SoftSortMAPLoss",
    "SoftSortMRRLoss",
    "SoftSortNDCGLoss",
    "SoftSortPrecisionLoss",
    "SoftSortRecallLoss",
]

class SmoothINDCGLoss(MeasureLoss):
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
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "smoothi_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIPrecisionLoss(MeasureLoss):
    """1 - P@K of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "smoothi_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIRecallLoss(MeasureLoss):
    """1 - R@K of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "smoothi_recall_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIMAPLoss(MeasureLoss):
    """1 - average precision of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "smoothi_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIMRRLoss(MeasureLoss):
    """1 - reciprocal rank of the SmoothI ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "smoothi_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SmoothIERRLoss(MeasureLoss):
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
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "smoothi_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxNDCGLoss(MeasureLoss):
    """1 - NDCG@K of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "approx_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxPrecisionLoss(MeasureLoss):
    """1 - P@K of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "approx_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxRecallLoss(MeasureLoss):
    """1 - R@K of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "approx_recall_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxMAPLoss(MeasureLoss):
    """1 - average precision of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "approx_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxMRRLoss(MeasureLoss):
    """1 - reciprocal rank of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "approx_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxERRLoss(MeasureLoss):
    """1 - expected reciprocal rank of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "approx_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class ApproxSpearmanLoss(MeasureLoss):
    """1 - Spearman's correlation of the Approx ranking."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "approx_spearman_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftNDCGLoss(MeasureLoss):
    """1 - NDCG@K of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "soft_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftPrecisionLoss(MeasureLoss):
    """1 - P@K of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "soft_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftRecallLoss(MeasureLoss):
    """1 - R@K of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "soft_recall_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftMAPLoss(MeasureLoss):
    """1 - average precision of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "soft_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftMRRLoss(MeasureLoss):
    """1 - reciprocal rank of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "soft_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftERRLoss(MeasureLoss):
    """1 - expected reciprocal rank of the SoftRank ranking."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "soft_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortNDCGLoss(MeasureLoss):
    """1 - NDCG@K of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "neuralsort_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortPrecisionLoss(MeasureLoss):
    """1 - P@K of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "neuralsort_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortRecallLoss(MeasureLoss):
    """1 - R@K of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "neuralsort_recall_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortMAPLoss(MeasureLoss):
    """1 - average precision of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "neuralsort_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortMRRLoss(MeasureLoss):
    """1 - reciprocal rank of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "neuralsort_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class NeuralSortERRLoss(MeasureLoss):
    """1 - expected reciprocal rank of the NeuralSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "neuralsort_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortNDCGLoss(MeasureLoss):
    """1 - NDCG@K of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "softsort_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortPrecisionLoss(MeasureLoss):
    """1 - P@K of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "softsort_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortRecallLoss(MeasureLoss):
    """1 - R@K of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "softsort_recall_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortMAPLoss(MeasureLoss):
    """1 - average precision of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "softsort_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortMRRLoss(MeasureLoss):
    """1 - reciprocal rank of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "softsort_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SoftSortERRLoss(MeasureLoss):
    """1 - expected reciprocal rank of the SoftSort ranking."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "softsort_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortNDCGLoss(MeasureLoss):
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
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "fastsort_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortPrecisionLoss(MeasureLoss):
    """1 - P@K of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "fastsort_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortRecallLoss(MeasureLoss):
    """1 - R@K of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "fastsort_recall_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortMAPLoss(MeasureLoss):
    """1 - average precision of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "fastsort_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortMRRLoss(MeasureLoss):
    """1 - reciprocal rank of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "fastsort_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortERRLoss(MeasureLoss):
    """1 - expected reciprocal rank of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "fastsort_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class FastSortSpearmanLoss(MeasureLoss):
    """1 - Spearman's correlation of the FastSort ranking."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "fastsort_spearman_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornNDCGLoss(MeasureLoss):
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
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_ndcg_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornPrecisionLoss(MeasureLoss):
    """1 - P@K of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_precision_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornRecallLoss(MeasureLoss):
    """1 - R@K of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = 10,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_recall_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornMAPLoss(MeasureLoss):
    """1 - average precision of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_map_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornMRRLoss(MeasureLoss):
    """1 - reciprocal rank of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_mrr_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornERRLoss(MeasureLoss):
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
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_err_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...

class SinkhornSpearmanLoss(MeasureLoss):
    """1 - Spearman's correlation of the Sinkhorn (optimal transport) ranking."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        dtype: Any = None,
        ragged: bool = False,
        name: str | None = "sinkhorn_spearman_loss",
        reduction: str | None = "sum_over_batch_size",
    ) -> None: ...
