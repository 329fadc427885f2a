"""Table of losses by name, with defaults, papers and costs; lookup and serialization."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, overload

from tfr_smooth import _lookup, registry
from tfr_smooth.losses.baselines import BASELINES
from tfr_smooth.losses.measure_losses import CLASSES
from tfr_smooth.losses.multi_score import ClickEMLoss, DualLearningLoss, MixtureEMLoss, MultiScoreLoss, OrdinalLoss
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry of the table of losses, `losses.TABLE`.

    Args:
      loss: The loss class.
      defaults: Hyperparameters with their default values.
      citation: Papers and equations.
      time: Time in terms of the list length N, the cutoff K (N without one) and the number of steps T.
      memory: Memory in the same terms.
      searched: Values searched in the papers, by hyperparameter.

    Example:
      >>> import tfr_smooth
      >>> entry = tfr_smooth.losses.TABLE["smoothi_ndcg"]
      >>> entry.loss.__name__, entry.defaults["alpha"], entry.searched["alpha"]
      ('SmoothINDCGLoss', 1.0, (0.1, 1.0, 10.0, 100.0))
    """

    loss: type[RankingLoss]
    defaults: Mapping[str, Any]
    citation: str
    time: str
    memory: str
    searched: Mapping[str, tuple[Any, ...]]


def _baseline(loss: type[RankingLoss]) -> Entry:
    parameters = list(inspect.signature(loss).parameters.values())
    own = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
    own = {name: default for name, default in own.items() if name not in LossOptions.__annotations__}
    return Entry(loss, own, "", "", "", {})


TABLE: dict[str, Entry] = {
    **{
        name: Entry(CLASSES[name], pair.hyperparameters, pair.citation, *pair.cost, pair.ranking.about.searched)
        for name, pair in registry.PAIRS.items()
    },
    **{name: _baseline(loss) for name, loss in BASELINES.items()},
}

NAMES: tuple[str, ...] = tuple(TABLE)

# Losses of models with several scores per document, by name.
MULTI_SCORE: dict[str, type[MultiScoreLoss]] = {
    "click_em": ClickEMLoss,
    "dual_learning": DualLearningLoss,
    "mixture_em": MixtureEMLoss,
    "ordinal": OrdinalLoss,
}


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

    `models.FeedForwardScorer` accepts the names in `compile`. Other Keras models only accept the names of Keras losses,
    so use `compile(loss=losses.get("smoothi_ndcg"))`. Keras also accepts configs, such as
    `keras.losses.get(losses.serialize(loss))`.

    Args:
      identifier: A name in `TABLE` ("smoothi_ndcg") or `MULTI_SCORE`, of a class ("SmoothINDCGLoss"), or of TF-Ranking
        ("softmax_loss"), with an optional cutoff ("smoothi_ndcg@10"); a config returned by `serialize`; a loss; or
        None.
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
    """
    classes = {**{name: entry.loss for name, entry in TABLE.items()}, **MULTI_SCORE}
    return _lookup.get(identifier, arguments, classes, RankingLoss, deserialize)


def serialize(loss: RankingLoss) -> dict[str, Any]:
    """Returns the config of a loss.

    Args:
      loss: The loss.

    Returns:
      A dict with the class name and the constructor arguments, serializable as JSON.

    Example:
      >>> from tfr_smooth import losses
      >>> losses.deserialize(losses.serialize(losses.ListMLELoss(position_aware=True))).get_config()["position_aware"]
      True
    """
    return _lookup.serialize(loss)


def deserialize(config: Mapping[str, Any]) -> RankingLoss:
    """Creates a loss from a config.

    Args:
      config: A config returned by `serialize`.

    Returns:
      The loss.

    Raises:
      ValueError: If the class is unknown.

    Example:
      >>> from tfr_smooth import losses
      >>> losses.deserialize({"class_name": "tfr_smooth>ListNetLoss", "config": {"temperature": 2.0}}).name
      'list_net_loss'
    """
    return _lookup.deserialize(config, RankingLoss)


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns the hyperparameters of a loss with their defaults, without those of `RankingLoss`.

    Args:
      name: A name in `TABLE`.

    Returns:
      Default values by hyperparameter.

    Raises:
      ValueError: If the loss does not exist.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.hyperparameters("neuralsort_mrr")
      {'temperature': 1.0, 'topn': None}
    """
    return dict(TABLE[registry.check_name("name", name, TABLE)].defaults)
