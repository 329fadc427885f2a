"""Losses that compare each score with a target of its own, and losses of models with several scores per document."""

from __future__ import annotations

import abc
import math
from typing import Any

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _padded
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, RankingLoss
from tfr_smooth.losses.softmax import cross_entropy, weighted_cross_entropy


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


class MultiScoreLoss(RankingLoss):
    """Base class of losses of scores [batch, list, scores]; `compute` gets scores of this shape.

    NaN in any score of a real document makes the loss of its list NaN.
    """

    # The number of scores per document; None for any number.
    num_scores: int | None = None

    def _clean(self, y_true: Any, y_pred: Any) -> _padded.Batch:
        if not isinstance(y_pred, tf.RaggedTensor):
            y_pred = tf.convert_to_tensor(y_pred)
        expected = "scores" if self.num_scores is None else str(self.num_scores)
        count = y_pred.shape[2] if y_pred.shape.rank == 3 else None
        if count is None or count < 1 or self.num_scores not in (None, count):
            raise ValueError(f"`scores` must have the shape [batch, list, {expected}], got {y_pred.shape}.")
        return _padded.from_keras(y_true, y_pred, ragged=self.ragged, dtype=self._computed_in, clean=_clean_each)


@LOSSES.register("ordinal")
class OrdinalLoss(PointwiseLoss, MultiScoreLoss):
    r"""Mean over documents of the binary cross entropies of "the label is at least k", for k = 1, ..., M.

    $$-\frac{1}{N} \sum_i \sum_{k=1}^M \left[t_{ik} \log \sigma(s_{ik}) + (1 - t_{ik}) \log (1 - \sigma(s_{ik}))\right],
      \qquad t_{ik} = [y_i \geq k]$$

    (Niu et al., "Ordinal Regression with Multiple Output CNN for Age Estimation", CVPR 2016; TF-Ranking's
    `OrdinalLoss`.) The sum of $\sigma(s_{ik})$ over k estimates the label. The mean is over the N real documents of
    each list; TF-Ranking's mean is over all documents of the batch, including padding. Lists without a relevant
    document are included, as their labels of 0 are targets too; empty lists are excluded. The loss is at least 0.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list, M].
    Returns a scalar, or [batch] for the reduction "none". Weights of documents multiply the terms of the documents.

    Args:
      ordinal_size: The number of grades above 0, M >= 1.
      use_fraction_label: Whether a label between two grades is a probability: $t_{ik} = \min(\max(y_i - k + 1, 0), 1)$.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(M N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.2], [0.8, 0.3]]])
      >>> print(losses.OrdinalLoss(ordinal_size=2)(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.6305
    """

    def __init__(
        self, *, ordinal_size: int = 1, use_fraction_label: bool = False, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**options)
        self.ordinal_size = self.num_scores = _arguments.integer("ordinal_size", ordinal_size, least=1)
        self.use_fraction_label = _arguments.boolean("use_fraction_label", use_fraction_label)

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        above = labels[:, :, tf.newaxis] - tf.range(self.ordinal_size, dtype=labels.dtype)  # y - k + 1
        targets = tf.clip_by_value(above, 0.0, 1.0) if self.use_fraction_label else tf.cast(above >= 1.0, labels.dtype)
        return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(targets, scores), axis=2)


