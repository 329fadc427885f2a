"""Exact and smooth Keras ranking metrics, and a table of all metrics by name."""

from tfr_smooth.metrics import named
from tfr_smooth.metrics.base import MeanOverLists
from tfr_smooth.metrics.named import *  # noqa: F403
from tfr_smooth.metrics.table import NAMES, TABLE, deserialize, get, hyperparameters, serialize

__all__ = [
    "NAMES",
    "TABLE",
    "MeanOverLists",
    "deserialize",
    "get",
    "hyperparameters",
    "serialize",
]
__all__ += named.__all__
