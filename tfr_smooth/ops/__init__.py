"""Smooth rankings from scores and a mask: no labels, no Keras. One file a relaxation."""

from tfr_smooth.ops.approx import Approx
from tfr_smooth.ops.bounds import smoothi_error_bound, smoothi_metric_error_bound
from tfr_smooth.ops.discounts import ShallowDiscount
from tfr_smooth.ops.exact import ExactRanking
from tfr_smooth.ops.fastsort import FastSort, fastsort_positions
from tfr_smooth.ops.neuralsort import NeuralSort, neuralsort_indicators, neuralsort_relevance
from tfr_smooth.ops.positions import PositionRanking
from tfr_smooth.ops.rank_binomial import pairwise_probabilities, rank_distributions
from tfr_smooth.ops.sinkhorn import Sinkhorn, sinkhorn_indicators, sinkhorn_positions
from tfr_smooth.ops.smoothi import SmoothI, smoothi_indicators, smoothi_relevance
from tfr_smooth.ops.softrank import SoftRank, expected_discount
from tfr_smooth.ops.softsort import SoftSort, softsort_indicators, softsort_relevance

__all__ = [
    "Approx",
    "ExactRanking",
    "FastSort",
    "NeuralSort",
    "PositionRanking",
    "ShallowDiscount",
    "Sinkhorn",
    "SmoothI",
    "SoftRank",
    "SoftSort",
    "expected_discount",
    "fastsort_positions",
    "neuralsort_indicators",
    "neuralsort_relevance",
    "pairwise_probabilities",
    "rank_distributions",
    "sinkhorn_indicators",
    "sinkhorn_positions",
    "smoothi_error_bound",
    "smoothi_indicators",
    "smoothi_metric_error_bound",
    "smoothi_relevance",
    "softsort_indicators",
    "softsort_relevance",
]
