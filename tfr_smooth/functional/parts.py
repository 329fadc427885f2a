"""The two parts of a loss or metric, a ranking and a metric read off it: by name, and in configs."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import ops
from tfr_smooth.functional.average_precision import AveragePrecision
from tfr_smooth.functional.metric import Ranking, RankingMetric
from tfr_smooth.functional.ndcg import NDCG
from tfr_smooth.functional.precision import Precision
from tfr_smooth.functional.reciprocal_rank import ExpectedReciprocalRank, ReciprocalRank

RANKINGS: dict[str, type] = {
    "smoothi": ops.SmoothI,
    "approx": ops.Approx,
    "soft": ops.SoftRank,
    "neuralsort": ops.NeuralSort,
    "softsort": ops.SoftSort,
    "fastsort": ops.FastSort,
    "sinkhorn": ops.Sinkhorn,
}
METRICS: dict[str, type[RankingMetric]] = {
    "ndcg": NDCG,
    "precision": Precision,
    "map": AveragePrecision,
    "mrr": ReciprocalRank,
    "err": ExpectedReciprocalRank,
}
# "smoothi_err" -> (its ranking, its metric), for each of one with each of the other.
PAIRS = {f"{r}_{m}": (RANKINGS[r], METRICS[m]) for r, m in itertools.product(RANKINGS, METRICS)}

_OWN = {part.__name__: part for part in (*RANKINGS.values(), *METRICS.values(), ops.ExactRanking, ops.ShallowDiscount)}


def make_pair(name: str, arguments: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Makes the ranking and the metric of `PAIRS[name]` from the arguments that are theirs; returns the others too."""
    rest = dict(arguments)
    parts = []
    for part in PAIRS[name]:
        own = {field.name: rest.pop(field.name) for field in dataclasses.fields(part) if field.name in rest}
        parts.append(part(**own))
    return parts[0], parts[1], rest


def hyperparameters(name: str) -> dict[str, Any]:
    """Returns the arguments of the ranking and of the metric of `PAIRS[name]`, with default values."""
    return {field.name: field.default for part in PAIRS[name] for field in dataclasses.fields(part)}


def config_of(owner: type, ranking: Any, metric: Any) -> dict[str, Any]:
    """Returns what the owner's constructor takes of the two: the parts themselves, or fields of theirs."""
    taken = inspect.signature(owner.__init__).parameters  # type: ignore[misc]
    found = {"ranking": ranking, "metric": metric}
    for part in (ranking, metric):
        if dataclasses.is_dataclass(part):
            found.update({field.name: getattr(part, field.name) for field in dataclasses.fields(part)})
    return {name: encode(value) for name, value in found.items() if name in taken}


def encode(value: Any) -> Any:
    """Returns what a config holds of a part: its class's name and arguments. Anything else stays what it is.

    A class of the user's own is named as it is registered with Keras, which asks for a `get_config`; without one, the
    fields of a dataclass are told.
    """
    if hasattr(value, "get_config"):
        arguments = value.get_config()
    elif dataclasses.is_dataclass(value):
        arguments = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    elif isinstance(value, Ranking | RankingMetric):
        arguments = {}
    else:
        return value.tolist() if isinstance(value, np.ndarray) else value
    return {"class_name": tf.keras.utils.get_registered_name(type(value)), "config": arguments}


def decode(value: Any) -> Any:
    """Makes the part that `encode` described; anything else stays what it is.

    Raises:
      ValueError: If its class is unknown.
    """
    if not isinstance(value, dict) or set(value) != {"class_name", "config"}:
        return value
    name = value["class_name"]
    part = tf.keras.utils.get_registered_object(name) or _OWN.get(name)
    if part is None:
        raise ValueError(
            f"`class_name` must be a ranking or metric of tfr_smooth, or a class registered with "
            f"tf.keras.utils.register_keras_serializable, got {name!r}."
        )
    arguments = {key: decode(argument) for key, argument in value["config"].items()}
    return part.from_config(arguments) if hasattr(part, "from_config") else part(**arguments)
