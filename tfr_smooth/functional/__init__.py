"""Metrics computed from any ranking, and baseline losses: pure functions, one value per list. One file per formula."""

from tfr_smooth.functional.average_precision import AveragePrecision
from tfr_smooth.functional.criterion import Criterion
from tfr_smooth.functional.inputs import list_weights
from tfr_smooth.functional.lambda_loss import LambdaCriterion, lambda_loss
from tfr_smooth.functional.list_ap import ListAPCriterion, list_ap
from tfr_smooth.functional.list_mle import ListMLECriterion, list_mle
from tfr_smooth.functional.list_net import ListNetCriterion, list_net
from tfr_smooth.functional.mean_squared import MeanSquaredCriterion, mean_squared
from tfr_smooth.functional.metric import RankingMetric
from tfr_smooth.functional.ndcg import NDCG, ideal_dcg
from tfr_smooth.functional.pairwise_hinge import PairwiseHingeCriterion, pairwise_hinge
from tfr_smooth.functional.precision import Precision
from tfr_smooth.functional.rank_net import RankNetCriterion, rank_net
from tfr_smooth.functional.reciprocal_rank import ExpectedReciprocalRank, ReciprocalRank

__all__ = [
    "NDCG",
    "AveragePrecision",
    "Criterion",
    "ExpectedReciprocalRank",
    "LambdaCriterion",
    "ListAPCriterion",
    "ListMLECriterion",
    "ListNetCriterion",
    "MeanSquaredCriterion",
    "PairwiseHingeCriterion",
    "Precision",
    "RankNetCriterion",
    "RankingMetric",
    "ReciprocalRank",
    "ideal_dcg",
    "lambda_loss",
    "list_ap",
    "list_mle",
    "list_net",
    "list_weights",
    "mean_squared",
    "pairwise_hinge",
    "rank_net",
]
