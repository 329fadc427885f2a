"""Losses with the softmax of the scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _padded
from tfr_smooth.losses import pairwise
from tfr_smooth.losses.lambda_weights import DCGLambdaWeight
from tfr_smooth.losses.ranking_loss import HIGHEST_GRADE, LOSSES, LossOptions, TemperedLoss
from tfr_smooth.rankings.dcg import NDCGGain


@LOSSES.register("softmax")
class SoftmaxLoss(TemperedLoss):
    r"""Softmax cross entropy: $-\sum_j y_j \log \mathrm{softmax}(s / \tau)_j$.

    (TF-Ranking's `SoftmaxLoss`; Bruch et al., "An Analysis of the Softmax Cross Entropy Loss for Learning-to-Rank with
    Binary Relevance", ICTIR 2019, Eq. 1, where the labels are divided by their sum.) Labels are not normalized, so
    lists with more relevant documents have more weight. Invariant to a shift of the scores. The loss is at least 0.
    Lists without a relevant document are excluded. Weights of documents multiply the terms of the documents.

    Args:
      lambda_weight: A `DCGLambdaWeight` or `NDCGLambdaWeight`: its $g_j D(r_j)$ replaces the label $y_j$. None uses the
        label.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list, time O(N log N) with a `lambda_weight`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[2.0, 0.0, -1.0]]), tf.constant([[1.0, 1.0, 9.0]])
      >>> print(losses.SoftmaxLoss(reduction="none")(labels, scores).numpy().round(4))
      [1.3863]
    """

    def __init__(
        self, *, lambda_weight: DCGLambdaWeight | None = None, temperature: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.lambda_weight = _arguments.instance("lambda_weight", lambda_weight, DCGLambdaWeight, optional=True)

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists, with each label times its weight."""
        if self.lambda_weight is not None:
            labels = self.lambda_weight.document_weights(labels, scores, mask)
        return weighted_cross_entropy(labels, scores, mask, weights, self.temperature)


