"""Differentiable ranking losses and metrics for TensorFlow and Keras: train rankers on NDCG, precision and MAP."""

from tfr_smooth import _quiet  # noqa: F401, I001  # before TensorFlow is imported
from tfr_smooth import clicks, columns, data, evaluation, losses, measures, metrics, models, rankings, serving, training
from tfr_smooth._estimator import load
from tfr_smooth._version import __version__
from tfr_smooth.ranker import Ranker

__all__ = [
    "Ranker",
    "__version__",
    "clicks",
    "columns",
    "data",
    "evaluation",
    "load",
    "losses",
    "measures",
    "metrics",
    "models",
    "rankings",
    "serving",
    "training",
]
