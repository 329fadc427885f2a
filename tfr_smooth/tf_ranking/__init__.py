"""For users of TF-Ranking: losses and metrics of both libraries in its pipelines.

Requires `tensorflow_ranking`. `from tfr_smooth.tf_ranking import tfr` imports TF-Ranking itself, also on TensorFlow
2.16 and later.
"""

# First: the modules below import TF-Ranking.
from tfr_smooth.tf_ranking.compatibility import tfr
from tfr_smooth.tf_ranking.pipeline import MultiTaskPipeline, PipelineHparams, SimplePipeline, get, get_metric

__all__ = ["MultiTaskPipeline", "PipelineHparams", "SimplePipeline", "get", "get_metric", "tfr"]
