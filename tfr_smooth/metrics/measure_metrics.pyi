# Written by tools/write_stubs.py from the registry: `make stubs`.
from typing import Any

import tensorflow as tf

from tfr_smooth.metrics.mean_over_lists import MeanOverLists
from tfr_smooth.rankings.dcg import Discount, TensorFunction

CLASSES: dict[str, type[MeanOverLists]]
__all__ = [
    "ARPMetric",
    "AlphaDCGMetric",
    "ApproxERRMetric",
    "ApproxMAPMetric",
    "ApproxMRRMetric",
    "ApproxNDCGMetric",
    "ApproxPrecisionMetric",
    "ApproxRecallMetric",
    "ApproxSpearmanMetric",
    "DCGMetric",
    "ERRMetric",
    "FastSortERRMetric",
    "FastSortMAPMetric",
    "FastSortMRRMetric",
    "FastSortNDCGMetric",
    "FastSortPrecisionMetric",
    "FastSortRecallMetric",
    "FastSortSpearmanMetric",
    "HitsMetric",
    "KendallTauMetric",
    "MRRMetric",
    "MeanAveragePrecisionMetric",
    "NDCGMetric",
    "NeuralSortERRMetric",
    "NeuralSortMAPMetric",
    "NeuralSortMRRMetric",
    "NeuralSortNDCGMetric",
    "NeuralSortPrecisionMetric",
    "NeuralSortRecallMetric",
    "OPAMetric",
    "PrecisionIAMetric",
    "PrecisionMetric",
    "RecallMetric",
    "SinkhornERRMetric",
    "SinkhornMAPMetric",
    "SinkhornMRRMetric",
    "SinkhornNDCGMetric",
    "SinkhornPrecisionMetric",
    "SinkhornRecallMetric",
    "SinkhornSpearmanMetric",
    "SmoothIERRMetric",
    "SmoothIMAPMetric",
    "SmoothIMRRMetric",
    "SmoothINDCGMetric",
    "SmoothIPrecisionMetric",
    "SmoothIRecallMetric",
    "SoftERRMetric",
    "SoftMAPMetric",
    "SoftMRRMetric",
    "SoftNDCGMetric",
    "SoftPrecisionMetric",
    "SoftRecallMetric",
    "SoftSortERRMetric",
    "SoftSortMAPMetric",
    "SoftSortMRRMetric",
    "SoftSortNDCGMetric",
    "SoftSortPrecisionMetric",
    "SoftSortRecallMetric",
    "SpearmanMetric",
]

