"""Metrics as pure functions: (labels, scores, mask, ranking) -> [batch]. One file a metric."""

from tfr_smooth.functional.average_precision import AveragePrecision
from tfr_smooth.functional.inputs import list_weights, real_documents, to_dense
from tfr_smooth.functional.metric import Ranking, RankingMetric
from tfr_smooth.functional.ndcg import NDCG
from tfr_smooth.functional.precision import Precision

__all__ = [
    "NDCG",
    "AveragePrecision",
    "Precision",
    "Ranking",
    "RankingMetric",
    "list_weights",
    "real_documents",
    "to_dense",
]
