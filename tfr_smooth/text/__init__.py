"""Text reranking: rerankers on KerasHub backbones that train with any loss of this library."""

from tfr_smooth.text.candidates import bm25
from tfr_smooth.text.collection import Collection, Document, read_collection, title_queries
from tfr_smooth.text.encoder import Encoder, load_encoder
from tfr_smooth.text.pairs import Pairs, read_pairs
from tfr_smooth.text.reranker_export import export_reranker
from tfr_smooth.text.rerankers import CrossEncoder, LateInteraction, Reranker
from tfr_smooth.text.token_inputs import Inputs, LateInputs, PairInputs
from tfr_smooth.text.training import MEASURES, RerankerRecipe, best_mix, mix, train
from tfr_smooth.text.training_lists import TrainingLists

__all__ = [
    "MEASURES",
    "Collection",
    "CrossEncoder",
    "Document",
    "Encoder",
    "Inputs",
    "LateInputs",
    "LateInteraction",
    "PairInputs",
    "Pairs",
    "RerankerRecipe",
    "Reranker",
    "TrainingLists",
    "best_mix",
    "bm25",
    "export_reranker",
    "load_encoder",
    "mix",
    "read_collection",
    "read_pairs",
    "title_queries",
    "train",
]
