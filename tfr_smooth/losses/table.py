"""All losses by name; lookup and serialization."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, overload

from tfr_smooth import _arguments, _lookup, _serialization
from tfr_smooth.losses.multi_score import MultiScoreLoss
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
