"""Exact and smooth Keras ranking metrics, and all metrics by name."""

from tfr_smooth.metrics.exact import METRICS, NAMES, RankingMetricKey, get, hyperparameters, of_trec_eval
from tfr_smooth.metrics.exact import AlphaDCGMetric as AlphaDCGMetric
from tfr_smooth.metrics.exact import ARPMetric as ARPMetric
from tfr_smooth.metrics.exact import DCGMetric as DCGMetric
from tfr_smooth.metrics.exact import ERRMetric as ERRMetric
from tfr_smooth.metrics.exact import HitsMetric as HitsMetric
from tfr_smooth.metrics.exact import KendallTauMetric as KendallTauMetric
from tfr_smooth.metrics.exact import MeanAveragePrecisionMetric as MeanAveragePrecisionMetric
from tfr_smooth.metrics.exact import MRRMetric as MRRMetric
from tfr_smooth.metrics.exact import NDCGMetric as NDCGMetric
from tfr_smooth.metrics.exact import OPAMetric as OPAMetric
from tfr_smooth.metrics.exact import PrecisionIAMetric as PrecisionIAMetric
from tfr_smooth.metrics.exact import PrecisionMetric as PrecisionMetric
from tfr_smooth.metrics.exact import RecallMetric as RecallMetric
from tfr_smooth.metrics.exact import SpearmanMetric as SpearmanMetric
from tfr_smooth.metrics.measure_metric import MeasureMetric, MultiObjectiveMetric

__all__ = [
    "METRICS",
    "NAMES",
    "MeasureMetric",
    "MultiObjectiveMetric",
    "RankingMetricKey",
    "get",
    "hyperparameters",
    "of_trec_eval",
]
__all__ += [metric.__name__ for metric in METRICS.values()]
