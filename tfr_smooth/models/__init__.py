"""Scorers from the learning-to-rank papers and of table columns, and layers of lists, such as TF-Ranking's."""

from tfr_smooth.models.encoded_scorer import PADDING_SCORE, Embeddings, NetworkScorer
from tfr_smooth.models.feed_forward import ARCHITECTURES, FeedForwardScorer
from tfr_smooth.models.list_attention import DocumentInteractionAttention, ListAttention
from tfr_smooth.models.list_layers import ConcatFeatures, FlattenList, GAMLayer, RestoreList, create_tower
from tfr_smooth.models.normalization import Quantiles, QueryMinMax, Standardize, SymmetricLog1p, get_normalizer
from tfr_smooth.models.scorer import Scorer
from tfr_smooth.models.table_scorer import TableScorer
from tfr_smooth.models.wrapped_scorers import CalibratedScorer, IsotonicCalibration, PlattCalibration, PositionBias

__all__ = [
    "ARCHITECTURES",
    "PADDING_SCORE",
    "CalibratedScorer",
    "ConcatFeatures",
    "DocumentInteractionAttention",
    "Embeddings",
    "FeedForwardScorer",
    "FlattenList",
    "GAMLayer",
    "IsotonicCalibration",
    "ListAttention",
    "NetworkScorer",
    "PlattCalibration",
    "PositionBias",
    "Quantiles",
    "QueryMinMax",
    "RestoreList",
    "Scorer",
    "Standardize",
    "SymmetricLog1p",
    "TableScorer",
    "create_tower",
    "get_normalizer",
]
