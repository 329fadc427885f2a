"""Feed-forward scorers from the learning-to-rank papers."""

from tfr_smooth.models.average import AverageScorer
from tfr_smooth.models.batch_normalization import BatchNormalization
from tfr_smooth.models.feed_forward import ARCHITECTURES, PADDING_SCORE, FeedForwardScorer
from tfr_smooth.models.list_attention import ListAttention

__all__ = [
    "ARCHITECTURES",
    "PADDING_SCORE",
    "AverageScorer",
    "BatchNormalization",
    "FeedForwardScorer",
    "ListAttention",
]
