"""The ListMLE loss, plain and position-aware."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import NDCG
from tfr_smooth.functional.list_mle import list_mle
from tfr_smooth.losses.base import RankingLoss


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class ListMLELoss(RankingLoss):
    r"""Negative log likelihood of the order by falling label $\pi$ under the Plackett-Luce model.

    $$\sum_{i=1}^N \alpha_i \left(\log \sum_{k=i}^N e^{s_{\pi(k)}} - s_{\pi(i)}\right), \qquad
      \alpha_i = 1 \text{ or } \frac{2^{N-i} - 1}{2^{N-1} - 1}$$

    (Xia et al., "Listwise Approach to Learning to Rank: Theory and Algorithm", ICML 2008; position-aware: Lan et al.,
    "Position-Aware ListMLE", UAI 2014, with their weights divided by the first, as $2^N$ overflows and would let the
    longest list drown the others.)

    Documents with the same label have no order: each takes their mean score and, in the sums, the mean of their $e^s$.
    So the result does not hang on positions in the list, and bounds from above the mean over all the orders that the
    labels allow. (Breaking ties by score instead would push equally relevant documents apart.)

    Args:
      position_aware: Whether early positions weigh more (p-ListMLE).
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none". At least 0; a sum over the documents, so that a long list weighs more than a short one. Lists
    without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time O(N log N), memory O(N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> labels, scores = tf.constant([[1.0, 2.0, 0.0, -1.0]]), tf.zeros([1, 4])
      >>> print(round(float(tfr_smooth.losses.ListMLELoss()(labels, scores)), 4))
      1.7918
      >>> print(round(float(tfr_smooth.losses.ListMLELoss(position_aware=True)(labels, scores)), 4))
      1.3297
    """

    def __init__(
        self,
        *,
        position_aware: bool = False,
        ragged: bool = False,
        name: str | None = "list_mle_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._position_aware = _arguments.boolean("position_aware", position_aware)

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ([batch] losses, [batch] whether the list has a relevant document)."""
        return list_mle(labels, scores, position_aware=self._position_aware), NDCG().has_relevant(labels)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"position_aware": self._position_aware, **super().get_config()}
