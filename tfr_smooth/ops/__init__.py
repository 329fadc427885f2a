"""Exact and smooth rankings: functions from scores and a mask to documents at ranks. One file per relaxation."""

from tfr_smooth.ops.approx import Approx
from tfr_smooth.ops.bounds import smoothi_error_bound, smoothi_metric_error_bound
from tfr_smooth.ops.discounts import ShallowDiscount
from tfr_smooth.ops.exact import ExactRanking
from tfr_smooth.ops.fastsort import FastSort
from tfr_smooth.ops.neuralsort import NeuralSort
from tfr_smooth.ops.rank_distributions import rank_distributions, win_probabilities
from tfr_smooth.ops.ranking import PositionRanking, Ranking, RankSteps, Steps
from tfr_smooth.ops.sinkhorn import Sinkhorn
from tfr_smooth.ops.smoothi import SmoothI
from tfr_smooth.ops.softrank import SoftRank
from tfr_smooth.ops.softsort import SoftSort

__all__ = [
    "Approx",
    "ExactRanking",
    "FastSort",
    "NeuralSort",
    "PositionRanking",
    "RankSteps",
    "Ranking",
    "ShallowDiscount",
    "Sinkhorn",
    "SmoothI",
    "SoftRank",
    "SoftSort",
    "Steps",
    "rank_distributions",
    "smoothi_error_bound",
    "smoothi_metric_error_bound",
    "win_probabilities",
]
