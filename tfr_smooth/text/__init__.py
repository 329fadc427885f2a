"""Text reranking: rerankers on KerasHub backbones that train with any loss of this library."""

from tfr_smooth.text.architectures import CrossEncoder, LateInteraction, SingleVector
from tfr_smooth.text.checkpoints import load_encoder
from tfr_smooth.text.encoder import Encoder
from tfr_smooth.text.reranker import Reranker
from tfr_smooth.text.text_ranker import TextRanker

__all__ = [
    "CrossEncoder",
    "Encoder",
    "LateInteraction",
    "Reranker",
    "SingleVector",
    "TextRanker",
    "load_encoder",
]
