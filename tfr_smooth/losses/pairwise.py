"""Losses over pairs of documents."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import tensorflow as tf

from tfr_smooth import _arguments, _lists, _serialization
from tfr_smooth.losses.lambda_weights import LambdaWeight
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PairwiseLoss(RankingLoss):
    """Base class of weighted sums over pairs with different labels; lists without such pairs are excluded."""

    def __init__(
        self, *, lambda_weight: LambdaWeight | None = None, temperature: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**options)
        self.lambda_weight = _arguments.instance("lambda_weight", lambda_weight, LambdaWeight, optional=True)
        self.temperature = _arguments.real("temperature", temperature, above=0.0)

    @abc.abstractmethod
    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        r"""Returns the losses of pairs, elementwise, from their $(s_j - s_i) / \tau$ if $y_i > y_j$."""

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        weights = tf.cast(_lists.preferences(labels, mask), scores.dtype)
        if self.lambda_weight is not None:
            weights *= self.lambda_weight.pair_weights(labels, scores, mask)
        behind = scaled_differences(scores, tf.convert_to_tensor(1.0 / self.temperature, scores.dtype))
        # Divided before they are summed, so that the sum does not overflow.
        return tf.reduce_sum(
            weights / _lists.count(mask, scores.dtype)[:, :, tf.newaxis] * self.pair_losses(behind), axis=[1, 2]
        )

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _lists.varies(labels, mask)


@_serialization.register
class PairwiseHingeLoss(PairwiseLoss):
    r"""Hinge loss over the pairs of documents with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \, \max(0, 1 - (s_i - s_j) / \tau)$$

    (Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002, Optimization Problem 1 without its
    regularizer; TF-Ranking's `PairwiseHingeLoss`.) N is the number of documents in the list, and w is 1 or the
    `lambda_weight`. TF-Ranking divides the sum over a batch by its number of documents, including padding; without
    padding, the losses are equal. The temperature is the margin, up to a factor. Lists with only one distinct label are
    excluded.

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

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the loss of pairs of which the first document should be ranked above the second, elementwise."""
        return tf.nn.relu(1.0 + behind)


@_serialization.register
class PairwiseLogisticLoss(PairwiseLoss):
    r"""Logistic loss over the pairs of documents with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \, \log(1 + e^{-(s_i - s_j) / \tau})$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3; TF-Ranking's `PairwiseLogisticLoss`.) N
    is the number of documents in the list, and w is 1 or the `lambda_weight`. TF-Ranking divides the sum over a batch
    by its number of documents, including padding; without padding, the losses are equal. `RankNetLoss` is the mean over
    the pairs instead. Lists with only one distinct label are excluded.

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
      >>> print(losses.PairwiseLogisticLoss(reduction="none")(labels, scores).numpy().round(4))
      [0.3991]
    """

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the loss of pairs of which the first document should be ranked above the second, elementwise."""
        return tf.nn.softplus(behind)


@_serialization.register
class PairwiseSoftZeroOneLoss(PairwiseLoss):
    r"""Soft number of pairs in the wrong order, over the pairs of documents with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \, \left(1 - \sigma((s_i - s_j) / \tau)\right)$$

    (TF-Ranking's `PairwiseSoftZeroOneLoss`: a sigmoid in place of the zero-one loss.) N is the number of documents in
    the list, and w is 1 or the `lambda_weight`. TF-Ranking divides the sum over a batch by its number of documents,
    including padding; without padding, the losses are equal. For a small temperature, the sum is the number of pairs in
    the wrong order. Lists with only one distinct label are excluded.

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
      >>> print(losses.PairwiseSoftZeroOneLoss(reduction="none")(labels, scores).numpy().round(4))
      [0.2749]
    """

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the loss of pairs of which the first document should be ranked above the second, elementwise."""
        return tf.sigmoid(behind)


@_serialization.register
class PairwiseMSELoss(PairwiseLoss):
    r"""Squared error of the differences of scores as estimates of the differences of labels, over all pairs.

    $$\frac{1}{N} \sum_{i \neq j} w_{ij} \left(\frac{s_i - s_j}{\tau} - (y_i - y_j)\right)^2$$

    (TF-Ranking's `PairwiseMSELoss`.) N is the number of documents in the list, and w is 1 or the `lambda_weight`. With
    w = 1, this is $2 \sum_i (e_i - \bar e)^2$ with the errors $e_i = s_i / \tau - y_i$: the variance of the errors.
    TF-Ranking divides the sum over a batch by its number of documents, including padding; without padding, the losses
    are equal. Lists with fewer than two documents are excluded. Errors are clipped to the largest value with a finite
    square.

    Args:
      lambda_weight: Weights of the pairs, such as `NDCGLambdaWeight()`. None uses 1.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list, O(N^2) with a `lambda_weight`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[0.6, 0.8, 9.0]])
      >>> print(losses.PairwiseMSELoss(reduction="none")(labels, scores).numpy().round(4))
      [1.44]
    """

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the squares of the differences of two errors, [batch, list, list]."""
        return squares(behind, tf.square(4.0 * tf.cast(_lists.length(behind), behind.dtype)))

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        count = _lists.count(mask, scores.dtype)
        limit = scores.dtype.max / 8.0 * min(self.temperature, 1.0)
        # No quotients: TensorFlow also computes their derivatives by the divisor, which overflow.
        errors = tf.clip_by_value(scores, -limit, limit) * (1.0 / self.temperature) - labels  # 0 at padding
        if self.lambda_weight is None:
            mean = tf.reduce_sum(errors * tf.math.reciprocal(count), axis=1, keepdims=True)
            centered = _lists.fill(errors - mean, mask, 0.0)
            return 2.0 * tf.reduce_sum(squares(centered, count), axis=1)
        rows, columns = _lists.pairs(errors)
        weights = _lists.fill(self.lambda_weight.pair_weights(labels, scores, mask), _lists.different_pairs(mask), 0.0)
        return tf.reduce_sum(weights / count[:, :, tf.newaxis] * self.pair_losses(rows - columns), axis=[1, 2])

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with fewer than two documents."""
        return tf.reduce_sum(tf.cast(mask, tf.int32), axis=1) > 1


@_serialization.register
class RankNetLoss(RankingLoss):
    r"""Mean logistic loss over the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{-\sigma (s_i - s_j)}), \qquad P = \{(i, j): y_i > y_j\}$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.) The
    loss is the mean over the pairs of each list, not their sum: a list has up to N^2 pairs, so a list of 1000 documents
    would have the weight of ten thousand lists of 10. `PairwiseLogisticLoss` is TF-Ranking's sum over pairs. The loss
    is at least 0, and log 2 if all scores are tied. Lists with only one distinct label are excluded.

    Args:
      sigma: Slope of the logistic function, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `sigma` is out of range.

    Time and memory O(N^2) per list: a few [batch, list, list] tensors.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[2.0, 2.0, 9.0]])
      >>> print(losses.RankNetLoss(sigma=1.0, reduction="none")(labels, scores).numpy().round(4))
      [0.6931]
    """

    def __init__(self, *, sigma: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.sigma = _arguments.real("sigma", sigma, above=0.0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        pairs = tf.cast(_lists.preferences(labels, mask), scores.dtype)
        total = tf.reduce_sum(pairs * logistic(scores, self.sigma), axis=[1, 2])
        return tf.math.divide_no_nan(total, tf.reduce_sum(pairs, axis=[1, 2]))

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _lists.varies(labels, mask)


def logistic(scores: tf.Tensor, sigma: float | tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\log(1 + e^{-\sigma (s_i - s_j)})$ at (i, j).

    Args:
      scores: [batch, list].
      sigma: Slope of the logistic function, > 0.
    """
    return tf.nn.softplus(scaled_differences(scores, tf.convert_to_tensor(sigma, scores.dtype)))


def scaled_differences(scores: tf.Tensor, sigma: tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\sigma (s_j - s_i)$ at (i, j)."""
    # Avoids overflow of the products with sigma.
    limit = scores.dtype.max / 4.0 / tf.maximum(sigma, 1.0)
    rows, columns = _lists.pairs(tf.clip_by_value(scores, -limit, limit))
    return sigma * (columns - rows)


def squares(errors: tf.Tensor, terms: tf.Tensor) -> tf.Tensor:
    """Returns the squares of errors, clipped to the largest value for which a sum of squares is finite.

    Args:
      errors: Floats of any shape.
      terms: The number of squares in the sum, >= 1, in a shape that broadcasts to that of the errors.
    """
    largest = tf.sqrt(errors.dtype.max / 4.0 / terms)
    # Not errors + stop_gradient(clipped - errors), which rounds to 0 where the error is much larger.
    return tf.square(tf.grad_pass_through(lambda errors: tf.clip_by_value(errors, -largest, largest))(errors))
