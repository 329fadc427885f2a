"""The feed-forward scorers of the learning-to-rank papers."""

from tfr_smooth.models.batch_normalization import BatchNormalization
from tfr_smooth.models.feed_forward import ARCHITECTURES, PADDING_SCORE, FeedForwardScorer

__all__ = ["ARCHITECTURES", "PADDING_SCORE", "BatchNormalization", "FeedForwardScorer"]
