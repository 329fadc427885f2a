"""Export of rankers for TF Serving."""

from tfr_smooth.serving.ranker_export import export_ranker
from tfr_smooth.serving.servable import INVALID_SCORE

__all__ = ["INVALID_SCORE", "export_ranker"]
