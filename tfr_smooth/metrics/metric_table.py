"""Table of metrics by name; lookup and serialization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from tfr_smooth import _lookup, registry
from tfr_smooth.metrics.mean_over_lists import MeanOverLists
from tfr_smooth.metrics.measure_metrics import CLASSES

# Name -> class. Smooth metrics have the names of their losses.
TABLE: dict[str, type[MeanOverLists]] = CLASSES

NAMES: tuple[str, ...] = tuple(TABLE)


class RankingMetricKey:
    """The names of the exact metrics, as constants. Those of TF-Ranking's class have the same values.

    Example:
      >>> from tfr_smooth import metrics
      >>> metrics.get(metrics.RankingMetricKey.NDCG, topn=5).name
      'ndcg_5'
    """

    MRR = "mrr"
    ARP = "arp"
    NDCG = "ndcg"
    DCG = "dcg"
    PRECISION = "precision"
    RECALL = "recall"
    MAP = "map"
    ERR = "err"
    PRECISION_IA = "precision_ia"
    ORDERED_PAIR_ACCURACY = "ordered_pair_accuracy"
    ALPHA_DCG = "alpha_dcg"
    SPEARMAN = "spearman"
    KENDALL_TAU = "kendall_tau"
    HITS = "hits"


@overload
def get(key: None) -> None: ...


@overload
def get(key: str | Mapping[str, Any] | MeanOverLists, **arguments: Any) -> MeanOverLists: ...


def get(key: Any, **arguments: Any) -> MeanOverLists | None:
    """Returns a metric by name, config or instance, like `keras.metrics.get` for Keras metrics.

    Args:
      key: A name in `TABLE` ("ndcg"; smooth metrics have the names of their losses, such as "smoothi_ndcg") or of a
        class ("NDCGMetric"), with an optional cutoff ("ndcg@10"); a config returned by `serialize`; a metric; or None.
      **arguments: Constructor arguments; only valid with a name.

    Returns:
      The metric. Metrics and None are returned unchanged.

    Raises:
      ValueError: If the metric does not exist, or an argument is out of range.
      TypeError: If the metric has no such argument.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.get("ndcg@10").name
      'ndcg_10'
    """
    return _lookup.get(key, arguments, CLASSES, MeanOverLists, deserialize, argument="key")


def serialize(metric: MeanOverLists) -> dict[str, Any]:
    """Returns the config of a metric.

    Args:
      metric: The metric.

    Returns:
      A dict with the class name and the constructor arguments, serializable as JSON.

    Example:
      >>> from tfr_smooth import metrics
      >>> metrics.deserialize(metrics.serialize(metrics.NDCGMetric(topn=5))).name
      'ndcg_5'
    """
    return _lookup.serialize(metric)


def deserialize(config: Mapping[str, Any]) -> MeanOverLists:
    """Creates a metric from a config.

    Args:
      config: A config returned by `serialize`.

    Returns:
      The metric.

    Raises:
      ValueError: If the class is unknown.

    Example:
      >>> from tfr_smooth import metrics
      >>> metrics.deserialize({"class_name": "tfr_smooth>NDCGMetric", "config": {"topn": 5}}).name
      'ndcg_5'
    """
    return _lookup.deserialize(config, MeanOverLists)


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns the hyperparameters of a metric with their defaults, without `no_relevant`, `ragged`, `name` and `dtype`.

    Args:
      name: A name in `TABLE`.

    Returns:
      Default values by hyperparameter.

    Raises:
      ValueError: If the metric does not exist.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.hyperparameters("err")
      {'topn': None, 'max_grade': 4.0}
    """
    registry.check_name("name", name, TABLE)
    if name in registry.PAIRS:
        return registry.PAIRS[name].hyperparameters
    return registry.defaults(registry.EXACT[name])
