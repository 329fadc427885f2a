"""Smooth rankings from scores and a mask: no labels, no Keras. One file a relaxation."""

from tfr_smooth.ops.approx import Approx
from tfr_smooth.ops.bounds import smoothi_error_bound, smoothi_metric_error_bound
from tfr_smooth.ops.exact import ExactRanking
from tfr_smooth.ops.positions import PositionRanking
from tfr_smooth.ops.smoothi import SmoothI, smoothi_indicators, smoothi_relevance

__all__ = [
    "Approx",
    "ExactRanking",
    "PositionRanking",
    "SmoothI",
    "smoothi_error_bound",
    "smoothi_indicators",
    "smoothi_metric_error_bound",
    "smoothi_relevance",
]
