"""Text reranking: rerankers on KerasHub backbones that train with any loss of this library."""

from tfr_smooth.text.encoder import Encoder, load_encoder
from tfr_smooth.text.mining import mine_negatives
from tfr_smooth.text.rerankers import CrossEncoder, LateInteraction, Reranker, SingleVector
from tfr_smooth.text.text_ranker import TextRanker

__all__ = [
    "CrossEncoder",
    "Encoder",
    "LateInteraction",
    "Reranker",
    "SingleVector",
    "TextRanker",
    "load_encoder",
    "mine_negatives",
]
