"""Losses and metrics of both libraries by name."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth import _arguments, losses, metrics

# Prefix of TF-Ranking's metrics: both libraries have an "ndcg".
TFR_PREFIX = "tfr/"


def get(
    loss: str,
    reduction: str = "auto",
    lambda_weight: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> tf.keras.losses.Loss:
    """Creates a loss of either library, as a drop-in replacement for `tfr.keras.losses.get`.

    Args:
      loss: A name that `tfr_smooth.losses.get` takes ("smoothi_ndcg") or a `tfr.keras.losses.RankingLossKey`
        ("approx_ndcg_loss").
      reduction: A `tf.keras.losses.Reduction`: "auto" or "sum_over_batch_size", "sum", or "none".
      lambda_weight: A lambda weight of TF-Ranking, for those of its losses that take one; None for no weight.
      name: Name of the loss; None for its default name.
      **kwargs: Further arguments of the loss, such as `alpha`, `topn` or `ragged`.

    Returns:
      The loss.

    Raises:
      ValueError: If no loss has this name, the loss does not take an argument (TF-Ranking itself ignores some unknown
        arguments), or an argument is out of its range.

    Example:
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import tf_ranking
      >>> tf_ranking.get("smoothi_ndcg", alpha=10.0, topn=5).name
      'smoothi_ndcg_loss'
      >>> weight = tfr.keras.losses.NDCGLambdaWeight(topn=5)
      >>> type(tf_ranking.get("pairwise_logistic_loss", lambda_weight=weight)).__name__
      'PairwiseLogisticLoss'
    """
    theirs = tfr.keras.losses.RankingLossKey.all_keys()
    _arguments.name("loss", loss, (*losses.NAMES, *theirs))
    if loss in losses.NAMES:
        if lambda_weight is not None:
            raise ValueError(f"`lambda_weight` must be None for {loss!r}, got {lambda_weight!r}.")
        _check_names(loss, kwargs, {*losses.hyperparameters(loss), "ragged", "name", "reduction"})
        return losses.get(loss, reduction=reduction, **_named(name), **kwargs)
    known = inspect.signature(type(tfr.keras.losses.get(loss))).parameters
    _check_names(loss, kwargs, set(known) - {"kwargs"})
    created = tfr.keras.losses.get(loss, reduction, lambda_weight, name, **kwargs)
    if lambda_weight is not None and not any(value is lambda_weight for value in vars(created).values()):
        raise ValueError(f"`lambda_weight` must be None for {loss!r}, got {lambda_weight!r}.")
    return created


def _named(name: str | None) -> dict[str, str]:
    """Returns the argument `name`, or no argument for the default name."""
    return {} if name is None else {"name": name}


def _check_names(what: str, given: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        expected = ", ".join(sorted(known - {"name", "reduction", "lambda_weight"}))
        raise ValueError(f"`{unknown[0]}` is not an argument of {what!r}, which takes {expected}.")


def get_metric(metric: str, name: str | None = None, **kwargs: Any) -> tf.keras.metrics.Metric:
    """Creates a metric of either library.

    Args:
      metric: A name that `tfr_smooth.metrics.get` takes ("ndcg"), or "tfr/" followed by a
        `tfr.keras.metrics.RankingMetricKey` ("tfr/mrr"). The suffix "@K" means `topn=K`: "ndcg@10".
      name: Name of the metric; None for its name without "tfr/", followed by the cutoff, such as "ndcg_10" or "mrr".
      **kwargs: Further arguments of the metric, such as `topn`, `gain` or `ragged`.

    Returns:
      The metric.

    Raises:
      ValueError: If no metric has this name, or an argument is invalid.

    Example:
      >>> from tfr_smooth import tf_ranking
      >>> [tf_ranking.get_metric(metric).name for metric in ("ndcg@10", "map", "tfr/mrr@5")]
      ['ndcg_10', 'map', 'mrr_5']
    """
    theirs = [TFR_PREFIX + key for key in _tfr_metrics()]
    key, at, topn = metric.partition("@") if isinstance(metric, str) else (metric, "", "")
    _arguments.name("metric", key, (*metrics.NAMES, *theirs))
    if at:
        if not topn.isdigit() or "topn" in kwargs:
            raise ValueError(f"`metric` must end in '@K' for an integer K, without an argument `topn`, got {metric!r}.")
        kwargs["topn"] = int(topn)
    if key in metrics.NAMES:
        _check_names(metric, kwargs, {*metrics.hyperparameters(key), "no_relevant", "ragged", "name", "dtype"})
        return metrics.get(key, **_named(name), **kwargs)
    cut = kwargs.get("topn")
    name = name or key.removeprefix(TFR_PREFIX) + (f"_{cut}" if cut else "")
    return tfr.keras.metrics.get(key.removeprefix(TFR_PREFIX), name=name, **kwargs)


def _tfr_metrics() -> list[str]:
    return [value for key, value in vars(tfr.keras.metrics.RankingMetricKey).items() if key.isupper()]
