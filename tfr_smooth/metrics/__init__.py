"""Keras metrics, exact and smooth, and the table of them by name."""

from __future__ import annotations

import inspect
from typing import Any

from tfr_smooth import _arguments
from tfr_smooth.functional import parts
from tfr_smooth.metrics.base import MeanOverLists
from tfr_smooth.metrics.exact import ERRMetric, MeanAveragePrecisionMetric, MRRMetric, NDCGMetric, PrecisionMetric
from tfr_smooth.metrics.smooth import (
    ApproxMAPMetric,
    ApproxNDCGMetric,
    ApproxPrecisionMetric,
    FastSortMAPMetric,
    FastSortNDCGMetric,
    FastSortPrecisionMetric,
    NeuralSortMAPMetric,
    NeuralSortNDCGMetric,
    NeuralSortPrecisionMetric,
    SinkhornMAPMetric,
    SinkhornNDCGMetric,
    SinkhornPrecisionMetric,
    SmoothIMAPMetric,
    SmoothINDCGMetric,
    SmoothIPrecisionMetric,
    SmoothMetric,
    SoftNDCGMetric,
    SoftPrecisionMetric,
    SoftSortMAPMetric,
    SoftSortNDCGMetric,
    SoftSortPrecisionMetric,
)

# Name -> class, for flags and pipelines: the exact metrics, and the smooth ones by the names of their losses. What
# stands here is tested by every property test.
TABLE: dict[str, type[MeanOverLists]] = {
    "ndcg": NDCGMetric,
    "precision": PrecisionMetric,
    "map": MeanAveragePrecisionMetric,
    "mrr": MRRMetric,
    "err": ERRMetric,
    "smoothi_ndcg": SmoothINDCGMetric,
    "smoothi_precision": SmoothIPrecisionMetric,
    "smoothi_map": SmoothIMAPMetric,
    "approx_ndcg": ApproxNDCGMetric,
    "approx_precision": ApproxPrecisionMetric,
    "approx_map": ApproxMAPMetric,
    "soft_ndcg": SoftNDCGMetric,
    "soft_precision": SoftPrecisionMetric,
    "neuralsort_ndcg": NeuralSortNDCGMetric,
    "neuralsort_precision": NeuralSortPrecisionMetric,
    "neuralsort_map": NeuralSortMAPMetric,
    "softsort_ndcg": SoftSortNDCGMetric,
    "softsort_precision": SoftSortPrecisionMetric,
    "softsort_map": SoftSortMAPMetric,
    "fastsort_ndcg": FastSortNDCGMetric,
    "fastsort_precision": FastSortPrecisionMetric,
    "fastsort_map": FastSortMAPMetric,
    "sinkhorn_ndcg": SinkhornNDCGMetric,
    "sinkhorn_precision": SinkhornPrecisionMetric,
    "sinkhorn_map": SinkhornMAPMetric,
}

# Every name that `get` takes: the table's, and each smooth ranking with each metric.
NAMES: tuple[str, ...] = (*TABLE, *(name for name in parts.PAIRS if name not in TABLE))


def get(name: str, /, **kwargs: Any) -> MeanOverLists:
    """Makes a metric by its name.

    Args:
      name: A name in `TABLE`, or RANKING_METRIC as in `losses.get`. A smooth metric has the name of its loss.
      **kwargs: The constructor's arguments.

    Returns:
      The metric.

    Raises:
      ValueError: If there is no such metric, or an argument is out of its range.
      TypeError: If the metric has no such argument.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.get("ndcg", topn=10).name
      'ndcg_10'
    """
    if _arguments.choice("name", name, NAMES) in TABLE:
        return TABLE[name](**kwargs)
    ranking, metric, rest = parts.make_pair(name, kwargs)
    return MeanOverLists(ranking, metric, **{"no_relevant": "skip", "name": name, **rest})


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns what `get(name)` takes beside `no_relevant`, `ragged`, `name` and `dtype`, with default values.

    Args:
      name: A name that `get` takes.

    Returns:
      Name -> default value.

    Raises:
      ValueError: If there is no such metric.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.hyperparameters("err")
      {'topn': None, 'max_grade': 4.0}
    """
    if _arguments.choice("name", name, NAMES) in parts.PAIRS:
        return parts.hyperparameters(name)
    found = inspect.signature(TABLE[name].__init__).parameters
    common = inspect.signature(MeanOverLists.__init__).parameters
    return {key: parameter.default for key, parameter in found.items() if key not in common}


__all__ = [
    "ApproxMAPMetric",
    "ApproxNDCGMetric",
    "ApproxPrecisionMetric",
    "ERRMetric",
    "FastSortMAPMetric",
    "FastSortNDCGMetric",
    "FastSortPrecisionMetric",
    "MRRMetric",
    "MeanAveragePrecisionMetric",
    "MeanOverLists",
    "NAMES",
    "NDCGMetric",
    "NeuralSortMAPMetric",
    "NeuralSortNDCGMetric",
    "NeuralSortPrecisionMetric",
    "PrecisionMetric",
    "SinkhornMAPMetric",
    "SinkhornNDCGMetric",
    "SinkhornPrecisionMetric",
    "SmoothIMAPMetric",
    "SmoothINDCGMetric",
    "SmoothIPrecisionMetric",
    "SmoothMetric",
    "SoftNDCGMetric",
    "SoftPrecisionMetric",
    "SoftSortMAPMetric",
    "SoftSortNDCGMetric",
    "SoftSortPrecisionMetric",
    "TABLE",
    "get",
    "hyperparameters",
]
