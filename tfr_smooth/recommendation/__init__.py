"""Recommendation: which items of a catalog a user wants, learned from interactions."""

from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.readers import from_dataframe, read_lists, read_ratings

__all__ = [
    "Interactions",
    "from_dataframe",
    "read_lists",
    "read_ratings",
]
