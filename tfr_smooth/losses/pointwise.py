"""Losses that compare each score with a target of its own."""

from __future__ import annotations

import abc

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _padded
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, RankingLoss
from tfr_smooth.losses.softmax import weighted_cross_entropy


class PointwiseLoss(RankingLoss):
    """Base class of means over documents, which weights multiply; empty lists are excluded.

    Lists without a relevant document are included, as labels of 0 are targets too.
    """

    learns_values = True

    @abc.abstractmethod
    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document.

        Args:
          labels: [batch, list], with 0 for padding.
          scores: [batch, list] (or [batch, list, num_scores]), float32 or float64, with 0 for padding.
          mask: [batch, list], bool, False for padding.

        Returns:
          [batch, list]. Values of padding have no effect.
        """

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch]: the mean over documents of their loss times their weight."""
        losses = _padded.fill(self.document_losses(labels, scores, mask), mask, 0.0)
        # Divided before they are summed, so that the sum does not overflow.
        return tf.reduce_sum(_padded.product(losses / _padded.count(mask, losses.dtype), weights), axis=1)

    def weight_shares(self, weights: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch]: the mean weight of the documents."""
        return _padded.list_weights(weights, tf.zeros_like(labels), mask)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for empty lists."""
        return tf.reduce_any(mask, axis=1)


@LOSSES.register("mean_squared")
class MeanSquaredLoss(PointwiseLoss):
    r"""Mean squared error of the scores as estimates of the labels: $\frac{1}{N} \sum_j (y_j - s_j)^2$.

    (The pointwise regression of Cossock and Zhang, "Subset Ranking Using Regression", COLT 2006.) The mean is over the
    N real documents of each list; TF-Ranking's mean is over all documents of the batch, including padding. Lists
    without a relevant document are included, as their labels of 0 are regression targets too; empty lists are excluded.
    The loss is at least 0. Weights of documents multiply the terms of the documents.

    The arguments are those of `RankingLoss`. Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 2.0, 9.0]])
      >>> print(losses.MeanSquaredLoss(reduction="none")(labels, scores).numpy())
      [2.5]
    """

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        return tf.square(labels - scores)


@LOSSES.register("sigmoid_cross_entropy")
class SigmoidCrossEntropyLoss(PointwiseLoss):
    r"""Mean binary cross entropy of the labels and the sigmoids of the scores.

    $$-\frac{1}{N} \sum_j \left[y_j \log \sigma(s_j) + (1 - y_j) \log (1 - \sigma(s_j))\right]$$

    (TF-Ranking's `SigmoidCrossEntropyLoss`.) The mean is over the N real documents of each list; TF-Ranking's mean is
    over all documents of the batch, including padding. Labels are probabilities, in [0, 1]; with larger labels, the
    loss has no lower bound. Lists without a relevant document are included, as their labels of 0 are targets too; empty
    lists are excluded. Weights of documents multiply the terms of the documents.

    The arguments are those of `RankingLoss`. Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[0.6, 0.8, 9.0]])
      >>> print(losses.SigmoidCrossEntropyLoss(reduction="none")(labels, scores).numpy().round(4))
      [0.8043]
    """

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, scores)


@LOSSES.register("regression_compatible")
class RegressionCompatibleLoss(SigmoidCrossEntropyLoss):
    r"""Sigmoid cross entropy plus the cross entropy of the labels and the normalized sigmoids of the scores.

    $$-\frac{1 - w}{N} \sum_j \left[y_j \log \sigma(s_j) + (1 - y_j) \log (1 - \sigma(s_j))\right]
      - \frac{w}{\sum_l y_l} \sum_j y_j \log \frac{\sigma(s_j)}{\sum_l \sigma(s_l)}$$

    (Bai et al., "Regression Compatible Listwise Objectives for Calibrated Ranking with Binary Relevance", CIKM 2023:
    SigmoidCE and ListCE.) Both terms are at their minimum where $\sigma(s_j)$ is the probability of relevance, so the
    ranking term does not oppose the calibration, as a softmax loss does. The loss is at least 0 for labels in [0, 1];
    with larger labels, the first term has no lower bound. Lists without a relevant document are included, with 0 for
    the second term; empty lists are excluded. Weights of documents multiply the terms of the documents.

    Args:
      list_weight: The weight $w$ of the listwise term, in [0, 1].
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.RegressionCompatibleLoss(list_weight=0.5)
      >>> print(loss(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]])).numpy().round(4))
      0.7656
    """

    def __init__(self, *, list_weight: float = 0.5, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.list_weight = _arguments.real("list_weight", list_weight, least=0.0, most=1.0)

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists; weights of documents are those of the terms of both sums."""
        # The softmax of the logarithms of the sigmoids.
        listwise = weighted_cross_entropy(labels, tf.math.log_sigmoid(scores), mask, weights, 1.0)
        listwise = tf.math.divide_no_nan(listwise, tf.reduce_sum(labels, axis=1))
        pointwise = super().weighted(labels, scores, mask, weights)
        return (1.0 - self.list_weight) * pointwise + self.list_weight * listwise
