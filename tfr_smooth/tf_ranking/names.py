"""Losses and metrics of both libraries by name."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth import _lookup, keras_ranking, metrics

# Prefix of TF-Ranking's metrics: both libraries have an "ndcg".
TFR_PREFIX = "tfr/"


def get(
    loss: str, reduction: str = "auto", lambda_weight: Any = None, name: str | None = None, **kwargs: Any
) -> tf.keras.losses.Loss:
    """Creates a loss of either library, as a drop-in replacement for `tfr.keras.losses.get`.

    Args:
      loss: A name that `tfr_smooth.losses.get` takes ("smoothi_ndcg") or a `tfr.keras.losses.RankingLossKey`
        ("approx_ndcg_loss"), which is TF-Ranking's loss.
      reduction: A `tf.keras.losses.Reduction`: "auto" or "sum_over_batch_size", "sum", or "none".
      lambda_weight: A lambda weight of TF-Ranking, for those of its losses that take one; None for no weight.
      name: Name of the loss; None for its default name.
      **kwargs: Further arguments of the loss, such as `alpha`, `topn` or `ragged`.

    Returns:
      The loss.

    Raises:
      ValueError: If no loss has this name, or an argument is out of its range.
      TypeError: If the loss has no such argument.

    Example:
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import tf_ranking
      >>> tf_ranking.get("smoothi_ndcg", alpha=10.0, topn=5).name
      'smoothi_ndcg_loss'
      >>> weight = tfr.keras.losses.NDCGLambdaWeight(topn=5)
      >>> type(tf_ranking.get("pairwise_logistic_loss", lambda_weight=weight)).__module__
      'tensorflow_ranking.python.keras.losses'
    """
    if loss in tfr.keras.losses.RankingLossKey.all_keys():
        return tfr.keras.losses.get(loss, reduction, lambda_weight, name, **kwargs)
    return keras_ranking.get_loss(loss, reduction, lambda_weight, name, **kwargs)


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
      TypeError: If the metric has no such argument.

    Example:
      >>> from tfr_smooth import tf_ranking
      >>> [tf_ranking.get_metric(metric).name for metric in ("ndcg@10", "map", "tfr/mrr@5")]
      ['ndcg_10', 'map', 'mrr_5']
    """
    if not metric.startswith(TFR_PREFIX):
        return metrics.get(metric, name=name, **kwargs)
    key, options = _lookup.with_cutoff("metric", metric, kwargs)
    key = key.removeprefix(TFR_PREFIX)
    cutoff = f"_{options['topn']}" if options.get("topn") else ""
    return tfr.keras.metrics.get(key, name=name or key + cutoff, **options)
