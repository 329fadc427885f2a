"""The FastSort losses: NDCG, precision and average precision read off FastSort's positions."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import NDCG, AveragePrecision, Precision
from tfr_smooth.losses.base import MetricLoss
from tfr_smooth.ops import FastSort


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class FastSortNDCGLoss(MetricLoss):
    r"""1 - NDCG@K over FastSort's positions.

    $$1 - \frac{1}{N_K} \sum_j \frac{2^{rel_j} - 1}{\log_2(1 + \pi_j)} \, \sigma(\beta (K + \tfrac12 - \pi_j)),
      \qquad \pi = P(-s / \epsilon)$$

    where $P$ is the projection onto the permutahedron of the ranks ("l2", or by Kullback-Leibler divergence "kl")
    (Blondel et al., "Fast Differentiable Sorting and Ranking", ICML 2020, arXiv:2002.08871, Section 5).

    Args:
      regularization_strength: Epsilon, > 0; exact below the smallest gap between scores, where the gradient is 0. The
        SmoothI paper searches {0.01, 0.1, 1, 10}.
      regularization: "l2" or "kl".
      beta: Inverse temperature of the comparisons of positions, > 0 (`ops.PositionRanking`).
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the papers), "linear" for y (trec_eval).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + T N) with T rounds of pooling (a handful for most lists), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.FastSortNDCGLoss(regularization_strength=0.1)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.341
    """

    def __init__(
        self,
        *,
        regularization_strength: float = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = None,
        gain: str = "exponential",
        ragged: bool = False,
        name: str | None = "fastsort_ndcg_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            FastSort(regularization_strength, regularization, beta),
            NDCG(topn, gain),
            ragged=ragged,
            name=name,
            reduction=reduction,
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class FastSortPrecisionLoss(MetricLoss):
    r"""1 - P@K over FastSort's positions.

    $$1 - \frac{1}{K} \sum_j rel_j \, \sigma(\beta (K + \tfrac12 - \pi_j)), \qquad \pi = P(-s / \epsilon)$$

    where $P$ is the projection onto the permutahedron of the ranks ("l2", or by Kullback-Leibler divergence "kl");
    $rel_j$ is 1 for a label >= 1, else 0 (Blondel et al., "Fast Differentiable Sorting and Ranking", ICML 2020,
    arXiv:2002.08871, Section 5).

    Args:
      regularization_strength: Epsilon, > 0; exact below the smallest gap between scores, where the gradient is 0. The
        SmoothI paper searches {0.01, 0.1, 1, 10}.
      regularization: "l2" or "kl".
      beta: Inverse temperature of the comparisons of positions, > 0 (`ops.PositionRanking`).
      topn: The cut-off K, an integer >= 1.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N + T N) with T rounds of pooling (a handful for most lists), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.FastSortPrecisionLoss(regularization_strength=0.1, beta=100.0, topn=2)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, 0]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.5
    """

    def __init__(
        self,
        *,
        regularization_strength: float = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "fastsort_precision_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            FastSort(regularization_strength, regularization, beta),
            Precision(topn),
            ragged=ragged,
            name=name,
            reduction=reduction,
        )


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class FastSortMAPLoss(MetricLoss):
    r"""1 - average precision over FastSort's positions.

    $$1 - \frac{1}{R} \sum_j \frac{rel_j}{\pi_j} \Big(1 + \sum_{i \ne j} rel_i \, \sigma(\beta (\pi_j - \tfrac12 -
      \pi_i))\Big), \qquad \pi = P(-s / \epsilon)$$

    where $P$ is the projection onto the permutahedron of the ranks ("l2", or by Kullback-Leibler divergence "kl"); R
    documents are relevant, and $rel_j$ is 1 for a label >= 1, else 0 (Blondel et al., "Fast Differentiable Sorting and
    Ranking", ICML 2020, arXiv:2002.08871, Section 5).

    Args:
      regularization_strength: Epsilon, > 0; exact below the smallest gap between scores, where the gradient is 0. The
        SmoothI paper searches {0.01, 0.1, 1, 10}.
      regularization: "l2" or "kl".
      beta: Inverse temperature of the comparisons of positions, > 0 (`ops.PositionRanking`).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N^2 + T N) with T rounds of pooling (a handful for most lists), memory O(N^2) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.FastSortMAPLoss(regularization_strength=0.1, beta=100.0)
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 4))
      0.1667
    """

    def __init__(
        self,
        *,
        regularization_strength: float = 1.0,
        regularization: str = "l2",
        beta: float = 10.0,
        ragged: bool = False,
        name: str | None = "fastsort_map_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(
            FastSort(regularization_strength, regularization, beta),
            AveragePrecision(),
            ragged=ragged,
            name=name,
            reduction=reduction,
        )
