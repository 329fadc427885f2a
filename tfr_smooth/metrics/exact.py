"""The metrics of the exact ranking, and all metrics by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, overload

from typing_extensions import Unpack

from tfr_smooth import _arguments, _lookup, _serialization, measures
from tfr_smooth.evaluation.trec import checked_measures, parted
from tfr_smooth.metrics.measure_metric import MeasureMetric, MetricOptions
from tfr_smooth.rankings.dcg import Discount, TensorFunction

# The metrics of the exact ranking by name.
METRICS: _serialization.Registry[MeasureMetric] = _serialization.Registry()


class ExactMetric(MeasureMetric):
    """Base class of metrics of the exact ranking, with the arguments of the measure in place of the measure.

    The measure has the formula, and the errors of its arguments. Ties are ranked as `rankings.ExactRanking` says.
    """

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self.measure.get_config(), **super().get_config()}


@METRICS.register("ndcg")
class NDCGMetric(ExactMetric):
    """Mean NDCG@K: `measures.NDCG` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers, TF-Ranking), "linear" for y (trec_eval).
      discount: The discount of a rank; see `measures.NDCG`.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.NDCGMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.66
    """

    def __init__(
        self,
        *,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        **options: Unpack[MetricOptions],
    ) -> None:
        super().__init__(measures.NDCG(topn=topn, gain=gain, discount=discount), **options)


@METRICS.register("precision")
class PrecisionMetric(ExactMetric):
    """Mean P@K: `measures.Precision` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the number of real documents in the list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.PrecisionMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.2
    """

    def __init__(self, *, topn: int | None = 10, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.Precision(topn=topn), **options)


@METRICS.register("recall")
class RecallMetric(ExactMetric):
    """Mean R@K: `measures.Recall` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.RecallMetric(topn=2)
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.5
    """

    def __init__(self, *, topn: int | None = 10, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.Recall(topn=topn), **options)


@METRICS.register("map")
class MeanAveragePrecisionMetric(ExactMetric):
    """Mean average precision: `measures.AveragePrecision` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.MeanAveragePrecisionMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.58
    """

    def __init__(self, *, topn: int | None = None, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.AveragePrecision(topn=topn), **options)


@METRICS.register("mrr")
class MRRMetric(ExactMetric):
    """Mean reciprocal rank: `measures.ReciprocalRank` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.MRRMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.5
    """

    def __init__(self, *, topn: int | None = None, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.ReciprocalRank(topn=topn), **options)


@METRICS.register("err")
class ERRMetric(ExactMetric):
    """Mean expected reciprocal rank: `measures.ExpectedReciprocalRank` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      max_grade: The highest label of the data set, > 0; higher labels are clipped to it.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.ERRMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.11
    """

    def __init__(self, *, topn: int | None = None, max_grade: float = 4.0, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.ExpectedReciprocalRank(topn=topn, max_grade=max_grade), **options)


@METRICS.register("spearman")
class SpearmanMetric(ExactMetric):
    """Mean Spearman's correlation: `measures.SpearmanCorrelation` of the exact ranking.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.SpearmanMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      -0.5
    """

    def __init__(self, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.SpearmanCorrelation(), **options)


@METRICS.register("hits")
class HitsMetric(ExactMetric):
    """Mean Hits@K: `measures.Hits` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.HitsMetric(topn=2)
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      1.0
    """

    def __init__(self, *, topn: int | None = 10, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.Hits(topn=topn), **options)


@METRICS.register("dcg")
class DCGMetric(ExactMetric):
    """Mean DCG@K: `measures.DCG` of the exact ranking.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain_fn: The gain, an elementwise function of labels. None for $2^y - 1$.
      rank_discount_fn: The discount; see `measures.DCG`.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.DCGMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      2.39
    """

    def __init__(
        self,
        *,
        topn: int | None = None,
        gain_fn: TensorFunction | None = None,
        rank_discount_fn: TensorFunction | None = None,
        **options: Unpack[MetricOptions],
    ) -> None:
        super().__init__(measures.DCG(topn=topn, gain_fn=gain_fn, rank_discount_fn=rank_discount_fn), **options)


@METRICS.register("arp")
class ARPMetric(ExactMetric):
    """Mean average relevance position: `measures.AverageRelevancePosition` of the exact ranking.

    Lower is better. The weight of a list is multiplied by the sum of its labels.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.ARPMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      2.33
    """

    def __init__(self, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.AverageRelevancePosition(), **options)


@METRICS.register("ordered_pair_accuracy")
class OPAMetric(ExactMetric):
    """Mean ordered pair accuracy: `measures.OrderedPairAccuracy` of the exact ranking.

    The weight of a list is multiplied by the number of its pairs.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.OPAMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.33
    """

    def __init__(self, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.OrderedPairAccuracy(), **options)


@METRICS.register("kendall_tau")
class KendallTauMetric(ExactMetric):
    """Mean Kendall's correlation: `measures.KendallTau` of the exact ranking.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.KendallTauMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      -0.33
    """

    def __init__(self, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.KendallTau(), **options)


@METRICS.register("alpha_dcg")
class AlphaDCGMetric(ExactMetric):
    """Mean alpha-DCG@K: `measures.AlphaDCG` of the exact ranking.

    Labels are [batch, list, subtopics].

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      alpha: The reduction of the gain by each earlier document, in [0, 1]; 0 counts all documents fully.
      rank_discount_fn: The discount; see `measures.AlphaDCG`.
      seed: Has no effect, since ties are not in random order as in TF-Ranking.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.AlphaDCGMetric()
      >>> metric.update_state(tf.constant([[[0, 1], [1, 1], [1, 0], [-1, -1]]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      2.2
    """

    def __init__(
        self,
        *,
        topn: int | None = None,
        alpha: float = 0.5,
        rank_discount_fn: TensorFunction | None = None,
        seed: int | None = None,
        **options: Unpack[MetricOptions],
    ) -> None:
        super().__init__(
            measures.AlphaDCG(topn=topn, alpha=alpha, rank_discount_fn=rank_discount_fn, seed=seed), **options
        )


@METRICS.register("precision_ia")
class PrecisionIAMetric(ExactMetric):
    """Mean intent-aware precision, P-IA@K: `measures.PrecisionIA` of the exact ranking.

    Labels are [batch, list, subtopics].

    Args:
      topn: The cutoff K, >= 1; None for the number of real documents in the list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import metrics
      >>> metric = metrics.PrecisionIAMetric(topn=2)
      >>> metric.update_state(tf.constant([[[0, 1], [1, 1], [1, 0], [-1, -1]]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
      >>> print(round(float(metric.result()), 2))
      0.75
    """

    def __init__(self, *, topn: int | None = 10, **options: Unpack[MetricOptions]) -> None:
        super().__init__(measures.PrecisionIA(topn=topn), **options)


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
