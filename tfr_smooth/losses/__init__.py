"""Keras ranking losses, and a table of all losses by name."""

from tfr_smooth._lists import list_weights
from tfr_smooth.losses import measure_losses
from tfr_smooth.losses.baselines import *  # noqa: F403
from tfr_smooth.losses.baselines import BASELINES
from tfr_smooth.losses.loss_table import NAMES, TABLE, Entry, deserialize, get, hyperparameters, serialize
from tfr_smooth.losses.measure_losses import *  # noqa: F403
from tfr_smooth.losses.ranking_loss import MeasureLoss, RankingLoss

__all__ = [
    "BASELINES",
    "NAMES",
    "TABLE",
    "Entry",
    "MeasureLoss",
    "RankingLoss",
    "deserialize",
    "get",
    "hyperparameters",
    "list_weights",
    "serialize",
]
__all__ += [*(loss.__name__ for loss in BASELINES), *measure_losses.__all__]
