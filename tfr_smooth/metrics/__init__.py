"""Keras metrics, exact and smooth, and the table of them by name."""

from __future__ import annotations

from typing import Any

from tfr_smooth import _arguments
from tfr_smooth.metrics.base import MeanOverLists
from tfr_smooth.metrics.exact import MeanAveragePrecisionMetric, NDCGMetric, PrecisionMetric
from tfr_smooth.metrics.smoothi import SmoothIMAPMetric, SmoothINDCGMetric, SmoothIPrecisionMetric

# Name -> class, for flags and pipelines. What stands here is tested by every property test.
TABLE: dict[str, type[MeanOverLists]] = {
    "ndcg": NDCGMetric,
    "precision": PrecisionMetric,
    "map": MeanAveragePrecisionMetric,
    "smoothi_ndcg": SmoothINDCGMetric,
    "smoothi_precision": SmoothIPrecisionMetric,
    "smoothi_map": SmoothIMAPMetric,
}


def get(name: str, /, **kwargs: Any) -> MeanOverLists:
    """Makes a metric by its name in `TABLE`.

    Args:
      name: A name in `TABLE`. A smooth metric has the name of its loss.
      **kwargs: The constructor's arguments.

    Returns:
      The metric.

    Raises:
      ValueError: If there is no such metric, or an argument is out of its range.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.get("ndcg", topn=10).name
      'ndcg_10'
    """
    return TABLE[_arguments.choice("name", name, tuple(TABLE))](**kwargs)


__all__ = [
    "TABLE",
    "MeanAveragePrecisionMetric",
    "MeanOverLists",
    "NDCGMetric",
    "PrecisionMetric",
    "SmoothIMAPMetric",
    "SmoothINDCGMetric",
    "SmoothIPrecisionMetric",
    "get",
]
