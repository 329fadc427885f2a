"""The Approx losses: NDCG, precision and average precision read off smooth positions."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.losses.base import MetricLoss
from tfr_smooth.ops import Approx


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class ApproxNDCGLoss(MetricLoss):
    r"""1 - NDCG@K over smooth positions.

    $$1 - \frac{1}{N_K} \sum_j \frac{2^{rel_j} - 1}{\log_2(1 + \pi_j)} \, \sigma(\beta (K + \tfrac12 - \pi_j)), \qquad
      \pi_j = 1 + \sum_{i \ne j} \sigma(\alpha (s_i - s_j))$$

    (Qin, Liu, Li 2010; Eq. 4 and 5 of Bruch et al., "Revisiting Approximate Metric Optimization in the Age of Deep
    Neural Networks", SIGIR 2019, where nothing is cut.) The cut is placed between the ranks K and K + 1, so that the
    sharp limit is the exact metric. Without a cut it is TF-Ranking's `ApproxNDCGLoss(temperature=1 / alpha)` plus 1.

    Args:
      alpha: Inverse temperature of the positions, > 0; the papers search {0.1, 1, 10, 100}.
      beta: Inverse temperature of the cut, > 0; the papers search {0.1, 1, 10, 100}.
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers), "linear" for y (trec_eval).
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
      >>> loss = tfr_smooth.losses.ApproxNDCGLoss(alpha=100.0)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.341
    """

    def __init__(
        self,
        *,
        alpha: float = 10.0,
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        ragged: bool = False,
        name: str | None = "approx_ndcg_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(Approx(alpha, beta), NDCG(topn, gain), ragged=ragged, name=name, reduction=reduction)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class ApproxPrecisionLoss(MetricLoss):
    r"""1 - P@K over smooth positions: $1 - \frac{1}{K} \sum_j rel_j \, \sigma(\beta (K + \tfrac12 - \pi_j))$.

    $rel_j$ is 1 for a label >= 1, and $\pi_j = 1 + \sum_{i \ne j} \sigma(\alpha (s_i - s_j))$ (Qin, Liu, Li 2010).

    Args:
      alpha: Inverse temperature of the positions, > 0; the papers search {0.1, 1, 10, 100}.
      beta: Inverse temperature of the cut, > 0; the papers search {0.1, 1, 10, 100}.
      topn: The cut-off K, an integer >= 1.
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
      >>> loss = tfr_smooth.losses.ApproxPrecisionLoss(alpha=100.0, topn=2)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, 0]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.5
    """

    def __init__(
        self,
        *,
        alpha: float = 10.0,
        beta: float = 10.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "approx_precision_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(Approx(alpha, beta), Precision(topn), ragged=ragged, name=name, reduction=reduction)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class ApproxMAPLoss(MetricLoss):
    r"""1 - average precision over smooth positions.

    $$1 - \frac{1}{R} \sum_j \frac{rel_j}{\pi_j} \Big(1 + \sum_{i \ne j} rel_i \,
      \sigma(\beta (\pi_j - \tfrac12 - \pi_i))\Big), \qquad \pi_j = 1 + \sum_{i \ne j} \sigma(\alpha (s_i - s_j))$$

    with R relevant documents, those with a label >= 1 (Qin, Liu, Li 2010). The comparison of positions is placed
    between two ranks, so that the sharp limit is the exact metric.

    Args:
      alpha: Inverse temperature of the positions, > 0; the papers search {0.1, 1, 10, 100}.
      beta: Inverse temperature of the comparisons of positions, > 0; the papers search {0.1, 1, 10, 100}.
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
      >>> loss = tfr_smooth.losses.ApproxMAPLoss(alpha=100.0, beta=100.0)
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 4))
      0.1667
    """

    def __init__(
        self,
        *,
        alpha: float = 10.0,
        beta: float = 10.0,
        ragged: bool = False,
        name: str | None = "approx_map_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(Approx(alpha, beta), AveragePrecision(), ragged=ragged, name=name, reduction=reduction)
