"""The ListAP loss."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.functional import AveragePrecision
from tfr_smooth.functional.list_ap import list_ap
from tfr_smooth.losses.base import RankingLoss


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class ListAPLoss(RankingLoss):
    r"""1 - average precision of a histogram of the scores.

    $$1 - \sum_{m=1}^M \frac{\sum_{m' \le m} h^+_{m'}}{\sum_{m' \le m} h_{m'}} \frac{h^+_m}{R}$$

    where $h_m$ counts the documents, and $h^+_m$ the R relevant ones (label >= 1), in bin m, from the highest scores
    down; a document between two bin centres is shared by them (Revaud et al., ICCV 2019, arXiv:1906.07589). The paper
    bins similarities in [-1, 1]; scores are squashed to that by $\tanh((s_j - \bar s) / \tau)$ with the list's mean
    (`functional.list_ap`).

    Args:
      num_bins: The number of bins M, an integer >= 2; the paper has 20. More bins, less smooth.
      temperature: What scores are divided by, > 0: beyond a few of it from the mean, documents share the outer bins.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the loss.
      reduction: "sum_over_batch_size", "sum" or "none".

    Call with labels [batch, list] (float or int, >= 0; < 0 is padding) and scores [batch, list]; returns a scalar, or
    [batch] with "none", in [0, 1]. Lists without a relevant document are left out.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory O(M N) a list.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.losses.ListAPLoss()
      >>> print(round(float(loss(tf.constant([[1, 0, 1]]), tf.constant([[3.0, 2.0, 1.0]]))), 3))
      0.181
    """

    def __init__(
        self,
        *,
        num_bins: int = 20,
        temperature: float = 1.0,
        ragged: bool = False,
        name: str | None = "list_ap_loss",
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(ragged=ragged, name=name, reduction=reduction)
        self._num_bins = _arguments.integer("num_bins", num_bins, least=2)
        self._temperature = _arguments.real("temperature", temperature, above=0.0)

    def list_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ([batch] losses, [batch] whether the list has a relevant document)."""
        value = list_ap(labels, scores, num_bins=self._num_bins, temperature=self._temperature)
        return 1.0 - value, AveragePrecision().has_relevant(labels)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"num_bins": self._num_bins, "temperature": self._temperature, **super().get_config()}
