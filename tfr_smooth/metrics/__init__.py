"""Exact and smooth Keras ranking metrics, and a table of all metrics by name."""

from tfr_smooth.metrics import measure_metrics
from tfr_smooth.metrics.mean_over_lists import MeanOverLists
from tfr_smooth.metrics.measure_metrics import *  # noqa: F403
from tfr_smooth.metrics.metric_table import (
    NAMES,
    TABLE,
    RankingMetricKey,
    deserialize,
    get,
    hyperparameters,
    serialize,
)
from tfr_smooth.metrics.multi_objective import MultiObjectiveMetric

__all__ = [
    "NAMES",
    "TABLE",
    "MeanOverLists",
    "MultiObjectiveMetric",
    "RankingMetricKey",
    "deserialize",
    "get",
    "hyperparameters",
    "serialize",
]
__all__ += measure_metrics.__all__
