"""The SmoothI losses: NDCG, precision and average precision read off smooth rank indicators."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.losses.base import MetricLoss
from tfr_smooth.ops import SmoothI


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SmoothINDCGLoss(MetricLoss):
    r"""1 - NDCG@K over SmoothI's rank indicators.

    $$1 - \frac{1}{N_K} \sum_{r=1}^K \frac{2^{\sum_j rel_j I^r_j} - 1}{\log_2(r + 1)}, \qquad
      I^r_j = \mathrm{softmax}_j\left(\alpha S_j \, \mathrm{sg}\left[\prod_{l<r} (1 - I^l_j - \delta)\right]\right)$$

    (Eq. 12 and 9 of Thonet et al., "SmoothI: Smooth Rank Indicators for Differentiable IR Metrics", arXiv:2105.00942.)
    The paper found this one to give the best rankings by every metric.

    Args:
      alpha: Inverse temperature, > 0; the paper searches {0.1, 1, 10, 100}.
      delta: In (0, 0.5): what remains of a document's weight after its rank.
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the paper), "linear" for y (trec_eval).
      stop_gradient: True for Eq. 9; False differentiates through the recursion (Eq. 7; slower, memory O(K N)).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At most 1, and a little below 0 at times: a smooth ranking may find a document at more than one
    rank. Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(min(K, R) N) a list with R about 80 at delta = 0.1 (`ops.smoothi_relevance`), memory O(N + K).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SmoothINDCGLoss(alpha=100.0)
      >>> labels, scores = tf.constant([[0.0, 2.0, 1.0, -1.0]]), tf.constant([[3.0, 2.0, 1.0, 0.0]])
      >>> print(round(float(loss(labels, scores)), 4))
      0.341
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        delta: float = 0.1,
        topn: int | None = None,
        gain: str = "exponential",
        stop_gradient: bool = True,
        ragged: bool = False,
        name: str | None = "smoothi_ndcg_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            SmoothI(alpha, delta, stop_gradient), NDCG(topn, gain), ragged=ragged, name=name, reduction=reduction
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SmoothIPrecisionLoss(MetricLoss):
    r"""1 - P@K over SmoothI's rank indicators.

    $$1 - \frac{1}{K} \sum_{r=1}^K \sum_j rel_j I^r_j, \qquad rel_j = 1 \text{ for a label} \ge 1, \text{ else } 0$$

    (Eq. 10 of arXiv:2105.00942, with the indicators of Eq. 9.) Divided by K also where a list is shorter, as
    trec_eval does.

    Args:
      alpha: Inverse temperature, > 0; the paper searches {0.1, 1, 10, 100}.
      delta: In (0, 0.5): what remains of a document's weight after its rank.
      topn: The cut-off K; None for the number of real documents.
      stop_gradient: True for Eq. 9; False differentiates through the recursion (Eq. 7; slower, memory O(K N)).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At most 1, and a little below 0 at times: a smooth ranking may find a document at more than one
    rank. Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(min(K, R) N) a list with R about 80 at delta = 0.1 (`ops.smoothi_relevance`), memory O(N + K).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SmoothIPrecisionLoss(alpha=10.0, topn=1)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, 0]]), tf.constant([[1.0, 2.0, 3.0, 0.0]]))), 4))
      0.0
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        delta: float = 0.1,
        topn: int | None = 10,
        stop_gradient: bool = True,
        ragged: bool = False,
        name: str | None = "smoothi_precision_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            SmoothI(alpha, delta, stop_gradient), Precision(topn), ragged=ragged, name=name, reduction=reduction
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SmoothIMAPLoss(MetricLoss):
    r"""1 - average precision over SmoothI's rank indicators.

    $$1 - \frac{1}{R} \sum_{K=1}^N \left(\sum_j rel_j I^K_j\right) \frac{1}{K} \sum_{r=1}^K \sum_j rel_j I^r_j,
      \qquad rel_j = 1 \text{ for a label} \ge 1, \text{ else } 0$$

    with R relevant documents (Eq. 11 of arXiv:2105.00942, with the indicators of Eq. 9).

    Args:
      alpha: Inverse temperature, > 0; the paper searches {0.1, 1, 10, 100}.
      delta: In (0, 0.5): what remains of a document's weight after its rank.
      stop_gradient: True for Eq. 9; False differentiates through the recursion (Eq. 7; slower, memory O(N^2)).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At most 1, and a little below 0 at times: a smooth ranking may find a document at more than one
    rank. Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(min(N, R) N) a list with R about 80 at delta = 0.1 (`ops.smoothi_relevance`), memory O(N).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SmoothIMAPLoss(alpha=100.0)
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 4))
      0.1667
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        delta: float = 0.1,
        stop_gradient: bool = True,
        ragged: bool = False,
        name: str | None = "smoothi_map_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            SmoothI(alpha, delta, stop_gradient), AveragePrecision(), ragged=ragged, name=name, reduction=reduction
        )
