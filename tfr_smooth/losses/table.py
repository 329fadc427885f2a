"""All losses by name, their lookup, and weighted sums of losses that may be given by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments, _lookup, _padded, _serialization
from tfr_smooth.losses.pointwise import MultiScoreLoss
from tfr_smooth.losses.ranking_loss import LOSSES, LossOptions, RankingLoss
from tfr_smooth.losses.smooth import MeasureLoss

_COMBINED = {name: functools.partial(parts.make, MeasureLoss) for name, parts in _lookup.COMBINATIONS.items()}


def makers() -> dict[str, Callable[..., RankingLoss]]:
    """Returns the class or maker of each loss by name."""
    return {**_COMBINED, **LOSSES}


@functools.cache
def names() -> tuple[str, ...]:
    """Returns the names of the losses of one score per document, of the modules of this package in any order."""
    _serialization.import_modules("tfr_smooth.losses")
    return tuple(name for name in makers() if not (name in LOSSES and issubclass(LOSSES[name], MultiScoreLoss)))


class RankingLossKey:
    """TF-Ranking's names of its losses, which `get` accepts.

    Example:
      >>> from tfr_smooth import losses
      >>> losses.get(losses.RankingLossKey.SOFTMAX_LOSS).temperature
      1.0
    """

    PAIRWISE_HINGE_LOSS = "pairwise_hinge_loss"
    PAIRWISE_LOGISTIC_LOSS = "pairwise_logistic_loss"
    PAIRWISE_SOFT_ZERO_ONE_LOSS = "pairwise_soft_zero_one_loss"
    PAIRWISE_MSE_LOSS = "pairwise_mse_loss"
    YETI_LOGISTIC_LOSS = "yeti_logistic_loss"
    SOFTMAX_LOSS = "softmax_loss"
    CALIBRATED_SOFTMAX_LOSS = "calibrated_softmax_loss"
    UNIQUE_SOFTMAX_LOSS = "unique_softmax_loss"
    SIGMOID_CROSS_ENTROPY_LOSS = "sigmoid_cross_entropy_loss"
    MEAN_SQUARED_LOSS = "mean_squared_loss"
    ORDINAL_LOSS = "ordinal_loss"
    LIST_MLE_LOSS = "list_mle_loss"
    APPROX_NDCG_LOSS = "approx_ndcg_loss"
    APPROX_MRR_LOSS = "approx_mrr_loss"
    GUMBEL_APPROX_NDCG_LOSS = "gumbel_approx_ndcg_loss"
    COUPLED_RANKDISTIL_LOSS = "coupled_rankdistil_loss"

    @classmethod
    def all_keys(cls) -> list[str]:
        """Returns all names."""
        return [value for name, value in vars(cls).items() if name.isupper()]


@overload
def get(identifier: None, /) -> None: ...


@overload
def get(identifier: str | Mapping[str, Any] | RankingLoss, /, **arguments: Any) -> RankingLoss: ...


def get(identifier: Any, /, **arguments: Any) -> RankingLoss | None:
    """Returns a loss by name, config or instance, like `keras.losses.get` for Keras losses.

    A name of a ranking and a measure, such as "neuralsort_err", is a `MeasureLoss` with the arguments of both.
    `models.FeedForwardScorer` accepts the names in `compile`. Other Keras models only accept the names of Keras losses,
    so use `compile(loss=losses.get("smoothi_ndcg"))`. `keras.losses.serialize` returns the config of a loss.

    Args:
      identifier: A name in `NAMES` ("smoothi_ndcg"), of a class ("SmoothINDCGLoss"), or of TF-Ranking ("softmax_loss"),
        with an optional cutoff ("smoothi_ndcg@10"); a config of `keras.losses.serialize`; a loss; or None. The losses
        of several scores per document have names, too: "click_em", "dual_learning", "mixture_em" and "ordinal".
      **arguments: Constructor arguments; only valid with a name.

    Returns:
      The loss. Losses and None are returned unchanged.

    Raises:
      ValueError: If the loss does not exist, or an argument is out of range.
      TypeError: If the loss has no such argument.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.get("list_net", temperature=2.0)
      ListNetLoss(temperature=2.0, dtype=None, ragged=False, name='list_net_loss', reduction='sum_over_batch_size')
      >>> tfr_smooth.losses.get("neuralsort_err@10", temperature=0.5).measure
      ExpectedReciprocalRank(topn=10, max_grade=4.0)
    """
    return _lookup.get(identifier, arguments, makers(), RankingLoss)


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns the hyperparameters of a loss with their defaults, without those of `RankingLoss`.

    Args:
      name: A name in `NAMES`.

    Returns:
      Default values by hyperparameter.

    Raises:
      ValueError: If the loss does not exist.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.hyperparameters("neuralsort_mrr")
      {'temperature': 1.0, 'sinkhorn_steps': 0, 'topn': None}
    """
    if _arguments.choice("name", name, names()) in _lookup.COMBINATIONS:
        return _lookup.COMBINATIONS[name].hyperparameters
    parameters = inspect.signature(makers()[name]).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in LossOptions.__annotations__
    }


