"""What training needs on top of `model.compile` and `model.fit`."""

from tfr_smooth.training.checkpoint import ResumableTraining
from tfr_smooth.training.cluster import is_chief, wait_for_workers
from tfr_smooth.training.scoring import score_queries
from tfr_smooth.training.strategies import STRATEGIES, get_strategy
from tfr_smooth.training.validation import ExactValidation

__all__ = [
    "STRATEGIES",
    "ExactValidation",
    "ResumableTraining",
    "get_strategy",
    "is_chief",
    "score_queries",
    "wait_for_workers",
]
