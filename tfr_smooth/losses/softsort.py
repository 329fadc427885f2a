"""The SoftSort losses: NDCG, precision and average precision read off SoftSort's ranks."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.losses.base import MetricLoss
from tfr_smooth.ops import SoftSort


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SoftSortNDCGLoss(MetricLoss):
    r"""1 - NDCG@K over SoftSort's ranks.

    $$1 - \frac{1}{N_K} \sum_{r=1}^K \frac{2^{\sum_j rel_j P_{rj}} - 1}{\log_2(r + 1)}$$

    with $P_{rj} = \mathrm{softmax}_j\left(-|s_{[r]} - s_j|^p / \tau\right)$ (Prillo, Eisenschlos, "SoftSort: A
    Continuous Relaxation for the argsort Operator", ICML 2020, arXiv:2006.16038).

    Args:
      temperature: Tau, > 0; exact in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.
      power: The p of the distance, > 0; the SoftSort paper uses 1 and 2.
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers), "linear" for y (trec_eval).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + K N), memory O(K N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SoftSortNDCGLoss(temperature=0.01)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.341
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        power: float = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        ragged: bool = False,
        name: str | None = "softsort_ndcg_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(SoftSort(temperature, power), NDCG(topn, gain), ragged=ragged, name=name, reduction=reduction)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SoftSortPrecisionLoss(MetricLoss):
    r"""1 - P@K over SoftSort's ranks.

    $$1 - \frac{1}{K} \sum_{r=1}^K \sum_j rel_j P_{rj}$$

    with $P_{rj} = \mathrm{softmax}_j\left(-|s_{[r]} - s_j|^p / \tau\right)$, and $rel_j$ is 1 for a label >= 1, else 0
    (Prillo, Eisenschlos, "SoftSort: A Continuous Relaxation for the argsort Operator", ICML 2020, arXiv:2006.16038).

    Args:
      temperature: Tau, > 0; exact in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.
      power: The p of the distance, > 0; the SoftSort paper uses 1 and 2.
      topn: The cut-off K; None for the number of real documents.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + K N), memory O(K N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SoftSortPrecisionLoss(temperature=0.01, topn=2)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, 0]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.5
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        power: float = 1.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "softsort_precision_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(SoftSort(temperature, power), Precision(topn), ragged=ragged, name=name, reduction=reduction)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SoftSortMAPLoss(MetricLoss):
    r"""1 - average precision over SoftSort's ranks.

    $$1 - \frac{1}{R} \sum_{K=1}^N \left(\sum_j rel_j P_{Kj}\right) \frac{1}{K} \sum_{r=1}^K \sum_j rel_j P_{rj}$$

    with $P_{rj} = \mathrm{softmax}_j\left(-|s_{[r]} - s_j|^p / \tau\right)$, R relevant documents, and $rel_j$ is 1 for
    a label >= 1, else 0 (Prillo, Eisenschlos, "SoftSort: A Continuous Relaxation for the argsort Operator", ICML 2020,
    arXiv:2006.16038).

    Args:
      temperature: Tau, > 0; exact in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.
      power: The p of the distance, > 0; the SoftSort paper uses 1 and 2.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SoftSortMAPLoss(temperature=0.01)
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 4))
      0.1667
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        power: float = 1.0,
        ragged: bool = False,
        name: str | None = "softsort_map_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            SoftSort(temperature, power), AveragePrecision(), ragged=ragged, name=name, reduction=reduction
        )