@LOSSES.register("calibrated_softmax")
class CalibratedSoftmaxLoss(SoftmaxLoss):
    r"""Softmax cross entropy with a virtual document of score 0, which fixes the scale of the scores.

    $$-\sum_j y_j \log \frac{e^{s_j / \tau}}{1 + \sum_l e^{s_l / \tau}}
      - y_0 \log \frac{1}{1 + \sum_l e^{s_l / \tau}}$$

    (Yan et al., "Scale Calibration of Deep Ranking Models", KDD 2022, Eq. 8; TF-Ranking's `CalibratedSoftmaxLoss`.) At
    the minimum, $e^{s_j / \tau} = y_j / y_0$. The loss is at least 0. Lists without a relevant document are excluded if
    `virtual_label` is 0; else they lower their scores. Weights of documents multiply the terms of the documents.

    Args:
      virtual_label: The label $y_0$ of the virtual document, >= 0.
      lambda_weight: Weights of the documents, including the virtual one; see `SoftmaxLoss`. None uses the labels.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.CalibratedSoftmaxLoss(virtual_label=0.1)
      >>> print(loss(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]])).numpy().round(4))
      1.1808
    """

    shift_invariant = False

    def __init__(
        self,
        *,
        virtual_label: float = 0.0,
        lambda_weight: DCGLambdaWeight | None = None,
        temperature: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(lambda_weight=lambda_weight, temperature=temperature, **options)
        self.virtual_label = _arguments.real("virtual_label", virtual_label, least=0.0)

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists; the weight of the virtual document is that of the list."""
        column = tf.reduce_sum(tf.zeros_like(scores), axis=1, keepdims=True)  # the score of the virtual document
        if weights.shape[1] != 1:
            weights = tf.concat([_padded.list_weights(weights, labels, mask)[:, tf.newaxis], weights], axis=1)
        labels = tf.concat([column + self.virtual_label, labels], axis=1)
        scores, mask = tf.concat([column, scores], axis=1), tf.concat([column == 0.0, mask], axis=1)
        return super().weighted(labels, scores, mask, weights)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists that have no gradient."""
        return tf.reduce_any(mask, axis=1) if self.virtual_label else super().counts(labels, mask)


@LOSSES.register("poly1_softmax")
class Poly1SoftmaxLoss(TemperedLoss):
    r"""Softmax cross entropy with another weight of its first polynomial: $L + \epsilon (1 - \sum_j q_j p_j)$.

    $L = -\sum_j y_j \log p_j$ is the `SoftmaxLoss` with $p = \mathrm{softmax}(s / \tau)$, and $q_j = y_j / \sum_l y_l$.
    (Leng et al., "PolyLoss: A Polynomial Expansion Perspective of Classification Loss Functions", ICLR 2022; Rax's
    `poly1_softmax_loss`.) Invariant to a shift of the scores. The loss is at least 0. Lists without a relevant document
    are excluded. Weights of documents become one weight per list (`list_weights`).

    Args:
      epsilon: The weight of the polynomial, > 0.
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.Poly1SoftmaxLoss(epsilon=2.0)
      >>> print(loss(tf.constant([[1.0, 0.0]]), tf.zeros([1, 2])).numpy().round(4))  # log 2 + 2 (1 - 1/2)
      1.6931
    """

    def __init__(self, *, epsilon: float = 1.0, temperature: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(temperature=temperature, **options)
        self.epsilon = _arguments.scale("epsilon", epsilon)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        total = tf.reduce_sum(labels, axis=1)
        targets = tf.math.divide_no_nan(labels, total[:, tf.newaxis])
        others = 1.0 - tf.reduce_sum(targets * tf.nn.softmax(_logits(scores, mask, self.temperature)), axis=1)
        return total * cross_entropy(targets, scores, mask, self.temperature) + self.epsilon * others


@LOSSES.register("list_net")
class ListNetLoss(TemperedLoss):
    r"""ListNet: $-\sum_j \mathrm{softmax}(y)_j \log \mathrm{softmax}(s / \tau)_j$.

    (Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007, the top-one case.)
    Invariant to a shift of the scores. The loss is at least 0; its minimum is the entropy of softmax(y). Lists without
    a relevant document are excluded. Weights of documents become one weight per list (`list_weights`).

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `temperature` is out of range.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 0.0, 5.0]])
      >>> print(losses.ListNetLoss(temperature=1.0, reduction="none")(labels, scores).numpy().round(4))
      [0.5822]
    """

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        targets = tf.nn.softmax(_padded.fill(labels, mask, scores.dtype.min / 4.0), axis=1)
        return cross_entropy(targets, scores, mask, self.temperature)


@LOSSES.register("unique_softmax")
class UniqueSoftmaxLoss(TemperedLoss):
    r"""Softmax cross entropy of each document among itself and the documents with lower labels.

    $$-\sum_j (2^{y_j} - 1) \log \frac{e^{s_j / \tau}}{e^{s_j / \tau} + \sum_{l: y_l < y_j} e^{s_l / \tau}}$$

    (Zhu and Klabjan, "Listwise Learning to Rank by Exploring Unique Ratings", WSDM 2020; TF-Ranking's
    `UniqueSoftmaxLoss`.) Documents with equal labels are not compared. Invariant to a shift of the scores. The loss is
    at least 0. It is divided by $2^{\max y - 64}$ in lists with labels above 64. Lists with only one distinct label are
    excluded. Weights of documents become one weight per list (`list_weights`).

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If `temperature` is out of range.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, scores = tf.constant([[1.0, 0.0, 2.0]]), tf.constant([[0.6, 0.8, 0.6]])
      >>> print(losses.UniqueSoftmaxLoss(reduction="none")(labels, scores).numpy().round(4))
      [4.3076]
    """

    highest_label = HIGHEST_GRADE

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        behind = pairwise.scaled_differences(scores, 1.0 / self.temperature)
        lower = _padded.preferences(labels, mask)
        behind = _padded.fill(behind, lower, scores.dtype.min / 4.0)
        terms = _padded.clipped(tf.nn.softplus(tf.reduce_logsumexp(behind, axis=2)), _padded.LARGEST_SCORE)
        return tf.reduce_sum(NDCGGain.of("exponential", labels)(labels) * terms, axis=1)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists with only one distinct label."""
        return _padded.varies(labels, mask)


@LOSSES.register("softmax_at_k")
class SoftmaxAtKLoss(TemperedLoss):
    r"""SL@K: a softmax loss for NDCG@K, in which relevant documents near or above rank K count most.

    $$-\sum_j y_j \, \sigma\!\left(\frac{s_j - \beta}{\tau_w}\right) \log \mathrm{softmax}(s / \tau)_j$$

    where $\beta$ is the K-th highest score and $\sigma$ the sigmoid (Yang et al., "Breaking the Top-K Barrier", KDD
    2025, Eq. 3.5). The authors estimate $\beta$ from samples every few epochs. Here it is exact, and for the gradient a
    constant, too. The default weight temperature is for scores in [-5, 5], such as cosines divided by 0.2, those of
    `Recommender`: for cosines, the authors searched 0.5 to 3, and chose 2.25 on MovieLens-100K. If it is small for the
    scores, the loss lowers the weights of relevant documents, and so their scores: at 1, those at most ranks. Invariant
    to a shift of the scores. The loss is at least 0. Lists without a relevant document are excluded. Weights of
    documents become one weight per list (`list_weights`).

    Args:
      topn: The cutoff K, >= 1. In shorter lists, beta is the lowest score.
      weight_temperature: $\tau_w$, the divisor of the scores in the weights, > 0. The larger, the nearer to half the
        `SoftmaxLoss`. More than 1,000 documents may need up to 15.
      temperature: $\tau$, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(N log K) and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.SoftmaxAtKLoss(topn=1)
      >>> print(loss(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[1.0, 1.0, 9.0]])).numpy().round(4))
      0.3466
    """

    def __init__(
        self,
        *,
        topn: int = 20,
        weight_temperature: float = 11.25,
        temperature: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.topn = _arguments.integer("topn", topn, least=1)
        self.weight_temperature = _arguments.scale("weight_temperature", weight_temperature)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        size = _padded.num_ranks(scores, self.topn)
        ranked = tf.math.top_k(tf.stop_gradient(_padded.fill(scores, mask, scores.dtype.min)), size).values
        lowest = _padded.extremes(ranked, _padded.rank_mask(mask, size))[0][:, tf.newaxis]
        weights = tf.sigmoid((scores - tf.stop_gradient(lowest)) / self.weight_temperature)
        logs = tf.nn.log_softmax(_logits(scores, mask, self.temperature))  # finite at padding
        return -tf.reduce_sum(labels * weights * logs, axis=1)


@LOSSES.register("psl")
class PSLLoss(TemperedLoss):
    r"""PSL, the pairwise softmax loss: a function that grows more slowly takes the place of the exponential one.

    $$\sum_i y_i \log \sum_j \sigma\!\left(\frac{s_j - s_i}{r}\right)^{r / \tau}$$

    (Yang et al., "PSL: Rethinking and Improving Softmax Loss from Pairwise Perspective for Recommendation", NeurIPS
    2024, Eq. 4.1, with the temperature $\tau / r$.) For $\sigma = \exp$, it is the `SoftmaxLoss`, as in the limit of
    a large r. In the paper, scores are halved cosines, whose differences are in [-1, 1]. The default r has the same
    effect for cosines divided by 0.2, the scores of `Recommender`. Invariant to a shift of the scores. The loss is at
    least 0. Lists without a relevant document are excluded. Weights of documents become one weight per list
    (`list_weights`).

    Args:
      activation: $\sigma(d)$: "tanh" for $\tanh(d) + 1$, "atan" for $\arctan(d) + 1$, or "relu" for
        $\max(d + 1, 0)$. A negative $\arctan(d) + 1$, far outside of [-1, 1], counts as 0.
      score_range: r, by which differences of scores are divided so that they are in [-1, 1], > 0.
      temperature: $\tau$, the divisor of the scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.PSLLoss(activation="relu", score_range=2.0)
      >>> print(loss(tf.constant([[1.0, 0.0, -1.0]]), tf.constant([[0.0, 1.0, 9.0]])).numpy().round(4))
      1.1787
    """

    def __init__(
        self,
        *,
        activation: str = "tanh",
        score_range: float = 10.0,
        temperature: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.activation = _arguments.choice("activation", activation, _LOG_ACTIVATIONS)
        self.score_range = _arguments.scale("score_range", score_range)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        logs = _LOG_ACTIVATIONS[self.activation](pairwise.scaled_differences(scores, 1.0 / self.score_range))
        logs = _padded.fill(logs * (self.score_range / self.temperature), _padded.real_pairs(mask), -1e26)
        return tf.reduce_sum(labels * _padded.fill(tf.reduce_logsumexp(logs, axis=2), mask, 0.0), axis=1)


def _log1p(values: tf.Tensor) -> tf.Tensor:
    """Returns log(1 + values), far below all other results for values up to -1."""
    positive = values > -1.0
    return _padded.fill(tf.math.log1p(_padded.fill(values, positive, 0.0)), positive, -1e26)


# tanh(d) + 1 is twice a sigmoid, whose logarithm does not vanish for small d.
_LOG_ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "tanh": lambda behind: math.log(2.0) - tf.nn.softplus(-2.0 * behind),
    "atan": lambda behind: _log1p(tf.atan(behind)),
    "relu": _log1p,
}


@LOSSES.register("bsl")
class BSLLoss(TemperedLoss):
    r"""BSL, the bilateral softmax loss: a smooth maximum of the other scores minus that of the relevant ones.

    $$-\tau_1 \log \frac{\sum_i y_i e^{s_i / \tau_1}}{\sum_i y_i}
      + \tau_2 \log \frac{1}{n} \sum_{j: y_j = 0} e^{s_j / \tau_2}$$

    for n documents with the label 0 (Wu et al., "BSL: Understanding and Improving Softmax Loss for Recommendation",
    ICDE 2024). Relevant documents with low scores, which may be noise, count little; all count the same in the limit of
    a large $\tau_1$. The authors' code divides by $\tau_1$, and has $\tau_1$ in both exponential functions; their
    labels are 0 and 1. The loss has no lower bound: it is for bounded scores, such as the cosines of `Recommender`.
    Invariant to a shift of the scores. Lists without a relevant or without another document are excluded. Weights of
    documents become one weight per list (`list_weights`).

    Args:
      positive_temperature: $\tau_1$, the divisor of the scores of relevant documents, > 0.
      temperature: $\tau_2$, the divisor of the other scores, > 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.BSLLoss(positive_temperature=1.0)
      >>> print(loss(tf.constant([[1.0, 1.0, 0.0]]), tf.constant([[2.0, 0.0, 1.0]])).numpy().round(4))
      -0.4338
    """

    def __init__(
        self, *, positive_temperature: float = 1.0, temperature: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.positive_temperature = _arguments.scale("positive_temperature", positive_temperature)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        highest, relevant = _log_mean_exp(scores, labels, self.positive_temperature)
        highest_other, other = _log_mean_exp(scores, tf.cast((labels == 0.0) & mask, scores.dtype), self.temperature)
        return highest_other - highest + (other - relevant)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists without a relevant or without another document."""
        return super().counts(labels, mask) & tf.reduce_any((labels == 0.0) & mask, axis=1)


