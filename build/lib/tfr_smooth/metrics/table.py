"""Metrics by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from tfr_smooth import _lookup, registry
from tfr_smooth.metrics.base import MeanOverLists
from tfr_smooth.metrics.named import CLASSES

# Name -> class: the exact metrics by their own names, the smooth ones by those of their losses.
TABLE: dict[str, type[MeanOverLists]] = CLASSES

NAMES: tuple[str, ...] = tuple(TABLE)


@overload
def get(identifier: None, /) -> None: ...


@overload
def get(identifier: str | Mapping[str, Any] | MeanOverLists, /, **arguments: Any) -> MeanOverLists: ...


def get(identifier: Any, /, **arguments: Any) -> MeanOverLists | None:
    """Returns a metric, as `keras.metrics.get` does for the metrics of Keras.

    Args:
      identifier: A name in `TABLE` ("ndcg"; a smooth metric has the name of its loss, "smoothi_ndcg") or of a class
        ("NDCGMetric"); a config as `serialize` returns it; a metric; or None.
      **arguments: The constructor's arguments, with a name.

    Returns:
      The metric; a metric and None as they are.

    Raises:
      ValueError: If there is no such metric, or an argument is out of its range.
      TypeError: If the metric has no such argument.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.get("ndcg", topn=10).name
      'ndcg_10'
    """
    return _lookup.get(identifier, arguments, CLASSES, MeanOverLists, deserialize)


def serialize(metric: MeanOverLists) -> dict[str, Any]:
    """Returns the config of a metric.

    Args:
      metric: The metric.

    Returns:
      A dict that JSON can hold.

    Example:
      >>> from tfr_smooth import metrics
      >>> metrics.deserialize(metrics.serialize(metrics.NDCGMetric(topn=5))).name
      'ndcg_5'
    """
    return _lookup.serialize(metric)


def deserialize(config: Mapping[str, Any]) -> MeanOverLists:
    """Makes the metric of a config.

    Args:
      config: What `serialize` returned.

    Returns:
      The metric.

    Raises:
      ValueError: If its class is unknown.
    """
    return _lookup.deserialize(config, MeanOverLists)


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns the arguments of a metric beside `no_relevant`, `ragged`, `name` and `dtype`, with their defaults.

    Args:
      name: A name in `TABLE`.

    Returns:
      Name -> default value.

    Raises:
      ValueError: If there is no such metric.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.hyperparameters("err")
      {'topn': None, 'max_grade': 4.0}
    """
    registry.check_name("name", name, TABLE)
    if name in registry.PAIRS:
        return registry.PAIRS[name].hyperparameters
    return registry.defaults(registry.METRICS[name].metric)
