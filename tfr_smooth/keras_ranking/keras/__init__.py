"""The namespace `tfr.keras`."""

from tfr_smooth.keras_ranking.keras import layers, losses, metrics, utils

__all__ = ["layers", "losses", "metrics", "utils"]
