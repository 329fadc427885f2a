"""Recommendation: which items of a catalog a user wants, learned from interactions."""

from tfr_smooth.recommendation.baselines import EASE, Baseline, MarkovChain, Popularity
from tfr_smooth.recommendation.batches import candidate_batches, dense_labels, user_batches
from tfr_smooth.recommendation.catalog_order import TopItems, top_items
from tfr_smooth.recommendation.catalog_sequences import CatalogSequences
from tfr_smooth.recommendation.evaluation import CatalogEvaluation, evaluate
from tfr_smooth.recommendation.factors import CatalogFactors
from tfr_smooth.recommendation.fit_data import hold_out
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.readers import from_dataframe, read_interactions
from tfr_smooth.recommendation.recommender import Recommender

__all__ = [
    "EASE",
    "Baseline",
    "CatalogEvaluation",
    "CatalogFactors",
    "CatalogSequences",
    "Interactions",
    "MarkovChain",
    "Popularity",
    "Recommender",
    "TopItems",
    "candidate_batches",
    "dense_labels",
    "evaluate",
    "from_dataframe",
    "hold_out",
    "read_interactions",
    "top_items",
    "user_batches",
]
