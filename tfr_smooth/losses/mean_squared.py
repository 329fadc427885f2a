"""The mean squared error."""

from __future__ import annotations

import tensorflow as tf

from tfr_smooth.functional import real_documents
from tfr_smooth.functional.mean_squared import mean_squared
from tfr_smooth.losses.base import RankingLoss


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class MeanSquaredLoss(RankingLoss):
    r"""Mean squared error of the scores as estimates of the labels: $\frac{1}{N} \sum_j (y_j - s_j)^2$.

    (The pointwise regression of Cossock and Zhang, "Subset Ranking Using Regression", COLT 2006.) The mean over a
    list's N real documents, and then over lists; TF-Ranking's is over the padded documents of the batch.

    Args:
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At least 0; infinite, with a finite gradient, where a square is more than the type holds
    (errors above 1.8e19 in float32). Lists without a relevant document count, unlike with every other loss: that their
    scores should be 0 is as much information as any. Only lists of padding are left out.

    Raises:
      ValueError: If an argument is not one of these or the shapes do not match.

    Time and memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.MeanSquaredLoss()
      >>> print(float(loss(tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 2.0, 9.0]]))))
      2.5
    """

    def __init__(
        self,
        *,
        ragged: bool = False,
        name: str | None = "mean_squared_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ([batch] losses, [batch] whether the list has a real document)."""
        return mean_squared(labels, scores), tf.reduce_any(real_documents(labels), axis=1)
