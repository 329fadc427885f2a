"""The ListNet loss."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import NDCG
from tfr_smooth.functional.list_net import list_net
from tfr_smooth.losses.base import RankingLoss


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class ListNetLoss(RankingLoss):
    r"""Cross entropy between the top-one distributions of labels and scores.

    $$-\sum_j \mathrm{softmax}(y)_j \log \mathrm{softmax}(s / \tau)_j$$

    (Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007.) TF-Ranking's SoftmaxLoss
    differs: its targets are $y_j / \sum_k y_k$, so that a label of 0 has no part in them, and lists weigh
    $\sum_k y_k$.

    Args:
      temperature: What scores are divided by, > 0; the paper has 1.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At least the entropy of the labels' distribution. Lists without a relevant document are left
    out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.ListNetLoss()
      >>> print(round(float(loss(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 0.0, 5.0]]))), 4))
      0.5822
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        ragged: bool = False,
        name: str | None = "list_net_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._temperature = _arguments.real("temperature", temperature, above=0.0)

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ([batch] losses, [batch] whether the list has a relevant document)."""
        return list_net(labels, scores, temperature=self._temperature), NDCG().has_relevant(labels)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"temperature": self._temperature, **super().get_config()}
