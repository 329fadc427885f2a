"""Smooth rankings from scores and a mask: no labels, no Keras. One file a relaxation."""

from tfr_smooth.ops.approx import Approx
from tfr_smooth.ops.bounds import smoothi_error_bound, smoothi_metric_error_bound
from tfr_smooth.ops.discounts import ShallowDiscount
from tfr_smooth.ops.exact import ExactRanking
from tfr_smooth.ops.positions import PositionRanking
from tfr_smooth.ops.rank_binomial import pairwise_probabilities, rank_distributions
from tfr_smooth.ops.smoothi import SmoothI, smoothi_indicators, smoothi_relevance
from tfr_smooth.ops.softrank import SoftRank, expected_discount

__all__ = [
    "Approx",
    "ExactRanking",
    "PositionRanking",
    "ShallowDiscount",
    "SmoothI",
    "SoftRank",
    "expected_discount",
    "pairwise_probabilities",
    "rank_distributions",
    "smoothi_error_bound",
    "smoothi_indicators",
    "smoothi_metric_error_bound",
    "smoothi_relevance",
]
