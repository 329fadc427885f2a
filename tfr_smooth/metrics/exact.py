"""The metrics of the exact ranking."""

from __future__ import annotations

from typing import Any

from typing_extensions import Unpack

from tfr_smooth import _serialization, measures
from tfr_smooth.metrics.measure_metric import MeasureMetric, MetricOptions
from tfr_smooth.rankings.dcg import Discount, TensorFunction

# The metrics of the exact ranking by name.
METRICS: _serialization.Registry[MeasureMetric] = _serialization.Registry()


class ExactMetric(MeasureMetric):
    """Base class of metrics of the exact ranking, with the arguments of the measure in place of the measure."""

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self.measure.get_config(), **super().get_config()}


@METRICS.register("ndcg")
class NDCGMetric(ExactMetric):
    r"""Mean NDCG@K.

    $$\frac{1}{N_K} \sum_{r=1}^K \frac{2^{y_r} - 1}{\log_2(r + 1)}$$

    (Jarvelin, Kekalainen 2002; Thonet et al. 2021, Eq. 3 and 12.) Tied documents are ranked by descending index in
    the list, which is trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers, TF-Ranking), "linear" for y (trec_eval).
      discount: The discount of a rank; see `measures.NDCG`.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean P@K.

    $$\frac{1}{K} \sum_{r=1}^K y_r$$

    (Thonet et al. 2021, Eq. 1 and 10.) Labels >= 1 are relevant. Tied documents are ranked by descending index in
    the list, which is trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the number of real documents in the list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean R@K.

    $$\frac{1}{R} \sum_{r=1}^K y_r$$

    (Manning, Raghavan, Schuetze 2008.) Labels >= 1 are relevant. Tied documents are ranked by descending index in
    the list, which is trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean average precision.

    $$\frac{1}{R} \sum_{r=1}^K y_r \frac{1}{r} \sum_{l=1}^r y_l$$

    (Thonet et al. 2021, Eq. 2 and 11.) Labels >= 1 are relevant. Tied documents are ranked by descending index in
    the list, which is trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean reciprocal rank.

    $$\sum_{r=1}^K \frac{1}{r} \, y_r \prod_{l<r} (1 - y_l)$$

    (Voorhees 1999.) Labels >= 1 are relevant. Tied documents are ranked by descending index in the list, which is
    trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean expected reciprocal rank.

    $$\sum_{r=1}^K \frac{1}{r} \, R_r \prod_{l<r} (1 - R_l), \quad R = \frac{2^y - 1}{2^{y_{max}}}$$

    (Chapelle et al. 2009.) Tied documents are ranked by descending index in the list, which is trec_eval's rule for
    documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      max_grade: The highest label of the data set, > 0; higher labels are clipped to it.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean Spearman's correlation.

    $$\frac{\sum_j (r_j - \bar r)(q_j - \bar q)}{\sqrt{\sum_j (r_j - \bar r)^2 \sum_j (q_j - \bar q)^2}}$$

    (Spearman 1904; Blondel et al. 2020, arXiv:2002.08871, Section 6.) $r_j$ are the ranks by score and $q_j$ the
    ranks by label; tied documents share the mean of their ranks. Lists with equal labels have no correlation: they
    are treated as lists without a relevant document.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean Hits@K.

    $$\min\left(1, \sum_{r=1}^K y_r\right)$$

    (trec_eval's success_K.) Labels >= 1 are relevant. Tied documents are ranked by descending index in the list,
    which is trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean DCG@K.

    $$\sum_{r=1}^K \frac{2^{y_r} - 1}{\log_2(r + 1)}$$

    (Jarvelin, Kekalainen 2002.) Tied documents are ranked by descending index in the list, which is trec_eval's
    rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      gain_fn: The gain, an elementwise function of labels. None for $2^y - 1$.
      rank_discount_fn: The discount; see `measures.DCG`.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean average relevance position.

    $$\frac{1}{\sum_r y_r} \sum_r r \, y_r$$

    (TF-Ranking 0.5.5.) Lower is better. The weight of a list is multiplied by the sum of its labels. Tied documents
    are ranked by descending index in the list, which is trec_eval's rule for documents named by index.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean ordered pair accuracy.

    $$\frac{\sum_{i, j} [y_i > y_j] \, [s_i > s_j]}{\sum_{i, j} [y_i > y_j]}$$

    (TF-Ranking 0.5.5.) Tied scores are not correct. The weight of a list is multiplied by the number of its pairs.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N^2), memory O(N^2) per list.

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
    r"""Mean Kendall's correlation.

    $$\frac{\sum_{i < j} \mathrm{sign}(s_i - s_j) \, \mathrm{sign}(y_i - y_j)}
      {\sqrt{\sum_{i < j} [s_i \ne s_j] \sum_{i < j} [y_i \ne y_j]}}$$

    (Kendall 1945.) Lists with equal labels have no correlation: they are treated as lists without a relevant
    document.

    Args:
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N^2), memory O(N^2) per list.

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
    r"""Mean alpha-DCG@K.

    $$\sum_{r=1}^K \frac{1}{\log_2(r + 1)} \sum_t y_{rt} \, (1 - \alpha)^{\sum_{l<r} y_{lt}}$$

    (Clarke et al. 2008.) Labels are [batch, list, subtopics]; a negative label marks a subtopic that the list does
    not have, and a document with only negative labels is padding. Tied documents are ranked by descending index in
    the list, which is trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the whole list.
      alpha: The reduction of the gain by each earlier document, in [0, 1]; 0 counts all documents fully.
      rank_discount_fn: The discount; see `measures.AlphaDCG`.
      seed: Has no effect, since ties are not in random order as in TF-Ranking.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
    r"""Mean intent-aware precision, P-IA@K.

    $$\frac{1}{T K} \sum_t \sum_{r=1}^K y_{rt}$$

    (Agrawal et al. 2009; Clarke et al. 2009.) Labels are [batch, list, subtopics]; a negative label marks a
    subtopic that the list does not have, and a document with only negative labels is padding. Tied documents are
    ranked by descending index in the list, which is trec_eval's rule for documents named by index.

    Args:
      topn: The cutoff K, >= 1; None for the number of real documents in the list.
      **options: `no_relevant`, `ragged`, `name` and `dtype`; see `MeasureMetric`.

    Raises:
      ValueError: If an argument is out of range or the shapes do not match.

    Time O(N log N), memory O(N) per list.

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
