"""Feed-forward scorers from the learning-to-rank papers, their layers, and scorers of table columns."""

from tfr_smooth.models.batch_normalization import BatchNormalization
from tfr_smooth.models.feed_forward import ARCHITECTURES, PADDING_SCORE, FeedForwardScorer
from tfr_smooth.models.list_attention import ListAttention
from tfr_smooth.models.normalization import QueryMinMax, Standardize, SymmetricLog1p, get_normalizer
from tfr_smooth.models.scorer import Scorer
from tfr_smooth.models.table_features import TableFeatures
from tfr_smooth.models.table_scorer import TableScorer

__all__ = [
    "ARCHITECTURES",
    "PADDING_SCORE",
    "BatchNormalization",
    "FeedForwardScorer",
    "ListAttention",
    "QueryMinMax",
    "Scorer",
    "Standardize",
    "SymmetricLog1p",
    "TableFeatures",
    "TableScorer",
    "get_normalizer",
]
