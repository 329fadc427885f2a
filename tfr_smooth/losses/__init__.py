"""Keras ranking losses, and a table of all losses by name."""

from tfr_smooth.losses import named
from tfr_smooth.losses.base import CriterionLoss, MetricLoss, RankingLoss
from tfr_smooth.losses.named import *  # noqa: F403
from tfr_smooth.losses.table import NAMES, TABLE, Entry, deserialize, get, hyperparameters, serialize

__all__ = [
    "NAMES",
    "TABLE",
    "CriterionLoss",
    "Entry",
    "MetricLoss",
    "RankingLoss",
    "deserialize",
    "get",
    "hyperparameters",
    "serialize",
]
__all__ += named.__all__
