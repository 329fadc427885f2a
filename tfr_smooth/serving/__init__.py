"""Export of rankers for TF Serving and as ONNX files, and scores on the workers of Spark, Dask and Ray."""

from tfr_smooth.serving.onnx_export import export_onnx
from tfr_smooth.serving.partitions import score_partitions
from tfr_smooth.serving.ranker_export import export_ranker
from tfr_smooth.serving.servable import INVALID_SCORE

__all__ = ["INVALID_SCORE", "export_onnx", "export_ranker", "score_partitions"]
