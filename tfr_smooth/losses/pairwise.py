"""Losses over pairs of documents."""

from __future__ import annotations

import abc
from typing import NamedTuple

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.losses import lambda_weights
from tfr_smooth.losses.lambda_weights import LambdaWeight
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, RankingLoss, TemperedLoss

# The pairs of documents of which a program holds a few arrays, 128 MB each in float32. Not tuned: YetiLogistic with
# 5,000 documents takes 2.5 GB instead of 13.
_MOST_PAIRS = 2**25


class PairwiseLoss(TemperedLoss):
    """Base class of weighted sums over pairs with different labels; lists without such pairs are excluded.

    The weight of a document multiplies its pairs with documents of lower labels.
    """

    degree = 1  # of the growth of the loss of a pair with the difference of its scores

    def __init__(
        self, *, lambda_weight: LambdaWeight | None = None, temperature: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.lambda_weight = _arguments.instance("lambda_weight", lambda_weight, LambdaWeight, optional=True)

    @abc.abstractmethod
    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        r"""Returns the losses of pairs, elementwise, from their $(s_j - s_i) / \tau$ if $y_i > y_j$."""

    def differences(self, labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        """Returns the inputs of `pair_losses`, [batch, list, list]."""
        del labels
        return scaled_differences(scores, 1.0 / self.temperature)

    def chosen(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the pairs that count, [batch, list, list] bool: those whose first document has the higher label."""
        return _padded.preferences(labels, mask)

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        pairs = tf.cast(self.chosen(labels, mask), scores.dtype) / _padded.count(mask, scores.dtype)[:, :, tf.newaxis]
        behind = self.differences(labels, scores)
        if self.lambda_weight is not None:
            pairs *= self.lambda_weight.pair_weights(labels, scores, mask)
        if self.lambda_weight is not None or self.degree > 1:
            largest = _largest_loss(tf.reduce_sum(pairs, axis=[1, 2]))
            behind = _padded.clipped(behind, tf.pow(largest, 1.0 / self.degree))
        of_documents = tf.reduce_sum(pairs * self.pair_losses(behind), axis=2)
        return tf.reduce_sum(_padded.product(of_documents, weights), axis=1)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _padded.varies(labels, mask)


@LOSSES.register("pairwise_hinge")
class PairwiseHingeLoss(PairwiseLoss):
    r"""Hinge loss over the pairs of documents with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \, \max(0, 1 - (s_i - s_j) / \tau)$$

    (Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002, Optimization Problem 1 without its
    regularizer; TF-Ranking's `PairwiseHingeLoss`.) N is the number of documents in the list, and w is 1 or the
    `lambda_weight`. TF-Ranking divides the sum over a batch by its number of documents, including padding; without
    padding, the losses are equal. The temperature is the margin, up to a factor. Lists with only one distinct label are
    excluded. The weight of a document multiplies its pairs with documents of lower labels.

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


@LOSSES.register("pairwise_logistic")
class PairwiseLogisticLoss(PairwiseLoss):
    r"""Logistic loss over the pairs of documents with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \, \log(1 + e^{-(s_i - s_j) / \tau})$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3; TF-Ranking's `PairwiseLogisticLoss`.) N
    is the number of documents in the list, and w is 1 or the `lambda_weight`. TF-Ranking divides the sum over a batch
    by its number of documents, including padding; without padding, the losses are equal. `RankNetLoss` is the mean over
    the pairs instead. Lists with only one distinct label are excluded. The weight of a document multiplies its pairs
    with documents of lower labels.

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

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        if self.lambda_weight is None:
            return super().weighted(labels, scores, mask, weights)
        gains = self.lambda_weight.pair_gains(labels, mask) / _padded.count(mask, labels.dtype)
        rank_sums = self.lambda_weight.rank_sums(_compiled.padded_length(_padded.length(scores)))
        return weighted_logistic(scores, labels, mask, weights, gains, rank_sums, 1.0 / self.temperature)

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the loss of pairs of which the first document should be ranked above the second, elementwise."""
        return tf.nn.softplus(behind)


@LOSSES.register("pairwise_soft_zero_one")
class PairwiseSoftZeroOneLoss(PairwiseLoss):
    r"""Soft number of pairs in the wrong order, over the pairs of documents with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \, \left(1 - \sigma((s_i - s_j) / \tau)\right)$$

    (TF-Ranking's `PairwiseSoftZeroOneLoss`: a sigmoid in place of the zero-one loss.) N is the number of documents in
    the list, and w is 1 or the `lambda_weight`. TF-Ranking divides the sum over a batch by its number of documents,
    including padding; without padding, the losses are equal. For a small temperature, the sum is the number of pairs in
    the wrong order. Lists with only one distinct label are excluded. The weight of a document multiplies its pairs with
    documents of lower labels.

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


@LOSSES.register("pairwise_mse")
class PairwiseMSELoss(PairwiseLoss):
    r"""Squared error of the differences of scores as estimates of the differences of labels, over all pairs.

    $$\frac{1}{N} \sum_{i \neq j} w_{ij} \left(\frac{s_i - s_j}{\tau} - (y_i - y_j)\right)^2$$

    (TF-Ranking's `PairwiseMSELoss`.) N is the number of documents in the list, and w is 1 or the `lambda_weight`. With
    w = 1, this is $2 \sum_i (e_i - \bar e)^2$ with the errors $e_i = s_i / \tau - y_i$: the variance of the errors.
    TF-Ranking divides the sum over a batch by its number of documents, including padding; without padding, the losses
    are equal. Lists with fewer than two documents are excluded. Errors are clipped to the largest value with a finite
    sum of squares. The weight of a document multiplies the pairs (i, j) of which it is the first; each pair counts in
    both orders.

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
      >>> print(losses.PairwiseMSELoss(reduction="none")(labels, scores).numpy().round(4))
      [1.44]
    """

    degree = 2

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the squares of the differences of two errors, [batch, list, list]."""
        return tf.square(behind)

    def differences(self, labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        """Returns the differences of errors, [batch, list, list]."""
        return scaled_differences(_padded.clipped(scores / self.temperature - labels, _padded.LARGEST_SCORE), 1.0)

    def chosen(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns all pairs of two real documents, [batch, list, list] bool."""
        return _padded.different_pairs(mask)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with fewer than two documents."""
        return tf.reduce_sum(tf.cast(mask, tf.int32), axis=1) > 1


@LOSSES.register("pairwise_qr")
class PairwiseQRLoss(PairwiseLoss):
    r"""Quantile regression of the differences of labels by those of scores, over the pairs with different labels.

    $$\frac{1}{N} \sum_{i, j: y_i > y_j} w_{ij} \left(q \max(0, d_{ij})^p + (1 - q) \max(0, -d_{ij})^p\right), \qquad
      d_{ij} = (y_i - y_j) - \frac{s_i - s_j}{\tau}$$

    (Rax's `pairwise_qr_loss`.) N is the number of documents in the list, w is 1 or the `lambda_weight`, and p is 1, or
    2 if `squared`. A quantile q above 1/2 costs more where scores differ too little. Lists with only one distinct label
    are excluded. The weight of a document multiplies its pairs with documents of lower labels.

    Args:
      quantile: q, in [0, 1]; Rax's `tau`.
      squared: Whether the terms are squared.
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
      >>> print(losses.PairwiseQRLoss(quantile=0.9, reduction="none")(labels, scores).numpy().round(4))
      [0.54]
    """

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        squared: bool = False,
        lambda_weight: LambdaWeight | None = None,
        temperature: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(lambda_weight=lambda_weight, temperature=temperature, **options)
        self.quantile = _arguments.real("quantile", quantile, least=0.0, most=1.0)
        self.squared = _arguments.boolean("squared", squared)
        self.degree = 2 if self.squared else 1

    def differences(self, labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        """Returns how far the scores of pairs are behind their labels, [batch, list, list]."""
        return super().differences(labels, scores) - scaled_differences(labels, 1.0)

    def pair_losses(self, behind: tf.Tensor) -> tf.Tensor:
        """Returns the loss of pairs, elementwise."""
        over, under = (tf.pow(tf.nn.relu(sign * behind), self.degree) for sign in (1.0, -1.0))
        return self.quantile * over + (1.0 - self.quantile) * under


@LOSSES.register("rank_net")
class RankNetLoss(RankingLoss):
    r"""Mean logistic loss over the pairs of documents with different labels.

    $$\frac{1}{|P|} \sum_{(i, j) \in P} \log(1 + e^{-\sigma (s_i - s_j)}), \qquad P = \{(i, j): y_i > y_j\}$$

    (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005, Eq. 3 with a target probability of 1.) The
    loss is the mean over the pairs of each list, not their sum: a list has up to N^2 pairs, so a list of 1000 documents
    would have the weight of ten thousand lists of 10. `PairwiseLogisticLoss` is TF-Ranking's sum over pairs. The loss
    is at least 0, and log 2 if all scores are tied. Lists with only one distinct label are excluded. The weight of a
    document multiplies its pairs with documents of lower labels.

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

    shift_invariant = True

    def __init__(self, *, sigma: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.sigma = _arguments.scale("sigma", sigma)

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch]: the mean over pairs of their loss times the weight of the preferred document."""
        pairs = tf.cast(_padded.preferences(labels, mask), scores.dtype)
        of_documents = tf.reduce_sum(pairs * tf.nn.softplus(scaled_differences(scores, self.sigma)), axis=2)
        means = tf.math.divide_no_nan(of_documents, tf.reduce_sum(pairs, axis=[1, 2])[:, tf.newaxis])
        return tf.reduce_sum(_padded.product(means, weights), axis=1)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _padded.varies(labels, mask)


def scaled_differences(scores: tf.Tensor, sigma: float | tf.Tensor) -> tf.Tensor:
    r"""Returns [batch, list, list]: $\sigma (s_j - s_i)$ at (i, j)."""
    rows, columns = _padded.pairs(scores)
    return sigma * (columns - rows)


def _largest_loss(weights: tf.Tensor) -> tf.Tensor:
    """Returns the largest loss of a pair, [batch, 1, 1], whose sum with weights of this total, [batch], is finite."""
    return (weights.dtype.max / 8.0 / (1.0 + weights))[:, tf.newaxis, tf.newaxis]


class _Pairs(NamedTuple):
    """What the sum over pairs depends on besides the scores; see `weighted_logistic`."""

    labels: tf.Tensor
    mask: tf.Tensor
    weights: tf.Tensor
    gains: tf.Tensor
    rank_sums: tf.Tensor
    sigma: tf.Tensor
    all_pairs: tf.Tensor

    def effects(self, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the effects of the pairs, [batch, list, list], and the largest loss of a pair, [batch, 1, 1]."""
        rows, columns = _padded.pairs(self.gains)
        chosen = _padded.preferences(self.labels, self.mask)
        chosen = tf.where(self.all_pairs, _padded.different_pairs(self.mask), chosen)
        differences = tf.abs(rows - tf.where(self.all_pairs, tf.zeros_like(columns), columns))
        of_ranks = lambda_weights.over_orders_of_ties(self.rank_sums, scores, self.mask)
        # The mean over orders does not change the total of R.
        total = 2.0 * tf.reduce_max(tf.abs(self.gains), axis=1) * tf.cast(self.rank_sums[-1, -1], self.gains.dtype)
        return _padded.fill(differences * of_ranks, chosen, 0.0), _largest_loss(total)


def weighted_logistic(
    scores: tf.Tensor,
    labels: tf.Tensor,
    mask: tf.Tensor,
    weights: tf.Tensor,
    gains: tf.Tensor,
    rank_sums: tf.Tensor,
    sigma: float,
    *,
    all_pairs: bool = False,
) -> tf.Tensor:
    r"""Returns $\sum_{ij} w_i |g_i - g_j| R(r_i, r_j) \log(1 + e^{-\sigma (s_i - s_j)})$ over pairs with $y_i > y_j$.

    The $r_i$ are the ranks by the scores, constant to the gradient, with the mean of R over the orders of tied
    documents. Value and gradient are one program, which holds the pairs of few lists at a time if lists are long.

    Args:
      scores: [batch, list].
      labels: [batch, list].
      mask: [batch, list] bool, False for padding.
      weights: [batch, list] or [batch, 1].
      gains: [batch, list].
      rank_sums: The result of `lambda_weights.cumulative` for R, of at least `_compiled.padded_length(list)` ranks.
      sigma: Slope of the logistic function, > 0.
      all_pairs: Whether the sum is over all pairs, each with $|g_i|$ in place of the difference.

    Returns:
      [batch].
    """
    weights *= tf.ones_like(labels)
    pairs = _Pairs(labels, mask, weights, gains, rank_sums, tf.constant(sigma, scores.dtype), tf.constant(all_pairs))
    return tf.ensure_shape(_weighted_logistic(scores, *pairs), scores.shape[:1])


@_compiled.differentiable
def _weighted_logistic(scores: tf.Tensor, *constants: tf.Tensor) -> _compiled.WithGradient:
    pairs = _Pairs(*constants)
    padded = [_compiled.pad(tensor) for tensor in (scores, pairs.labels, pairs.mask, pairs.weights, pairs.gains)]
    shared = [pairs.rank_sums, pairs.sigma, pairs.all_pairs]
    lists, length = (size or tf.shape(padded[0])[axis] for axis, size in enumerate(padded[0].shape))
    parts = lists // _compiled.padded_batch((_MOST_PAIRS // length // length + 1) // 2)
    losses, gradient = _compiled.over_lists(_losses_and_gradient, shared, padded, (scores.dtype, scores.dtype), parts)
    gradient = _compiled.unpad(gradient, scores)
    return losses[: tf.shape(scores)[0]], lambda upstream: upstream[:, tf.newaxis] * gradient


@_compiled.program
def _losses_and_gradient(*tensors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the loss, [batch], and its gradient with respect to the scores, [batch, list]."""
    *shared, scores, labels, mask, weights, gains = tensors
    pairs = _Pairs(labels, mask, weights, gains, *shared)
    effects, largest = pairs.effects(scores)
    behind = scaled_differences(scores, pairs.sigma)
    of_documents = tf.reduce_sum(effects * tf.nn.softplus(tf.minimum(behind, largest)), axis=2)
    derivatives = pairs.sigma * weights[:, :, tf.newaxis] * effects * tf.sigmoid(behind)
    gradient = tf.reduce_sum(derivatives, axis=1) - tf.reduce_sum(derivatives, axis=2)
    return tf.reduce_sum(_padded.product(of_documents, weights), axis=1), gradient
