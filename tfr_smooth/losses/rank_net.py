"""The RankNet loss."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional.rank_net import has_preferences, rank_net
from tfr_smooth.losses.base import RankingLoss


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class RankNetLoss(RankingLoss):
    r"""Logistic loss of the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{-\sigma (s_i - s_j)}), \qquad P = \{(i, j): y_i > y_j\}$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.) The
    mean over a list's pairs, not their sum: there are up to N^2 of them, and a list of 1000 documents would count as
    much as ten thousand of 10. TF-Ranking divides the sum over a batch by the number of its documents, padding
    included, so that its loss grows with N and shrinks with padding.

    Args:
      sigma: Slope of the logistic function, > 0.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At least 0, and log 2 where all scores are tied. Lists whose labels are all the same are left
    out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory O(N^2) a list: a few [batch, list, list] tensors.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.RankNetLoss()
      >>> print(round(float(loss(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]]))), 4))
      0.6931
    """

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        ragged: bool = False,
        name: str | None = "rank_net_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._sigma = _arguments.real("sigma", sigma, above=0.0)

    def passes_over_pairs(self) -> int:
        """Returns 1."""
        return 1

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ([batch] losses, [batch] whether the list has two different labels)."""
        return rank_net(labels, scores, sigma=self._sigma), has_preferences(labels)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"sigma": self._sigma, **super().get_config()}
