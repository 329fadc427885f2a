"""The exact metrics, as trec_eval computes them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, ExpectedReciprocalRank, Precision, ReciprocalRank
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


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class MRRMetric(MeanOverLists):
    r"""Mean reciprocal rank: one over the rank of the first document with a label >= 1, 0 if it is behind rank K.

    (trec_eval's `recip_rank`.) Deterministic: tied documents stand in falling order of position, which is trec_eval's
    rule for documents named by position.

    Args:
      topn: The cut-off K; None for the whole list.
      no_relevant: What a list without a relevant document counts: "zero" (trec_eval, the papers) or "skip".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric; by default "mrr", or "mrr_K".
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.MRRMetric()
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 9.0]]))
      >>> print(float(metric.result()))
      0.5
    """

    def __init__(
        self,
        *,
        topn: int | None = None,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        name = name or ("mrr" if topn is None else f"mrr_{topn}")
        super().__init__(
            ExactRanking(), ReciprocalRank(topn), no_relevant=no_relevant, ragged=ragged, name=name, dtype=dtype
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class ERRMetric(MeanOverLists):
    r"""Mean expected reciprocal rank: $\sum_{r \le K} \frac{1}{r} R_r \prod_{l<r} (1 - R_l)$.

    $R = (2^y - 1) / 2^{y_{max}}$ is the chance that the document at rank r satisfies the reader (Chapelle, Metzler,
    Zhang, Grinspan, "Expected Reciprocal Rank for Graded Relevance", CIKM 2009). Deterministic: tied documents stand
    in falling order of position, which is trec_eval's rule for documents named by position.

    Args:
      topn: The cut-off K; None for the whole list.
      max_grade: The highest label there is, > 0; higher ones count as this one. 4 for MSLR-WEB30K and Yahoo's data, 2
        for LETOR 4.0.
      no_relevant: What a list without a relevant document counts: "zero" (trec_eval, the papers) or "skip".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric; by default "err", or "err_K".
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.ERRMetric(max_grade=2)
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 9.0]]))
      >>> print(round(float(metric.result()), 4))
      0.3958
    """

    def __init__(
        self,
        *,
        topn: int | None = None,
        max_grade: float = 4.0,
        no_relevant: str = "zero",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        name = name or ("err" if topn is None else f"err_{topn}")
        super().__init__(
            ExactRanking(),
            ExpectedReciprocalRank(topn, max_grade),
            no_relevant=no_relevant,
            ragged=ragged,
            name=name,
            dtype=dtype,
        )
