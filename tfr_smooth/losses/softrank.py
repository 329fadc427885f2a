"""The SoftRank losses: NDCG and precision expected when scores are noisy."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import NDCG, Precision
from tfr_smooth.losses.base import MetricLoss
from tfr_smooth.ops import SoftRank
from tfr_smooth.ops.discounts import Discount


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SoftNDCGLoss(MetricLoss):
    r"""1 - SoftNDCG@K: NDCG expected when every score has Gaussian noise.

    $$1 - \frac{1}{N_K} \sum_j (2^{rel_j} - 1) \sum_{r < K} D(r) \, p_j(r), \qquad D(r) = \frac{1}{\log_2(2 + r)}$$

    where $p_j(r)$ is the probability that document j is at rank r, the Rank-Binomial distribution of independent
    contests that i wins over j with $\pi_{ij} = \Phi((s_i - s_j) / \sqrt{2 \sigma^2})$ (Eq. 9 to 15 of Taylor et al.,
    "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008).

    Args:
      sigma: The deviation of a score, > 0, in the unit of the scores.
      topn: The cut-off K; None for the whole list.
      gain: "exponential" for 2^y - 1 (the paper), "linear" for y (trec_eval).
      discount: "log2"; or another to train with (the paper's section 4.7): "linear", `ops.ShallowDiscount(alpha)`, a
        table, or a function of the rank. A config keeps the first and the table.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Without a cut: time O(M N^2) with M about 20, memory O(N^2) a list. With one: time O(K N^2), memory O(N^2 + K N),
    and for the gradient O((N / 16 + 16) K N) (`ops.expected_discount`).

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SoftNDCGLoss(sigma=0.01)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 4))
      0.341
    """

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        topn: int | None = None,
        gain: str = "exponential",
        discount: Discount = "log2",
        ragged: bool = False,
        name: str | None = "soft_ndcg_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(SoftRank(sigma), NDCG(topn, gain, discount), ragged=ragged, name=name, reduction=reduction)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SoftPrecisionLoss(MetricLoss):
    r"""1 - SoftPrecision@K: $1 - \frac{1}{K} \sum_j rel_j \sum_{r < K} p_j(r)$, precision when scores are noisy.

    $rel_j$ is 1 for a label >= 1, and $p_j(r)$ the probability that document j is at rank r, counted from 0 (Eq. 12 of
    Taylor et al., "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008).

    Args:
      sigma: The deviation of a score, > 0, in the unit of the scores.
      topn: The cut-off K; None for the number of real documents.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(K N^2), memory O(N^2 + K N), and for the gradient O((N / 16 + 16) K N), a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.SoftPrecisionLoss(sigma=0.01, topn=2)
      >>> print(round(float(loss(tf.constant([[0, 2, 1, 0]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
      0.5
    """

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        topn: int | None = 10,
        ragged: bool = False,
        name: str | None = "soft_precision_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(SoftRank(sigma), Precision(topn), ragged=ragged, name=name, reduction=reduction)
