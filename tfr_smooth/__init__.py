"""Differentiable ranking losses and metrics for TensorFlow and Keras: train rankers on NDCG, precision and MAP."""

from tfr_smooth import data, evaluation, losses, measures, metrics, models, rankings, serving, training
from tfr_smooth._version import __version__
from tfr_smooth.ranker import Ranker

__all__ = [
    "Ranker",
    "__version__",
    "data",
    "evaluation",
    "losses",
    "measures",
    "metrics",
    "models",
    "rankings",
    "serving",
    "training",
]
