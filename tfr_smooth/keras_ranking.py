"""TF-Ranking's Keras names for this library's classes: `from tfr_smooth import keras_ranking as tfr`.

For programs that move from TF-Ranking to Keras 3; Keras 2 also works. `tfr_smooth.tf_ranking.tfr`, which needs Keras 2,
is TF-Ranking itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _padded, _serialization, losses, metrics, models

# tfr.keras.utils: functions of labels and ranks, which the configs of losses may contain.


@_serialization.register
def identity(label: tf.Tensor) -> tf.Tensor:
    """Returns the argument."""
    return label


@_serialization.register
def inverse(rank: tf.Tensor) -> tf.Tensor:
    """Returns 1 / rank, and 0 for 0."""
    return tf.math.reciprocal_no_nan(rank)


@_serialization.register
def pow_minus_1(label: tf.Tensor) -> tf.Tensor:
    """Returns 2^label - 1."""
    return tf.math.pow(2.0, label) - 1.0


@_serialization.register
def log2_inverse(rank: tf.Tensor) -> tf.Tensor:
    """Returns 1 / log2(1 + rank), and 0 for 0."""
    logarithm = tf.math.log1p(rank)
    return tf.math.divide_no_nan(tf.math.log(tf.constant(2.0, logarithm.dtype)), logarithm)


@_serialization.register
def is_greater_equal_1(label: tf.Tensor) -> tf.Tensor:
    """Returns whether the label is at least 1."""
    return tf.greater_equal(label, 1.0)


@_serialization.register
def symmetric_log1p(t: tf.Tensor) -> tf.Tensor:
    """Returns sign(t) log(1 + |t|)."""
    return tf.math.log1p(tf.abs(t)) * tf.sign(t)


# tfr.keras.losses.


def get_loss(
    loss: str, reduction: str = "auto", lambda_weight: Any = None, name: str | None = None, **kwargs: Any
) -> losses.RankingLoss:
    """Creates a loss: `tfr.keras.losses.get`, with TF-Ranking's arguments.

    Args:
      loss: A `RankingLossKey` ("softmax_loss"), or another name that `losses.get` takes ("smoothi_ndcg").
      reduction: "auto" or "sum_over_batch_size", "sum" or "none"; the values of `tf.losses.Reduction`.
      lambda_weight: A weight such as `NDCGLambdaWeight`, for losses that take one. None for none.
      name: Name of the loss. None uses its default.
      **kwargs: Further arguments of the loss, such as `ragged`. The losses of the Approx ranking take TF-Ranking's
        `temperature`, too: one over their `alpha`.

    Returns:
      The loss.

    Raises:
      ValueError: If the loss does not exist, or an argument is out of range.
      TypeError: If the loss has no such argument.

    Example:
      >>> from tfr_smooth import keras_ranking as tfr
      >>> tfr.keras.losses.get(tfr.keras.losses.RankingLossKey.APPROX_NDCG_LOSS, temperature=0.5).get_config()["alpha"]
      2.0
    """
    optional = {"lambda_weight": lambda_weight, "name": name}
    arguments = {**kwargs, **{key: value for key, value in optional.items() if value is not None}}
    if "temperature" in arguments and "approx_" in loss:
        arguments["alpha"] = 1.0 / _arguments.real("temperature", arguments.pop("temperature"), above=0.0)
    return losses.get(loss, reduction=reduction, **arguments)


# tfr.keras.metrics.

# TF-Ranking's argument -> that of NDCG in this library, and the values that both have.
_FUNCTIONS: dict[str, tuple[str, dict[Any, str]]] = {
    "gain_fn": ("gain", {pow_minus_1: "exponential", identity: "linear"}),
    "rank_discount_fn": ("discount", {log2_inverse: "log2"}),
}


def get_metric(
    key: str, name: str | None = None, dtype: Any = None, topn: int | None = None, **kwargs: Any
) -> metrics.MeasureMetric:
    """Creates a metric: `tfr.keras.metrics.get`, with TF-Ranking's arguments and defaults.

    Args:
      key: A name of TF-Ranking ("ndcg"), or another name that `metrics.get` takes ("smoothi_ndcg").
      name: Name of the metric. None uses its default.
      dtype: Type of the metric. None uses Keras's default.
      topn: Cutoff, >= 1. None for no cutoff, also for metrics of this library that have one by default.
      **kwargs: Further arguments of the metric, such as `ragged`. For NDCG, `gain_fn` may be
        `tfr.keras.utils.pow_minus_1` or `identity`, and `rank_discount_fn` may be `log2_inverse`.

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
    defaults = metrics.hyperparameters(key) if key in metrics.NAMES else {}
    if topn is not None or defaults.get("topn") is not None:
        kwargs["topn"] = topn
    for theirs in (_FUNCTIONS.keys() & kwargs.keys()) - defaults.keys():
        ours, known = _FUNCTIONS[theirs]
        function = kwargs.pop(theirs)
        if function is not None and function not in known:
            names = " or ".join(f"tfr.keras.utils.{each.__name__}" for each in known)
            raise ValueError(f"`{theirs}` must be {names} (or pass `{ours}`), got {function!r}.")
        kwargs.update({} if function is None else {ours: known[function]})
    return metrics.get(key, name=name, dtype=dtype, **kwargs)


