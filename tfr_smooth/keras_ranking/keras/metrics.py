"""The namespace `tfr.keras.metrics`: all names of `tfr_smooth.metrics`, and `get` with TF-Ranking's arguments."""

from __future__ import annotations

from typing import Any

from tfr_smooth import metrics
from tfr_smooth.keras_ranking.keras import utils
from tfr_smooth.metrics import *  # noqa: F403

__all__ = [*metrics.__all__, "default_keras_metrics"]

# TF-Ranking's argument -> ours, and the values that both have.
_FUNCTIONS: dict[str, tuple[str, dict[Any, str]]] = {
    "gain_fn": ("gain", {utils.pow_minus_1: "exponential", utils.identity: "linear"}),
    "rank_discount_fn": ("discount", {utils.log2_inverse: "log2"}),
}


def get(
    key: str, name: str | None = None, dtype: Any = None, topn: int | None = None, **kwargs: Any
) -> metrics.MeanOverLists:
    """Creates a metric, with the arguments and defaults of TF-Ranking's `get`.

    Args:
      key: A name of TF-Ranking ("ndcg"), or another name that `tfr_smooth.metrics.get` takes ("smoothi_ndcg").
      name: Name of the metric. None uses its default.
      dtype: Type of the metric. None uses Keras's default.
      topn: Cutoff, >= 1. None for no cutoff, also for metrics of this library that have one by default.
      **kwargs: Further arguments of the metric, such as `ragged`. `gain_fn` and `rank_discount_fn` accept
        `tfr.keras.utils.pow_minus_1` or `identity`, and `log2_inverse`.

    Returns:
      The metric.

    Raises:
      ValueError: If the metric does not exist, or an argument is out of range.
      TypeError: If the metric has no such argument.

    Example:
      >>> from tfr_smooth import keras_ranking as tfr
      >>> tfr.keras.metrics.get(key="ndcg", name="metric/ndcg_5", topn=5).name
      'metric/ndcg_5'
      >>> print(tfr.keras.metrics.get(key="precision").get_config()["topn"])
      None
    """
    if topn is not None or (key in metrics.NAMES and metrics.hyperparameters(key).get("topn") is not None):
        kwargs["topn"] = topn
    for theirs in _FUNCTIONS.keys() & kwargs.keys():
        ours, known = _FUNCTIONS[theirs]
        function = kwargs.pop(theirs)
        if function is not None and function not in known:
            names = " or ".join(f"tfr.keras.utils.{each.__name__}" for each in known)
            raise ValueError(f"`{theirs}` must be {names} (or pass `{ours}`), got {function!r}.")
        kwargs.update({ours: known[function]} if function is not None else {})
    return metrics.get(key, name=name, dtype=dtype, **kwargs)


def default_keras_metrics(**kwargs: Any) -> list[metrics.MeanOverLists]:
    """Creates the metrics that TF-Ranking reports by default, named "metric/ndcg_1" and so on.

    Args:
      **kwargs: Arguments of all metrics, such as `ragged`.

    Returns:
      NDCG at 1, 3, 5 and 10, ARP, ordered pair accuracy, MRR, precision, MAP, DCG and NDCG.

    Example:
      >>> from tfr_smooth import keras_ranking as tfr
      >>> [metric.name for metric in tfr.keras.metrics.default_keras_metrics()][:5]
      ['metric/ndcg_1', 'metric/ndcg_3', 'metric/ndcg_5', 'metric/ndcg_10', 'metric/arp']
    """
    cut = [get("ndcg", f"metric/ndcg_{topn}", topn=topn, **kwargs) for topn in (1, 3, 5, 10)]
    keys = ("arp", "ordered_pair_accuracy", "mrr", "precision", "map", "dcg", "ndcg")
    return cut + [get(key, f"metric/{key}", **kwargs) for key in keys]