@_serialization.register
class WeightedSumLoss(RankingLoss):
    r"""Weighted sum of ranking losses: $\sum_k w_k L_k(y, s)$ for each list.

    The counterpart of TF-Ranking's lists of loss names with weights, such as a softmax loss with a little regression
    for calibration. $L_k$ is 0 for lists that its loss excludes. Lists that all losses exclude are excluded. Weights of
    documents multiply what they multiply in each loss.

    Args:
      losses: Losses, or their names. Their own `dtype`, `ragged` and `reduction` are not used.
      weights: One weight w >= 0 per loss. None uses 1 for each.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are the sum of those of the losses.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.WeightedSumLoss(["softmax", losses.MeanSquaredLoss()], weights=[1.0, 0.1])
      >>> print(loss(tf.constant([[1.0, 0.0]]), tf.constant([[0.6, 0.8]])).numpy().round(4))
      0.8381
    """

    def __init__(
        self,
        losses: Sequence[RankingLoss | str],
        *,
        weights: Sequence[float] | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        if isinstance(losses, str) or not losses:
            raise ValueError(f"`losses` must be a sequence of losses or names, got {losses!r}.")
        self.losses = [get(loss) if isinstance(loss, str) else loss for loss in _arguments.sequence("losses", losses)]
        for loss in self.losses:
            if isinstance(_arguments.instance("losses", loss, RankingLoss), MultiScoreLoss):
                raise ValueError(f"`losses` must be losses of one score per document, got {loss!r}.")
        self.highest_label = min(loss.highest_label for loss in self.losses)
        self.shift_invariant = all(loss.shift_invariant for loss in self.losses)
        weights = [1.0] * len(self.losses) if weights is None else list(weights)
        if len(weights) != len(self.losses):
            raise ValueError(f"`weights` must have one entry per loss, {len(self.losses)}, got {len(weights)}.")
        self.weights = [_arguments.real("weights", weight, least=0.0) for weight in weights]

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists, with the weights as each loss takes them."""
        total = []
        for loss, factor in zip(self.losses, self.weights, strict=True):
            values = loss.weighted(labels, scores, mask, weights)
            total.append(factor * _padded.fill(values, loss.counts(labels, mask), 0.0))
        return tf.add_n(total)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists that all losses exclude."""
        return tf.reduce_any(tf.stack([loss.counts(labels, mask) for loss in self.losses]), axis=0)


@_serialization.register
class MultiObjectiveLoss(WeightedSumLoss):
    r"""Linear scalarization of objectives with a label each: $\sum_k w_k L_k(y_k, s)$ for each list.

    Each objective, such as relevance or purchases, has its own label $y_k$ of a document, and all share the scores.
    Minimizing the sum for weights $w_k > 0$ gives a Pareto optimum of the losses: none can decrease unless another one
    increases. `data.draw_labels` is the stochastic alternative.

    $L_k$ is 0 for lists that it excludes, such as lists without a purchase. Lists that all objectives with a weight
    above 0 exclude are excluded. Documents with a label < 0 of an objective are padding for this objective only.

    Call with labels [batch, list, objectives] (float or int, >= 0; negative labels mark padding) and scores
    [batch, list]. Returns a scalar, or [batch] for the reduction "none". Weights of documents become a weight of their
    list for each objective, by its labels.

    Args:
      losses: A loss or its name, for all objectives; or one for each. Their own `dtype`, `ragged` and `reduction` are
        not used.
      weights: One weight w >= 0 per objective, not all 0. Objectives with the weight 0 are not computed.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid, or the labels have another shape.

    Time and memory are the sum of those of the losses.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.MultiObjectiveLoss("softmax", weights=[1.0, 0.5])
      >>> relevance, purchases = tf.constant([[2.0, 1.0, 0.0]]), tf.constant([[0.0, 1.0, 0.0]])
      >>> scores = tf.constant([[0.6, 0.8, 0.1]])
      >>> print(loss(tf.stack([relevance, purchases], axis=2), scores).numpy().round(4))
      3.3384
    """

    def __init__(
        self,
        losses: RankingLoss | str | Sequence[RankingLoss | str],
        *,
        weights: Sequence[float],
        **options: Unpack[LossOptions],
    ) -> None:
        weights = _arguments.weights("weights", weights)
        losses = [losses] * len(weights) if isinstance(losses, RankingLoss | str) else losses
        super().__init__(losses, weights=weights, **options)

    def _terms(self, y_true: Any) -> list[tuple[float, RankingLoss, Any]]:
        labels = _padded.by_objective(y_true, len(self.weights))
        return [term for term in zip(self.weights, self.losses, labels, strict=True) if term[0]]