def _log_mean_exp(scores: tf.Tensor, weights: tf.Tensor, temperature: float) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns the highest score and $\tau \log \sum_j w_j e^{s_j / \tau} / \sum_j w_j$, minus that score."""
    mask = weights > 0.0
    logs = tf.math.log(_padded.fill(weights, mask, 1e-26))
    above = tf.reduce_logsumexp(_logits(scores, mask, temperature) + logs, axis=1) - tf.reduce_logsumexp(logs, axis=1)
    highest = tf.reduce_max(_padded.fill(scores, mask, scores.dtype.min), axis=1)
    return tf.stop_gradient(highest), temperature * above


def weighted_cross_entropy(
    labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor, temperature: float
) -> tf.Tensor:
    r"""Returns $-\sum_j w_j y_j \log \mathrm{softmax}(s / \tau)_j$, [batch]; arguments as in `cross_entropy`.

    The weights are [batch, list] or [batch, 1], and may be negative.
    """
    total = tf.reduce_sum(labels, axis=1)
    targets = tf.math.divide_no_nan(labels, total[:, tf.newaxis])
    if weights.shape[1] == 1:
        return _padded.product(total * cross_entropy(targets, scores, mask, temperature), weights[:, 0])
    logs = tf.nn.log_softmax(_logits(scores, mask, temperature))  # finite at padding
    return -tf.reduce_sum(_padded.product(total[:, tf.newaxis] * targets * logs, weights), axis=1)


def cross_entropy(targets: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, temperature: float) -> tf.Tensor:
    """Returns the cross entropy between the targets and the softmax of the scores divided by the temperature.

    Args:
      targets: [batch, list], >= 0 with the sum 1; constants to the gradient.
      scores: [batch, list].
      mask: [batch, list] bool, False for padding.
      temperature: Divisor of the scores, > 0.

    Returns:
      [batch].
    """
    return tf.nn.softmax_cross_entropy_with_logits(tf.stop_gradient(targets), _logits(scores, mask, temperature))


def _logits(scores: tf.Tensor, mask: tf.Tensor, temperature: float) -> tf.Tensor:
    """Returns the scores divided by the temperature, up to a constant per list."""
    # The difference first, so that a shift of the scores loses no precision.
    highest = tf.reduce_max(_padded.fill(scores, mask, scores.dtype.min), axis=1, keepdims=True)
    # Padding is below all scores, but its product with a sum of labels is finite.
    return _padded.fill((scores - tf.stop_gradient(highest)) / temperature, mask, -1e26)
