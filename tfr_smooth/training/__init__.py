"""Tools for training with `model.fit`: callbacks, scoring, explanations and distribution strategies."""

from tfr_smooth.models.wrapped_scorers import fit_calibration
from tfr_smooth.training.explanation import Explanation, score_queries, score_rows
from tfr_smooth.training.lazy_adamw import LazyAdamW
from tfr_smooth.training.resuming import ResumableTraining
from tfr_smooth.training.softmax_first import SoftmaxFirst, SoftmaxFirstLoss
from tfr_smooth.training.strategies import STRATEGIES, get_strategy, is_chief, wait_for_workers
from tfr_smooth.training.trainer import StopOnNaN, train
from tfr_smooth.training.validation import ExactValidation, Validation

__all__ = [
    "STRATEGIES",
    "ExactValidation",
    "Explanation",
    "LazyAdamW",
    "ResumableTraining",
    "Validation",
    "SoftmaxFirst",
    "SoftmaxFirstLoss",
    "StopOnNaN",
    "fit_calibration",
    "get_strategy",
    "is_chief",
    "score_queries",
    "score_rows",
    "train",
    "wait_for_workers",
]
