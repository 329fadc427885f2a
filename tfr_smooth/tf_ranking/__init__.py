"""For users of TF-Ranking: its losses and ours by name, pipelines and dataset builders (needs `tensorflow_ranking`)."""

from tfr_smooth.tf_ranking.datasets import LetorDatasetBuilder, MultiLabelDatasetBuilder, SimpleDatasetBuilder
from tfr_smooth.tf_ranking.hparams import PipelineHparams
from tfr_smooth.tf_ranking.names import get, get_metric
from tfr_smooth.tf_ranking.pipeline import MultiTaskPipeline, SimplePipeline

__all__ = [
    "LetorDatasetBuilder",
    "MultiLabelDatasetBuilder",
    "MultiTaskPipeline",
    "PipelineHparams",
    "SimpleDatasetBuilder",
    "SimplePipeline",
    "get",
    "get_metric",
]
