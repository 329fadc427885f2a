"""SoftRank: the ranking and the distributions of ranks."""

from tfr_smooth.rankings.softrank.rank_distributions import win_probabilities
from tfr_smooth.rankings.softrank.softrank import SoftRank

__all__ = ["SoftRank", "win_probabilities"]
