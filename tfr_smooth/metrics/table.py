"""All metrics by name; lookup and serialization."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, overload

from tfr_smooth import _arguments, _lookup
from tfr_smooth.evaluation.trec import checked_measures, parted
from tfr_smooth.metrics.exact import METRICS
from tfr_smooth.metrics.measure_metric import MeasureMetric

_PARTS = {**_lookup.EXACT, **_lookup.COMBINATIONS}
_MAKERS: dict[str, Callable[..., MeasureMetric]] = {
    **METRICS,
    **{name: functools.partial(_PARTS[name].make, MeasureMetric) for name in _PARTS if name not in METRICS},
}

# Smooth metrics have the names of their losses.
NAMES: tuple[str, ...] = tuple(_MAKERS)
# The metrics of trec_eval's measures that have other names here.
_OF_TREC_EVAL = {"recip_rank": "mrr", "P": "precision", "success": "hits"}


class RankingMetricKey:
    """Names of exact metrics, as constants. Those of TF-Ranking's class have the same values.

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
def get(key: str | Mapping[str, Any] | MeasureMetric, **arguments: Any) -> MeasureMetric: ...


def get(key: Any, **arguments: Any) -> MeasureMetric | None:
    """Returns a metric by name, config or instance, like `keras.metrics.get` for Keras metrics.

    `models.FeedForwardScorer` accepts the names in `compile`. Other Keras models only accept those of Keras metrics, so
    use `compile(metrics=[metrics.get("ndcg@10")])`.

    Args:
      key: A name in `NAMES` ("ndcg"; smooth metrics have the names of their losses, such as "smoothi_ndcg") or of a
        class ("NDCGMetric"), with an optional cutoff ("ndcg@10"); a config of `keras.metrics.serialize`; a metric; or
        None.
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
      >>> tfr_smooth.metrics.get("smoothi_ndcg", alpha=10.0).ranking.alpha
      10.0
    """
    return _lookup.get(key, arguments, _MAKERS, MeasureMetric, argument="key")


def of_trec_eval(measure: str, *, argument: str = "measure") -> MeasureMetric:
    """Returns the metric of one of trec_eval's measures, as estimators name them in `select_by` and `evaluate`.

    Args:
      measure: A name that `evaluation.trec_eval` takes, except "Rprec": "ndcg_cut_10", "map", "P_5", ...
      argument: The name of the argument in error messages.

    Returns:
      The metric; NDCG has trec_eval's linear gain.

    Raises:
      ValueError: If the measure is unknown or has no metric.

    Example:
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.of_trec_eval("ndcg_cut_10")
      >>> metric.name, metric.measure.gain
      ('ndcg_10', 'linear')
    """
    (name,) = checked_measures([measure], argument=argument)
    kind, topn = parted(name)
    key = _OF_TREC_EVAL.get(kind, kind.removesuffix("_cut"))
    if key not in METRICS:
        raise ValueError(f"`{argument}` must be a measure with a Keras metric, got {measure!r}.")
    gain = {"gain": "linear"} if key == "ndcg" else {}
    return get(key, topn=topn, **gain)


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns the hyperparameters of a metric with their defaults, without `no_relevant`, `ragged`, `name` and `dtype`.

    Args:
      name: A name in `NAMES`.

    Returns:
      Default values by hyperparameter.

    Raises:
      ValueError: If the metric does not exist.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.metrics.hyperparameters("err")
      {'topn': None, 'max_grade': 4.0}
    """
    return _PARTS[_arguments.choice("name", name, NAMES)].hyperparameters
