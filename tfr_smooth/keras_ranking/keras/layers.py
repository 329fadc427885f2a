"""The namespace `tfr.keras.layers`."""

from tfr_smooth.models import (
    ConcatFeatures,
    DocumentInteractionAttention,
    FlattenList,
    GAMLayer,
    RestoreList,
    create_tower,
)

__all__ = [
    "ConcatFeatures",
    "DocumentInteractionAttention",
    "FlattenList",
    "GAMLayer",
    "RestoreList",
    "create_tower",
]
