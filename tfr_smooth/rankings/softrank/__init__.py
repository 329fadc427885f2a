"""SoftRank: the ranking and the distributions of ranks."""

from tfr_smooth.rankings.softrank.rank_distributions import rank_distributions, win_probabilities
from tfr_smooth.rankings.softrank.softrank import SoftRank

__all__ = ["SoftRank", "rank_distributions", "win_probabilities"]
