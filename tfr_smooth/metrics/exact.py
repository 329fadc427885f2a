"""The exact metrics, as trec_eval computes them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.metrics.base import MeanOverLists
from tfr_smooth.ops import ExactRanking


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class NDCGMetric(MeanOverLists):
    r"""Mean NDCG@K over lists: $\frac{1}{N_K} \sum_{r \le K} g(rel(j_r)) / \log_2(r + 1)$.

    (Eq. 3 of arXiv:2105.00942; Jarvelin and Kekalainen 2002.) With `gain="linear"` these are trec_eval's `ndcg` (topn
    None) and `ndcg_cut_K`. Deterministic: tied documents stand in falling order of position, which is trec_eval's rule
    for documents named by position.

    Args:
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers, TF-Ranking), "linear" for y (trec_eval).
      no_relevant: What a list without a relevant document counts: "zero" (trec_eval, the papers) or "skip".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric; by default "ndcg", or "ndcg_K".
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.NDCGMetric(topn=5, gain="linear")
      >>> metric.update_state(tf.constant([[0.0, 2.0, 1.0, -1.0]]), tf.constant([[3.0, 2.0, 1.0, 9.0]]))
      >>> print(round(float(metric.result()), 4))
      0.6697
    """

    def __init__(
        self,
        *,
        topn: int | None = None,
        gain: str = "exponential",
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        name = name or ("ndcg" if topn is None else f"ndcg_{topn}")
        super().__init__(
            ExactRanking(), NDCG(topn, gain), no_relevant=no_relevant, ragged=ragged, name=name, dtype=dtype
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class PrecisionMetric(MeanOverLists):
    r"""Mean P@K over lists: the fraction of the first K documents with a label >= 1.

    (Eq. 1 of arXiv:2105.00942; trec_eval's `P_K`.) Divided by K also where a list is shorter. Deterministic: tied
    documents stand in falling order of position, which is trec_eval's rule for documents named by position.

    Args:
      topn: The cut-off K; None for the number of documents in the list.
      no_relevant: What a list without a relevant document counts: "zero" (trec_eval, the papers) or "skip".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric; by default "precision", or "precision_K".
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.PrecisionMetric(topn=2)
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 9.0]]))
      >>> print(float(metric.result()))
      0.5
    """

    def __init__(
        self,
        *,
        topn: int | None = 10,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        name = name or ("precision" if topn is None else f"precision_{topn}")
        super().__init__(
            ExactRanking(), Precision(topn), no_relevant=no_relevant, ragged=ragged, name=name, dtype=dtype
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class MeanAveragePrecisionMetric(MeanOverLists):
    r"""Mean average precision: $\frac{1}{R} \sum_K rel(j_K) \, \mathrm{P@}K$, relevant being a label >= 1.

    (Eq. 2 of arXiv:2105.00942; trec_eval's `map`.) Deterministic: tied documents stand in falling order of position,
    which is trec_eval's rule for documents named by position.

    Args:
      no_relevant: What a list without a relevant document counts: "zero" (trec_eval, the papers) or "skip".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric.
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is not one of these or the shapes do not match.

    Time O(N log N), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.MeanAveragePrecisionMetric()
      >>> metric.update_state(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))
      >>> print(round(float(metric.result()), 4))
      0.8333
    """

    def __init__(
        self,
        *,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = "map",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            ExactRanking(), AveragePrecision(), no_relevant=no_relevant, ragged=ragged, name=name, dtype=dtype
        )
