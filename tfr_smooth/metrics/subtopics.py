"""The metrics of diversity, for labels by subtopic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfr_smooth import _serialization, measures
from tfr_smooth.metrics.exact import ExactMetric
from tfr_smooth.metrics.measure_metric import MetricOptions
from tfr_smooth.rankings.dcg import TensorFunction

if TYPE_CHECKING:
    from typing_extensions import Unpack


@_serialization.register
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


@_serialization.register
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
