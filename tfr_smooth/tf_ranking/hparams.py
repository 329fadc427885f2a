"""The hyperparameters of the pipelines."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow_ranking as tfr

from tfr_smooth import _arguments


@dataclasses.dataclass(kw_only=True)
class PipelineHparams(tfr.keras.pipeline.PipelineHparams):
    """TF-Ranking's `PipelineHparams` with arguments of the loss, and with metrics.

    The other attributes are TF-Ranking's. `loss` may be a loss of either library, see `tf_ranking.get`.

    Attributes:
      loss_kwargs: Further arguments of the loss, such as {"alpha": 10.0, "topn": 5}; for `MultiTaskPipeline`, a dict of
        task to such a dict. None for no arguments.
      metrics: The metrics (of each task): names as `tf_ranking.get_metric` takes them ("ndcg@10", "tfr/mrr"), or dicts
        with "metric" and other arguments ({"metric": "ndcg", "gain": "linear"}).
      ragged: Whether labels and scores are `tf.RaggedTensor`.

    Raises:
      ValueError: If `loss_kwargs` is not a dict, or not one of dicts by task if `loss` is a dict.

    Example:
      >>> from tfr_smooth import tf_ranking
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir="/tmp/model", num_epochs=2, steps_per_epoch=100, validation_steps=10, learning_rate=0.01,
      ...     loss="smoothi_ndcg", loss_kwargs={"alpha": 10.0},
      ... )
      >>> hparams.optimizer
      'adam'
    """

    loss_kwargs: dict[str, Any] | None = None
    metrics: Sequence[str | dict[str, Any]] = ("ndcg@1", "ndcg@5", "ndcg@10", "ndcg")
    ragged: bool = False

    def __post_init__(self) -> None:
        """Checks the new attributes."""
        _arguments.boolean("ragged", self.ragged)
        if not isinstance(self.loss_kwargs, (dict, type(None))):
            raise ValueError(f"`loss_kwargs` must be a dict or None, got {self.loss_kwargs!r}.")
        if isinstance(self.loss, dict):
            for task, arguments in (self.loss_kwargs or {}).items():
                if task not in self.loss or not isinstance(arguments, dict):
                    raise ValueError(
                        f"`loss_kwargs` must be a dict of the tasks {sorted(self.loss)} to dicts, "
                        f"got {task!r}: {arguments!r}."
                    )
