"""Smooth ranking metrics for TensorFlow and Keras: train rankers on NDCG, precision and MAP directly."""

from tfr_smooth import data, functional, losses, metrics, models, ops
from tfr_smooth._version import __version__

__all__ = ["__version__", "data", "functional", "losses", "metrics", "models", "ops"]
