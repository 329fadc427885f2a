"""Metrics as pure functions: (labels, scores, mask, ranking) -> [batch]. One file a metric."""

from tfr_smooth.functional.average_precision import AveragePrecision
from tfr_smooth.functional.inputs import list_weights, real_documents, to_dense
from tfr_smooth.functional.metric import DocumentRanking, IndicatorRanking, Ranking, RankingMetric
from tfr_smooth.functional.ndcg import NDCG
from tfr_smooth.functional.precision import Precision
from tfr_smooth.functional.reciprocal_rank import ExpectedReciprocalRank, ReciprocalRank

__all__ = [
    "NDCG",
    "AveragePrecision",
    "DocumentRanking",
    "ExpectedReciprocalRank",
    "IndicatorRanking",
    "Precision",
    "Ranking",
    "RankingMetric",
    "ReciprocalRank",
    "list_weights",
    "real_documents",
    "to_dense",
]
