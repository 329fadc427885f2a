"""Feed-forward scorers from the learning-to-rank papers, and their layers."""

from tfr_smooth.models.average import AverageScorer
from tfr_smooth.models.batch_normalization import BatchNormalization
from tfr_smooth.models.feed_forward import ARCHITECTURES, PADDING_SCORE, FeedForwardScorer
from tfr_smooth.models.list_attention import ListAttention
from tfr_smooth.models.normalization import QueryMinMax, Standardize, SymmetricLog1p, get_normalizer

__all__ = [
    "ARCHITECTURES",
    "PADDING_SCORE",
    "AverageScorer",
    "BatchNormalization",
    "FeedForwardScorer",
    "ListAttention",
    "QueryMinMax",
    "Standardize",
    "SymmetricLog1p",
    "get_normalizer",
]