class NDCGMetric(MeanOverLists):
    """Mean NDCG@K."""

    def __init__(
        self,
        *,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class PrecisionMetric(MeanOverLists):
    """Mean P@K."""

    def __init__(
        self,
        *,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class RecallMetric(MeanOverLists):
    """Mean R@K."""

    def __init__(
        self,
        *,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class MeanAveragePrecisionMetric(MeanOverLists):
    """Mean average precision."""

    def __init__(
        self,
        *,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class MRRMetric(MeanOverLists):
    """Mean reciprocal rank."""

    def __init__(
        self,
        *,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class ERRMetric(MeanOverLists):
    """Mean expected reciprocal rank."""

    def __init__(
        self,
        *,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class SpearmanMetric(MeanOverLists):
    """Mean Spearman's correlation."""

    def __init__(
        self,
        *,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class HitsMetric(MeanOverLists):
    """Mean Hits@K."""

    def __init__(
        self,
        *,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class DCGMetric(MeanOverLists):
    """Mean DCG@K."""

    def __init__(
        self,
        *,
        topn: int | None = None,
        gain_fn: TensorFunction | None = None,
        rank_discount_fn: TensorFunction | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class ARPMetric(MeanOverLists):
    """Mean average relevance position."""

    def __init__(
        self,
        *,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class OPAMetric(MeanOverLists):
    """Mean ordered pair accuracy."""

    def __init__(
        self,
        *,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class KendallTauMetric(MeanOverLists):
    """Mean Kendall's correlation."""

    def __init__(
        self,
        *,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class AlphaDCGMetric(MeanOverLists):
    """Mean alpha-DCG@K."""

    def __init__(
        self,
        *,
        topn: int | None = None,
        alpha: float = 0.5,
        rank_discount_fn: TensorFunction | None = None,
        seed: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class PrecisionIAMetric(MeanOverLists):
    """Mean P-IA@K."""

    def __init__(
        self,
        *,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None: ...

class SmoothINDCGMetric(MeanOverLists):
    """Mean NDCG@K of the SmoothI ranking; see `losses.SmoothINDCGLoss`."""

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
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "smoothi_ndcg",
        dtype: Any = None,
    ) -> None: ...

class SmoothIPrecisionMetric(MeanOverLists):
    """Mean P@K of the SmoothI ranking; see `losses.SmoothIPrecisionLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "smoothi_precision",
        dtype: Any = None,
    ) -> None: ...

class SmoothIRecallMetric(MeanOverLists):
    """Mean R@K of the SmoothI ranking; see `losses.SmoothIRecallLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "smoothi_recall",
        dtype: Any = None,
    ) -> None: ...

class SmoothIMAPMetric(MeanOverLists):
    """Mean average precision of the SmoothI ranking; see `losses.SmoothIMAPLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "smoothi_map",
        dtype: Any = None,
    ) -> None: ...

class SmoothIMRRMetric(MeanOverLists):
    """Mean reciprocal rank of the SmoothI ranking; see `losses.SmoothIMRRLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "smoothi_mrr",
        dtype: Any = None,
    ) -> None: ...

class SmoothIERRMetric(MeanOverLists):
    """Mean expected reciprocal rank of the SmoothI ranking; see `losses.SmoothIERRLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        shift: bool = True,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "smoothi_err",
        dtype: Any = None,
    ) -> None: ...

class ApproxNDCGMetric(MeanOverLists):
    """Mean NDCG@K of the Approx ranking; see `losses.ApproxNDCGLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "approx_ndcg",
        dtype: Any = None,
    ) -> None: ...

class ApproxPrecisionMetric(MeanOverLists):
    """Mean P@K of the Approx ranking; see `losses.ApproxPrecisionLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "approx_precision",
        dtype: Any = None,
    ) -> None: ...

class ApproxRecallMetric(MeanOverLists):
    """Mean R@K of the Approx ranking; see `losses.ApproxRecallLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "approx_recall",
        dtype: Any = None,
    ) -> None: ...

class ApproxMAPMetric(MeanOverLists):
    """Mean average precision of the Approx ranking; see `losses.ApproxMAPLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "approx_map",
        dtype: Any = None,
    ) -> None: ...

class ApproxMRRMetric(MeanOverLists):
    """Mean reciprocal rank of the Approx ranking; see `losses.ApproxMRRLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "approx_mrr",
        dtype: Any = None,
    ) -> None: ...

class ApproxERRMetric(MeanOverLists):
    """Mean expected reciprocal rank of the Approx ranking; see `losses.ApproxERRLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "approx_err",
        dtype: Any = None,
    ) -> None: ...

class ApproxSpearmanMetric(MeanOverLists):
    """Mean Spearman's correlation of the Approx ranking; see `losses.ApproxSpearmanLoss`."""

    def __init__(
        self,
        *,
        alpha: float | tf.Variable = 10.0,
        beta: float = 10.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "approx_spearman",
        dtype: Any = None,
    ) -> None: ...

class SoftNDCGMetric(MeanOverLists):
    """Mean NDCG@K of the SoftRank ranking; see `losses.SoftNDCGLoss`."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "soft_ndcg",
        dtype: Any = None,
    ) -> None: ...

class SoftPrecisionMetric(MeanOverLists):
    """Mean P@K of the SoftRank ranking; see `losses.SoftPrecisionLoss`."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "soft_precision",
        dtype: Any = None,
    ) -> None: ...

class SoftRecallMetric(MeanOverLists):
    """Mean R@K of the SoftRank ranking; see `losses.SoftRecallLoss`."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "soft_recall",
        dtype: Any = None,
    ) -> None: ...

class SoftMAPMetric(MeanOverLists):
    """Mean average precision of the SoftRank ranking; see `losses.SoftMAPLoss`."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "soft_map",
        dtype: Any = None,
    ) -> None: ...

class SoftMRRMetric(MeanOverLists):
    """Mean reciprocal rank of the SoftRank ranking; see `losses.SoftMRRLoss`."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "soft_mrr",
        dtype: Any = None,
    ) -> None: ...

class SoftERRMetric(MeanOverLists):
    """Mean expected reciprocal rank of the SoftRank ranking; see `losses.SoftERRLoss`."""

    def __init__(
        self,
        *,
        sigma: float | tf.Variable = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "soft_err",
        dtype: Any = None,
    ) -> None: ...

class NeuralSortNDCGMetric(MeanOverLists):
    """Mean NDCG@K of the NeuralSort ranking; see `losses.NeuralSortNDCGLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "neuralsort_ndcg",
        dtype: Any = None,
    ) -> None: ...

class NeuralSortPrecisionMetric(MeanOverLists):
    """Mean P@K of the NeuralSort ranking; see `losses.NeuralSortPrecisionLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "neuralsort_precision",
        dtype: Any = None,
    ) -> None: ...

class NeuralSortRecallMetric(MeanOverLists):
    """Mean R@K of the NeuralSort ranking; see `losses.NeuralSortRecallLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "neuralsort_recall",
        dtype: Any = None,
    ) -> None: ...

class NeuralSortMAPMetric(MeanOverLists):
    """Mean average precision of the NeuralSort ranking; see `losses.NeuralSortMAPLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "neuralsort_map",
        dtype: Any = None,
    ) -> None: ...

class NeuralSortMRRMetric(MeanOverLists):
    """Mean reciprocal rank of the NeuralSort ranking; see `losses.NeuralSortMRRLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "neuralsort_mrr",
        dtype: Any = None,
    ) -> None: ...

class NeuralSortERRMetric(MeanOverLists):
    """Mean expected reciprocal rank of the NeuralSort ranking; see `losses.NeuralSortERRLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "neuralsort_err",
        dtype: Any = None,
    ) -> None: ...

class SoftSortNDCGMetric(MeanOverLists):
    """Mean NDCG@K of the SoftSort ranking; see `losses.SoftSortNDCGLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "softsort_ndcg",
        dtype: Any = None,
    ) -> None: ...

class SoftSortPrecisionMetric(MeanOverLists):
    """Mean P@K of the SoftSort ranking; see `losses.SoftSortPrecisionLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "softsort_precision",
        dtype: Any = None,
    ) -> None: ...

class SoftSortRecallMetric(MeanOverLists):
    """Mean R@K of the SoftSort ranking; see `losses.SoftSortRecallLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "softsort_recall",
        dtype: Any = None,
    ) -> None: ...

class SoftSortMAPMetric(MeanOverLists):
    """Mean average precision of the SoftSort ranking; see `losses.SoftSortMAPLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "softsort_map",
        dtype: Any = None,
    ) -> None: ...

class SoftSortMRRMetric(MeanOverLists):
    """Mean reciprocal rank of the SoftSort ranking; see `losses.SoftSortMRRLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "softsort_mrr",
        dtype: Any = None,
    ) -> None: ...

class SoftSortERRMetric(MeanOverLists):
    """Mean expected reciprocal rank of the SoftSort ranking; see `losses.SoftSortERRLoss`."""

    def __init__(
        self,
        *,
        temperature: float | tf.Variable = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "softsort_err",
        dtype: Any = None,
    ) -> None: ...

class FastSortNDCGMetric(MeanOverLists):
    """Mean NDCG@K of the FastSort ranking; see `losses.FastSortNDCGLoss`."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "fastsort_ndcg",
        dtype: Any = None,
    ) -> None: ...

class FastSortPrecisionMetric(MeanOverLists):
    """Mean P@K of the FastSort ranking; see `losses.FastSortPrecisionLoss`."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "fastsort_precision",
        dtype: Any = None,
    ) -> None: ...

class FastSortRecallMetric(MeanOverLists):
    """Mean R@K of the FastSort ranking; see `losses.FastSortRecallLoss`."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "fastsort_recall",
        dtype: Any = None,
    ) -> None: ...

class FastSortMAPMetric(MeanOverLists):
    """Mean average precision of the FastSort ranking; see `losses.FastSortMAPLoss`."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "fastsort_map",
        dtype: Any = None,
    ) -> None: ...

class FastSortMRRMetric(MeanOverLists):
    """Mean reciprocal rank of the FastSort ranking; see `losses.FastSortMRRLoss`."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "fastsort_mrr",
        dtype: Any = None,
    ) -> None: ...

class FastSortERRMetric(MeanOverLists):
    """Mean expected reciprocal rank of the FastSort ranking; see `losses.FastSortERRLoss`."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "fastsort_err",
        dtype: Any = None,
    ) -> None: ...

class FastSortSpearmanMetric(MeanOverLists):
    """Mean Spearman's correlation of the FastSort ranking; see `losses.FastSortSpearmanLoss`."""

    def __init__(
        self,
        *,
        regularization_strength: float | tf.Variable = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "fastsort_spearman",
        dtype: Any = None,
    ) -> None: ...

class SinkhornNDCGMetric(MeanOverLists):
    """Mean NDCG@K of the Sinkhorn (optimal transport) ranking; see `losses.SinkhornNDCGLoss`."""

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
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "sinkhorn_ndcg",
        dtype: Any = None,
    ) -> None: ...

class SinkhornPrecisionMetric(MeanOverLists):
    """Mean P@K of the Sinkhorn (optimal transport) ranking; see `losses.SinkhornPrecisionLoss`."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "sinkhorn_precision",
        dtype: Any = None,
    ) -> None: ...

class SinkhornRecallMetric(MeanOverLists):
    """Mean R@K of the Sinkhorn (optimal transport) ranking; see `losses.SinkhornRecallLoss`."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "sinkhorn_recall",
        dtype: Any = None,
    ) -> None: ...

class SinkhornMAPMetric(MeanOverLists):
    """Mean average precision of the Sinkhorn (optimal transport) ranking; see `losses.SinkhornMAPLoss`."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "sinkhorn_map",
        dtype: Any = None,
    ) -> None: ...

class SinkhornMRRMetric(MeanOverLists):
    """Mean reciprocal rank of the Sinkhorn (optimal transport) ranking; see `losses.SinkhornMRRLoss`."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "sinkhorn_mrr",
        dtype: Any = None,
    ) -> None: ...

class SinkhornERRMetric(MeanOverLists):
    """Mean expected reciprocal rank of the Sinkhorn (optimal transport) ranking; see `losses.SinkhornERRLoss`."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "sinkhorn_err",
        dtype: Any = None,
    ) -> None: ...

class SinkhornSpearmanMetric(MeanOverLists):
    """Mean Spearman's correlation of the Sinkhorn (optimal transport) ranking; see `losses.SinkhornSpearmanLoss`."""

    def __init__(
        self,
        *,
        epsilon: float | tf.Variable = 0.1,
        threshold: float = 0.001,
        max_iterations: int = 2000,
        beta: float = 10.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "sinkhorn_spearman",
        dtype: Any = None,
    ) -> None: ...
