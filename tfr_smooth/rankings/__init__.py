"""Exact and smooth rankings: functions from scores and a mask to documents at ranks. Each one registers itself."""

from tfr_smooth.rankings.approx import Approx as Approx
from tfr_smooth.rankings.dcg import ShallowDiscount
from tfr_smooth.rankings.exact import ExactRanking
from tfr_smooth.rankings.fastsort import FastSort as FastSort
from tfr_smooth.rankings.lapsum import LapSum as LapSum
from tfr_smooth.rankings.neuralsort import NeuralSort as NeuralSort
from tfr_smooth.rankings.rank_distributions import win_probabilities
from tfr_smooth.rankings.ranking import RANKINGS, PositionRanking, Ranking, RankSteps, Steps
from tfr_smooth.rankings.sinkhorn import Sinkhorn as Sinkhorn
from tfr_smooth.rankings.smoothi import SmoothI as SmoothI
from tfr_smooth.rankings.smoothi_bounds import smoothi_error_bound, smoothi_metric_error_bound
from tfr_smooth.rankings.softrank import SoftRank as SoftRank
from tfr_smooth.rankings.softsort import SoftSort as SoftSort
from tfr_smooth.rankings.sorting_network import SortingNetwork as SortingNetwork

__all__ = [
    "RANKINGS",
    "ExactRanking",
    "PositionRanking",
    "RankSteps",
    "Ranking",
    "ShallowDiscount",
    "Steps",
    "smoothi_error_bound",
    "smoothi_metric_error_bound",
    "win_probabilities",
]
__all__ += [ranking.__name__ for ranking in RANKINGS.values()]
