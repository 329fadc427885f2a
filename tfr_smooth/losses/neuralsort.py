"""The NeuralSort losses: NDCG, precision and average precision read off NeuralSort's ranks."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.losses.base import MetricLoss
from tfr_smooth.ops import NeuralSort


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class NeuralSortNDCGLoss(MetricLoss):
    r"""1 - NDCG@K over NeuralSort's ranks.

    $$1 - \frac{1}{N_K} \sum_{r=1}^K \frac{2^{\sum_j rel_j \hat P_{rj}} - 1}{\log_2(r + 1)}$$

    with $\hat P_{r \cdot} = \mathrm{softmax}\left[((n + 1 - 2r) s - A \mathbf{1}) / \tau\right], \quad A_{ij} = |s_i -
    s_j|$ (Grover et al., "Stochastic Optimization of Sorting Networks via Continuous Relaxations", ICLR 2019,
    arXiv:1903.08850, Eq. 5).

    Args:
      temperature: Tau, > 0; exact in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.
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
      >>> loss = tfr_smooth.losses.NeuralSortNDCGLoss(temperature=0.01)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.341
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        ragged: bool = False,
        name: str | None = "neuralsort_ndcg_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(NeuralSort(temperature), NDCG(topn, gain), ragged=ragged, name=name, reduction=reduction)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class NeuralSortPrecisionLoss(MetricLoss):
    r"""1 - P@K over NeuralSort's ranks.

    $$1 - \frac{1}{K} \sum_{r=1}^K \sum_j rel_j \hat P_{rj}$$

    with $\hat P_{r \cdot} = \mathrm{softmax}\left[((n + 1 - 2r) s - A \mathbf{1}) / \tau\right], \quad A_{ij} = |s_i -
    s_j|$, and $rel_j$ is 1 for a label >= 1, else 0 (Grover et al., "Stochastic Optimization of Sorting Networks via
    Continuous Relaxations", ICLR 2019, arXiv:1903.08850, Eq. 5).

    Args:
      temperature: Tau, > 0; exact in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.
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
      >>> loss = tfr_smooth.losses.NeuralSortPrecisionLoss(temperature=0.01, topn=2)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, 0]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.5
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "neuralsort_precision_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(NeuralSort(temperature), Precision(topn), ragged=ragged, name=name, reduction=reduction)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class NeuralSortMAPLoss(MetricLoss):
    r"""1 - average precision over NeuralSort's ranks.

    $$1 - \frac{1}{R} \sum_{K=1}^N \left(\sum_j rel_j \hat P_{Kj}\right) \frac{1}{K} \sum_{r=1}^K \sum_j rel_j \hat
      P_{rj}$$

    with $\hat P_{r \cdot} = \mathrm{softmax}\left[((n + 1 - 2r) s - A \mathbf{1}) / \tau\right], \quad A_{ij} = |s_i -
    s_j|$, R relevant documents, and $rel_j$ is 1 for a label >= 1, else 0 (Grover et al., "Stochastic Optimization of
    Sorting Networks via Continuous Relaxations", ICLR 2019, arXiv:1903.08850, Eq. 5).

    Args:
      temperature: Tau, > 0; exact in the limit 0. The SmoothI paper searches {0.1, 1, 10, 100}.
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
      >>> loss = tfr_smooth.losses.NeuralSortMAPLoss(temperature=0.01)
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 4))
      0.1667
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        ragged: bool = False,
        name: str | None = "neuralsort_map_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(NeuralSort(temperature), AveragePrecision(), ragged=ragged, name=name, reduction=reduction)