@LOSSES.register("click_em")
class ClickEMLoss(PointwiseLoss, MultiScoreLoss):
    r"""Expectation maximization for clicks with the probability $\sigma(e_i) \, \sigma(s_i)$.

    $$\frac{1}{N} \sum_i \left[w_e \, H\big(P(E_i = 1 \mid c_i), \sigma(e_i)\big)
      + w_s \, H\big(P(R_i = 1 \mid c_i), \sigma(s_i)\big)\right]$$

    (Wang et al., "Position Bias Estimation for Unbiased Learning to Rank in Personal Search", WSDM 2018;
    TF-Ranking's `ClickEMLoss`.) $e_i$ is the logit of the examination of document i and $s_i$ that of its relevance. H
    is the binary cross entropy. The targets are the posterior probabilities by the current scores, constant to the
    gradient: 1 for a click, else $P(E_i = 1 \mid 0) = \sigma(e_i - \log(1 + e^{s_i}))$, and
    $P(R_i = 1 \mid 0) = \sigma(s_i - \log(1 + e^{e_i}))$. Let $e_i$ depend on the position and the context only. The
    mean is over the N real documents of each list; TF-Ranking's mean is over all documents of the batch, including
    padding. Lists without a click are included; empty lists are excluded.

    Call with labels [batch, list] (>= 1 for a click; negative labels mark padding) and scores [batch, list, 2]: the
    examination, then the relevance. Returns a scalar, or [batch] for the reduction "none". Weights of documents
    multiply the terms of the documents.

    Args:
      exam_loss_weight: Weight $w_e$ of the examination, >= 0.
      rel_loss_weight: Weight $w_s$ of the relevance, >= 0.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.9], [0.8, 0.2]]])
      >>> print(losses.ClickEMLoss()(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.1463
    """

    num_scores = 2

    def __init__(
        self, *, exam_loss_weight: float = 1.0, rel_loss_weight: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**options)
        self.exam_loss_weight = _arguments.real("exam_loss_weight", exam_loss_weight, least=0.0)
        self.rel_loss_weight = _arguments.real("rel_loss_weight", rel_loss_weight, least=0.0)

    def document_losses(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each document, [batch, list], from clean lists."""
        exam, relevance = tf.unstack(scores, axis=2)
        clicked = labels >= 1.0

        def cross_entropy(logits: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
            posterior = tf.sigmoid(logits - tf.nn.softplus(others))
            targets = tf.stop_gradient(tf.where(clicked, tf.ones_like(posterior), posterior))
            return tf.nn.sigmoid_cross_entropy_with_logits(targets, logits)

        of_exam, of_relevance = cross_entropy(exam, relevance), cross_entropy(relevance, exam)
        return self.exam_loss_weight * of_exam + self.rel_loss_weight * of_relevance


@LOSSES.register("dual_learning")
class DualLearningLoss(MultiScoreLoss):
    r"""Dual learning algorithm: softmax losses of relevance and examination, each weighted by the inverse of the other.

    $$-\sum_{i: c_i = 1} \left[\frac{\max_j g_j}{g_i} \log f_i + \frac{\max_j f_j}{f_i} \log g_i\right], \qquad
      g = \mathrm{softmax}(e), \quad f = \mathrm{softmax}(s)$$

    (Ai et al., "Unbiased Learning to Rank with Unbiased Propensity Estimation", SIGIR 2018.) $e_i$ is the logit of the
    examination of document i and $s_i$ that of its relevance. The weights are constant to the gradient. The paper's
    weights are relative to the first document, $g_1 / g_i$ and $f_1 / f_i$; here they are relative to the highest
    probability, so the order of the documents in the tensor does not matter. The two differ by a factor per list that
    does not depend on the clicks. Let $e_i$ depend on the position only. Lists without a click are excluded.

    Call with labels [batch, list] (> 0 for a click; negative labels mark padding) and scores [batch, list, 2]: the
    examination, then the relevance. Returns a scalar, or [batch] for the reduction "none". Weights of documents become
    one weight per list (`list_weights`).

    Args:
      max_weight: Maximum of the weights, in [1, 1e10]. Lower values reduce the variance and add bias.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.9], [0.8, 0.2]]])
      >>> print(losses.DualLearningLoss()(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.2906
    """

    shift_invariant = True

    num_scores = 2

    def __init__(self, *, max_weight: float = 20.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.max_weight = _arguments.real("max_weight", max_weight, least=1.0, most=1e10)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        exam, relevance = tf.unstack(scores, axis=2)
        clicks = tf.cast(labels > 0.0, scores.dtype)

        def weighted(logits: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
            highest = tf.reduce_max(_padded.fill(others, mask, others.dtype.min), axis=1, keepdims=True)
            gaps = tf.minimum(highest - others, math.log(self.max_weight))
            weights = tf.stop_gradient(clicks * tf.exp(gaps))
            total = tf.reduce_sum(weights, axis=1)
            targets = tf.math.divide_no_nan(weights, total[:, tf.newaxis])
            return total * cross_entropy(targets, logits, mask, 1.0)

        return weighted(relevance, exam) + weighted(exam, relevance)


@LOSSES.register("mixture_em")
class MixtureEMLoss(MultiScoreLoss):
    r"""Expectation maximization for a mixture of M models, each list of clicks from one of them.

    $$\sum_m p_m L_m, \qquad L_m = \sum_i H(y_i, \sigma(s_{im} / \tau)), \qquad p = \mathrm{softmax}(-\alpha L)$$

    (Yan et al., "Revisiting Two-tower Models for Unbiased Learning to Rank", SIGIR 2022; TF-Ranking's `MixtureEMLoss`.)
    H is the binary cross entropy. The probabilities $p_m$ of the models are constant to the gradient. TF-Ranking
    ignores its `temperature`. The loss is at least 0 for labels in [0, 1]. Lists without a click are excluded.

    Call with labels [batch, list] (1 for a click, 0 for none; negative labels mark padding) and scores [batch, list,
    M]. Returns a scalar, or [batch] for the reduction "none". Weights of documents become one weight per list
    (`list_weights`).

    Args:
      temperature: Tau, the divisor of the scores, > 0.
      alpha: Sharpness of the probabilities of the models, in [0, 1e10].
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory O(M N) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> scores = tf.constant([[[0.6, 0.9], [0.8, 0.2]]])
      >>> print(losses.MixtureEMLoss()(tf.constant([[1.0, 0.0]]), scores).numpy().round(4))
      1.3199
    """

    def __init__(self, *, temperature: float = 1.0, alpha: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.temperature = _arguments.scale("temperature", temperature)
        self.alpha = _arguments.real("alpha", alpha, least=0.0, most=1e10)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        logits = scores / self.temperature
        targets = tf.broadcast_to(labels[:, :, tf.newaxis], tf.shape(logits))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(targets, logits)
        of_models = tf.reduce_sum(tf.where(mask[:, :, tf.newaxis], losses, tf.zeros_like(losses)), axis=1)
        gaps = tf.minimum(of_models - tf.reduce_min(of_models, axis=1, keepdims=True), of_models.dtype.max * 1e-11)
        return tf.reduce_sum(tf.stop_gradient(tf.nn.softmax(-self.alpha * gaps)) * of_models, axis=1)


def _clean_each(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None) -> _padded.Batch:
    """Returns clean lists with scores [batch, list, scores]."""
    batches = [_padded.clean(labels, each, mask) for each in tf.unstack(scores, axis=2)]
    validity = tf.reduce_prod(tf.stack([batch.validity for batch in batches]), axis=0)
    return batches[0]._replace(scores=tf.stack([batch.scores for batch in batches], axis=2), validity=validity)
