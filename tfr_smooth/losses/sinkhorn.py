"""The Sinkhorn losses: NDCG, precision and average precision read off Sinkhorn's positions."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.losses.base import MetricLoss
from tfr_smooth.ops import Sinkhorn


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SinkhornNDCGLoss(MetricLoss):
    r"""1 - NDCG@K over Sinkhorn's positions.

    $$1 - \frac{1}{N_K} \sum_j \frac{2^{rel_j} - 1}{\log_2(1 + \pi_j)} \, \sigma(\beta (K + \tfrac12 - \pi_j)),
      \qquad \pi_j = \sum_k k \, Q_{jk}$$

    where $Q$ is the entropic optimal transport from the squashed scores to the ranks (`ops.Sinkhorn`) (Cuturi, Teboul,
    Vert, "Differentiable Ranks and Sorting using Optimal Transport", NeurIPS 2019, arXiv:1905.11885).

    Args:
      epsilon: Strength of the entropy, > 0; exact in the limit 0. The SmoothI paper searches {0.01, 0.1, 1, 10}.
      threshold: Largest error of a rank's sum at which a list's steps stop, > 0.
      max_iterations: Largest number of steps, >= 1.
      beta: Inverse temperature of the comparisons of positions, > 0 (`ops.PositionRanking`).
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers), "linear" for y (trec_eval).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out. A list of two documents has no gradient: only
    the order of standardised scores is left of it.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(T N^2) with T steps (tens to hundreds), memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SinkhornNDCGLoss(epsilon=0.001)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.341
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        threshold: float = 1e-3,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        ragged: bool = False,
        name: str | None = "sinkhorn_ndcg_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            Sinkhorn(epsilon, threshold, max_iterations, beta),
            NDCG(topn, gain),
            ragged=ragged,
            name=name,
            reduction=reduction,
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SinkhornPrecisionLoss(MetricLoss):
    r"""1 - P@K over Sinkhorn's positions.

    $$1 - \frac{1}{K} \sum_j rel_j \, \sigma(\beta (K + \tfrac12 - \pi_j)), \qquad \pi_j = \sum_k k \, Q_{jk}$$

    where $Q$ is the entropic optimal transport from the squashed scores to the ranks (`ops.Sinkhorn`); $rel_j$ is 1 for
    a label >= 1, else 0 (Cuturi, Teboul, Vert, "Differentiable Ranks and Sorting using Optimal Transport", NeurIPS
    2019, arXiv:1905.11885).

    Args:
      epsilon: Strength of the entropy, > 0; exact in the limit 0. The SmoothI paper searches {0.01, 0.1, 1, 10}.
      threshold: Largest error of a rank's sum at which a list's steps stop, > 0.
      max_iterations: Largest number of steps, >= 1.
      beta: Inverse temperature of the comparisons of positions, > 0 (`ops.PositionRanking`).
      topn: The cut-off K, an integer >= 1.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out. A list of two documents has no gradient: only
    the order of standardised scores is left of it.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(T N^2) with T steps (tens to hundreds), memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SinkhornPrecisionLoss(epsilon=0.001, beta=100.0, topn=2)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, 0]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.5
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        threshold: float = 1e-3,
        max_iterations: int = 2000,
        beta: float = 10.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "sinkhorn_precision_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            Sinkhorn(epsilon, threshold, max_iterations, beta),
            Precision(topn),
            ragged=ragged,
            name=name,
            reduction=reduction,
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SinkhornMAPLoss(MetricLoss):
    r"""1 - average precision over Sinkhorn's positions.

    $$1 - \frac{1}{R} \sum_j \frac{rel_j}{\pi_j} \Big(1 + \sum_{i \ne j} rel_i \, \sigma(\beta (\pi_j - \tfrac12 -
      \pi_i))\Big), \qquad \pi_j = \sum_k k \, Q_{jk}$$

    where $Q$ is the entropic optimal transport from the squashed scores to the ranks (`ops.Sinkhorn`); R documents are
    relevant, and $rel_j$ is 1 for a label >= 1, else 0 (Cuturi, Teboul, Vert, "Differentiable Ranks and Sorting using
    Optimal Transport", NeurIPS 2019, arXiv:1905.11885).

    Args:
      epsilon: Strength of the entropy, > 0; exact in the limit 0. The SmoothI paper searches {0.01, 0.1, 1, 10}.
      threshold: Largest error of a rank's sum at which a list's steps stop, > 0.
      max_iterations: Largest number of steps, >= 1.
      beta: Inverse temperature of the comparisons of positions, > 0 (`ops.PositionRanking`).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out. A list of two documents has no gradient: only
    the order of standardised scores is left of it.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(T N^2) with T steps (tens to hundreds), memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SinkhornMAPLoss(epsilon=0.001, beta=100.0)
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 4))
      0.1667
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        threshold: float = 1e-3,
        max_iterations: int = 2000,
        beta: float = 10.0,
        ragged: bool = False,
        name: str | None = "sinkhorn_map_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            Sinkhorn(epsilon, threshold, max_iterations, beta),
            AveragePrecision(),
            ragged=ragged,
            name=name,
            reduction=reduction,
        )
