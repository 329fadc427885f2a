"""The SmoothI metrics: what the SmoothI losses are one minus of, to watch beside the exact metrics."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.metrics.base import MeanOverLists
from tfr_smooth.ops import SmoothI


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SmoothINDCGMetric(MeanOverLists):
    r"""Mean SmoothI NDCG@K over lists (Eq. 12 of arXiv:2105.00942): 1 - `losses.SmoothINDCGLoss`.

    Args:
      alpha: Inverse temperature, > 0.
      delta: In (0, 0.5).
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the paper), "linear" for y (trec_eval).
      no_relevant: What a list without a relevant document counts: "skip", as in the loss, or "zero".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric.
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(min(K, R) N) a list with R about 200 at delta = 0.1 (`ops.smoothi_relevance`), memory O(N + K).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.SmoothINDCGMetric(alpha=100.0)
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[1.0, 3.0, 2.0, 0.0]]))
      >>> print(round(float(metric.result()), 4))
      1.0
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        delta: float = 0.1,
        topn: int | None = None,
        gain: str = "exponential",
        no_relevant: str = "skip",
        ragged: bool = False,
        name: str | None = "smoothi_ndcg",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            SmoothI(alpha, delta), NDCG(topn, gain), no_relevant=no_relevant, ragged=ragged, name=name, dtype=dtype
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SmoothIPrecisionMetric(MeanOverLists):
    r"""Mean SmoothI P@K over lists (Eq. 10 of arXiv:2105.00942): 1 - `losses.SmoothIPrecisionLoss`.

    Args:
      alpha: Inverse temperature, > 0.
      delta: In (0, 0.5).
      topn: The cut-off K; None for the number of real documents.
      no_relevant: What a list without a relevant document counts: "skip", as in the loss, or "zero".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric.
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(min(K, R) N) a list with R about 200 at delta = 0.1 (`ops.smoothi_relevance`), memory O(N + K).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.SmoothIPrecisionMetric(alpha=10.0, topn=1)
      >>> metric.update_state(tf.constant([[0, 2, 1, 0]]), tf.constant([[1.0, 2.0, 3.0, 0.0]]))
      >>> print(round(float(metric.result()), 4))
      1.0
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        delta: float = 0.1,
        topn: int | None = 10,
        no_relevant: str = "skip",
        ragged: bool = False,
        name: str | None = "smoothi_precision",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            SmoothI(alpha, delta), Precision(topn), no_relevant=no_relevant, ragged=ragged, name=name, dtype=dtype
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SmoothIMAPMetric(MeanOverLists):
    r"""Mean SmoothI average precision over lists (Eq. 11 of arXiv:2105.00942): 1 - `losses.SmoothIMAPLoss`.

    Args:
      alpha: Inverse temperature, > 0.
      delta: In (0, 0.5).
      no_relevant: What a list without a relevant document counts: "skip", as in the loss, or "zero".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric.
      dtype: Keras' argument; the mean is kept in float64.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(min(N, R) N) a list with R about 200 at delta = 0.1 (`ops.smoothi_relevance`), memory O(N).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.SmoothIMAPMetric(alpha=100.0)
      >>> metric.update_state(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))
      >>> print(round(float(metric.result()), 4))
      0.8333
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        delta: float = 0.1,
        no_relevant: str = "skip",
        ragged: bool = False,
        name: str | None = "smoothi_map",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            SmoothI(alpha, delta), AveragePrecision(), no_relevant=no_relevant, ragged=ragged, name=name, dtype=dtype
        )