def default_keras_metrics(**kwargs: Any) -> list[metrics.MeasureMetric]:
    """Creates the default metrics of TF-Ranking: `tfr.keras.metrics.default_keras_metrics`.

    Args:
      **kwargs: Arguments of all metrics, such as `ragged`.

    Returns:
      NDCG at 1, 3, 5 and 10, ARP, ordered pair accuracy, MRR, precision, MAP, DCG and NDCG, with the names of
      TF-Ranking, such as "metric/ndcg_1".

    Example:
      >>> from tfr_smooth import keras_ranking as tfr
      >>> [metric.name for metric in tfr.keras.metrics.default_keras_metrics()][:5]
      ['metric/ndcg_1', 'metric/ndcg_3', 'metric/ndcg_5', 'metric/ndcg_10', 'metric/arp']
    """
    cut = [get_metric("ndcg", f"metric/ndcg_{topn}", topn=topn, **kwargs) for topn in (1, 3, 5, 10)]
    keys = ("arp", "ordered_pair_accuracy", "mrr", "precision", "map", "dcg", "ndcg")
    return cut + [get_metric(key, f"metric/{key}", **kwargs) for key in keys]


# tfr.utils.


def sort_by_scores(
    scores: tf.Tensor, features_list: Sequence[tf.Tensor], topn: int | None = None, mask: tf.Tensor | None = None
) -> list[tf.Tensor]:
    """Sorts features of documents by descending score; ties by position: `tfr.utils.sort_by_scores`.

    TF-Ranking also takes `shuffle_ties` and `seed`, and orders ties at random by default.

    Args:
      scores: [batch, list].
      features_list: Tensors [batch, list, ...].
      topn: Number of documents to return, >= 1. None for all.
      mask: [batch, list] bool, False for padding, which is last. None for no padding.

    Returns:
      The sorted tensors, [batch, topn, ...].

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import keras_ranking as tfr
      >>> titles = tf.constant([["a", "b", "c"]])
      >>> print(tfr.utils.sort_by_scores(tf.constant([[1.0, 3.0, 2.0]]), [titles], topn=2)[0].numpy())
      [[b'b' b'c']]
    """
    scores = tf.convert_to_tensor(scores)
    if mask is not None:
        scores = _padded.fill(scores, tf.cast(mask, tf.bool), scores.dtype.min)
    _, indices = tf.math.top_k(scores, _padded.num_ranks(scores, topn))
    return [tf.gather(features, indices, batch_dims=1) for features in features_list]


# The namespaces.


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


_FUNCTIONS_OF_UTILS = (identity, inverse, pow_minus_1, log2_inverse, is_greater_equal_1, symmetric_log1p)
_LAYERS = ("ConcatFeatures", "DocumentInteractionAttention", "FlattenList", "GAMLayer", "RestoreList", "create_tower")


class _Namespace(SimpleNamespace):
    def __getattr__(self, name: str) -> Any:
        return _refused(name)


def _refused(name: str) -> Any:
    if name.startswith("__"):  # which Python looks for
        raise AttributeError(name)
    others = "`tfr_smooth.tf_ranking.tfr` is all of TF-Ranking, with Keras 2, and `tfr_smooth.Ranker` trains without"
    raise AttributeError(f"tfr_smooth.keras_ranking has no {name!r}: {others} its pipelines and data formats.")


__getattr__ = _refused
keras = _Namespace(
    layers=_Namespace(**{name: getattr(models, name) for name in _LAYERS}),
    losses=_Namespace(**{**_public(losses), "get": get_loss}),
    metrics=_Namespace(**{**_public(metrics), "get": get_metric, "default_keras_metrics": default_keras_metrics}),
    utils=_Namespace(**{function.__name__: function for function in _FUNCTIONS_OF_UTILS}),
)
utils = _Namespace(sort_by_scores=sort_by_scores)

__all__ = ["keras", "utils"]
