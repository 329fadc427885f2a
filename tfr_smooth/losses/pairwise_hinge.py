"""The pairwise hinge loss."""

from __future__ import annotations

from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _about
from tfr_smooth.losses.pairwise import PairwiseLoss


class PairwiseHingeLoss(PairwiseLoss):
    r"""Hinge loss over the pairs of documents with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \, \max(0, 1 - (s_i - s_j) / \tau)$$

    (Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002, Optimization Problem 1 without its
    regularizer; TF-Ranking's `PairwiseHingeLoss`.) N is the number of documents in the list, and w is 1 or the
    `lambda_weight`. TF-Ranking divides the sum over a batch by its number of documents, including padding; without
    padding, the losses are equal. The temperature is the margin, up to a factor. Lists with only one distinct label are
    excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      lambda_weight: Weights of the pairs, such as `NDCGLambdaWeight()`. None uses 1.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[0.6, 0.8, 9.0]])
      >>> print(losses.PairwiseHingeLoss(reduction="none")(labels, scores).numpy().round(4))
      [0.6]
    """

    about: ClassVar = _about.AboutLoss(name="pairwise_hinge", citation="Joachims 2002", cost=("N^2", "N^2"))

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the loss of pairs of which the first document should be ranked above the second, elementwise."""
        return tf.nn.relu(1.0 + behind)
