"""Exact and smooth Keras ranking metrics, and all metrics by name."""

from tfr_smooth.metrics.exact import (
    ARPMetric,
    DCGMetric,
    ERRMetric,
    HitsMetric,
    KendallTauMetric,
    MeanAveragePrecisionMetric,
    MRRMetric,
    NDCGMetric,
    OPAMetric,
    PrecisionMetric,
    RecallMetric,
    SpearmanMetric,
)
from tfr_smooth.metrics.measure_metric import MeasureMetric
from tfr_smooth.metrics.multi_objective import MultiObjectiveMetric
from tfr_smooth.metrics.subtopics import AlphaDCGMetric, PrecisionIAMetric
from tfr_smooth.metrics.table import NAMES, RankingMetricKey, deserialize, get, hyperparameters, serialize

__all__ = [
    "NAMES",
    "ARPMetric",
    "AlphaDCGMetric",
    "DCGMetric",
    "ERRMetric",
    "HitsMetric",
    "KendallTauMetric",
    "MRRMetric",
    "MeanAveragePrecisionMetric",
    "MeasureMetric",
    "MultiObjectiveMetric",
    "NDCGMetric",
    "OPAMetric",
    "PrecisionIAMetric",
    "PrecisionMetric",
    "RankingMetricKey",
    "RecallMetric",
    "SpearmanMetric",
    "deserialize",
    "get",
    "hyperparameters",
    "serialize",
]
