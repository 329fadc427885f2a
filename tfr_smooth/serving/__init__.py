"""Export of rankers for TF Serving, for Python and as ONNX files."""

from tfr_smooth.serving.loading import load
from tfr_smooth.serving.onnx_export import export_onnx
from tfr_smooth.serving.ranker_export import export_ranker
from tfr_smooth.serving.servable import INVALID_SCORE
from tfr_smooth.serving.workers import PartitionRecommender, PartitionScorer, map_partitions

__all__ = [
    "INVALID_SCORE",
    "PartitionRecommender",
    "PartitionScorer",
    "export_onnx",
    "export_ranker",
    "load",
    "map_partitions",
]
