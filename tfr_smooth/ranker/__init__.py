"""`Ranker`: training, prediction, evaluation and export of a ranker on a table."""

from tfr_smooth.ranker.ranker import Ranker

__all__ = ["Ranker"]
