"""Losses by name, with what the papers say of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, overload

from tfr_smooth import _lookup, registry
from tfr_smooth.losses.base import RankingLoss
from tfr_smooth.losses.named import CLASSES


@dataclasses.dataclass(frozen=True)
class Entry:
    """A loss in the table.

    Args:
      loss: The class.
      defaults: The hyperparameters with their default values.
      citation: The papers and equations.
      time: The time in the length N of a list, the cut-off K (N without one) and steps T.
      memory: The memory, likewise.
      searched: The values that the papers searched, by hyperparameter.

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


TABLE: dict[str, Entry] = {
    **{
        name: Entry(CLASSES[name], pair.hyperparameters, pair.citation, *pair.cost, pair.ranking.searched)
        for name, pair in registry.PAIRS.items()
    },
    **{
        name: Entry(CLASSES[name], registry.defaults(entry.criterion), entry.citation, *entry.cost, entry.searched)
        for name, entry in registry.BASELINES.items()
    },
}

NAMES: tuple[str, ...] = tuple(TABLE)


@overload
def get(identifier: None, /) -> None: ...


@overload
def get(identifier: str | Mapping[str, Any] | RankingLoss, /, **arguments: Any) -> RankingLoss: ...


def get(identifier: Any, /, **arguments: Any) -> RankingLoss | None:
    """Returns a loss, as `keras.losses.get` does for the losses of Keras.

    Keras itself looks up a string among its own losses alone: write `compile(loss=losses.get("smoothi_ndcg"))` for a
    model other than `models.FeedForwardScorer`, which knows the names. What Keras does take is a config:
    `keras.losses.get(losses.serialize(loss))`.

    Args:
      identifier: A name in `TABLE` ("smoothi_ndcg") or of a class ("SmoothINDCGLoss"); a config as `serialize` returns
        it; a loss; or None.
      **arguments: The constructor's arguments, with a name.

    Returns:
      The loss; a loss and None as they are.

    Raises:
      ValueError: If there is no such loss, or an argument is out of its range.
      TypeError: If the loss has no such argument.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.get("list_net", temperature=2.0)
      ListNetLoss(temperature=2.0, ragged=False, name='list_net_loss', reduction='sum_over_batch_size')
    """
    return _lookup.get(identifier, arguments, CLASSES, RankingLoss, deserialize)


def serialize(loss: RankingLoss) -> dict[str, Any]:
    """Returns the config of a loss.

    Args:
      loss: The loss.

    Returns:
      A dict that JSON can hold.

    Example:
      >>> from tfr_smooth import losses
      >>> losses.deserialize(losses.serialize(losses.ListMLELoss(position_aware=True))).get_config()["position_aware"]
      True
    """
    return _lookup.serialize(loss)


def deserialize(config: Mapping[str, Any]) -> RankingLoss:
    """Makes the loss of a config.

    Args:
      config: What `serialize` returned.

    Returns:
      The loss.

    Raises:
      ValueError: If its class is unknown.
    """
    return _lookup.deserialize(config, RankingLoss)


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns the arguments of a loss beside `ragged`, `name` and `reduction`, with their defaults.

    Args:
      name: A name in `TABLE`.

    Returns:
      Name -> default value.

    Raises:
      ValueError: If there is no such loss.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.hyperparameters("neuralsort_mrr")
      {'temperature': 1.0, 'topn': None}
    """
    return dict(TABLE[registry.check_name("name", name, TABLE)].defaults)
