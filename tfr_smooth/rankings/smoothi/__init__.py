"""SmoothI: the ranking and its error bounds."""

from tfr_smooth.rankings.smoothi.bounds import smoothi_error_bound, smoothi_metric_error_bound
from tfr_smooth.rankings.smoothi.smoothi import SmoothI

__all__ = ["SmoothI", "smoothi_error_bound", "smoothi_metric_error_bound"]
