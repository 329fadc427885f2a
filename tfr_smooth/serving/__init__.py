"""Export for TF Serving."""

from tfr_smooth.serving.export import export_ranker

__all__ = ["export_ranker"]
