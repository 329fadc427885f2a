"""Text reranking: rerankers on KerasHub backbones that train with any loss of this library."""

from tfr_smooth.text.candidates import bm25
from tfr_smooth.text.collection import read_collection
from tfr_smooth.text.encoder import Encoder, load_encoder
from tfr_smooth.text.rerankers import CrossEncoder, LateInteraction, Reranker
from tfr_smooth.text.text_ranker import TextRanker

__all__ = [
    "CrossEncoder",
    "Encoder",
    "LateInteraction",
    "Reranker",
    "TextRanker",
    "bm25",
    "load_encoder",
    "read_collection",
]
