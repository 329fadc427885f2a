"""The hyperparameters of the pipelines."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow_ranking as tfr

from tfr_smooth import _arguments

SIGNATURES = ("regress", "predict", "raw")


@dataclasses.dataclass(kw_only=True)
class PipelineHparams(tfr.keras.pipeline.PipelineHparams):
    """TF-Ranking's `PipelineHparams`, with arguments of losses, metrics and the default signature.

    The attributes that differ from TF-Ranking's own or are new:

    Attributes:
      model_dir: Where checkpoints, logs and exports are written. A training that finds checkpoints there resumes.
      num_epochs: Number of epochs in all, those of an interrupted training included.
      learning_rate: Learning rate of the optimizer.
      loss: Name of a loss of either library, see `tf_ranking.get`; for `MultiTaskPipeline` a dict of task to name.
      steps_per_epoch: Batches in an epoch; None for one pass over the training data.
      validation_steps: None for the whole validation set, each list once; else at most this many batches of it.
      loss_kwargs: Further arguments of the loss, such as {"alpha": 10.0, "topn": 5}; for `MultiTaskPipeline` a dict of
        task to such a dict.
      metrics: What `build_metrics` makes, for each task: names as `tf_ranking.get_metric` takes them ("ndcg@10",
        "tfr/mrr"), or dicts with "metric" and other arguments ({"metric": "ndcg", "gain": "linear"}). None for NDCG at
        1, 5, 10 and of the whole list, by this library: exact, and the same each time where scores are tied.
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      best_exporter_metric: What selects the best epoch: "loss", a metric such as "ndcg_5" ("weighted_ndcg_5" of the
        weighted metrics), with several tasks also "TASK/loss" and "TASK/ndcg_5". On the validation set.
      best_exporter_metric_higher_better: Whether more of that is better; None for what is known of the metric: less of
        "loss" and of TF-Ranking's "arp", more of every other.
      default_signature: What the exports serve by default: "predict" (serialized ExampleListWithContext), "regress"
        (serialized Example) or "raw" (the model's input tensors by name). None leaves it to the dataset builder; those
        of TF-Ranking and of this library take "regress".

    Raises:
      ValueError: If an attribute is not one of these.

    Example:
      >>> from tfr_smooth import tf_ranking
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir="/tmp/model", num_epochs=2, learning_rate=0.01, loss="smoothi_ndcg", loss_kwargs={"alpha": 10.0}
      ... )
      >>> hparams.steps_per_epoch is None, hparams.optimizer
      (True, 'adam')
    """

    # Repeated so that those that have a default here can have it, by keyword.
    model_dir: str
    num_epochs: int
    learning_rate: float
    loss: str | dict[str, str]
    steps_per_epoch: int | None = None
    validation_steps: int | None = None
    best_exporter_metric_higher_better: bool | None = None
    loss_kwargs: dict[str, Any] | None = None
    metrics: Sequence[str | dict[str, Any]] | None = None
    ragged: bool = False
    default_signature: str | None = None

    def __post_init__(self) -> None:
        """Checks what can be checked without a model."""
        _arguments.integer("num_epochs", self.num_epochs, least=1)
        for name in ("steps_per_epoch", "validation_steps"):
            if getattr(self, name) is not None:
                _arguments.integer(name, getattr(self, name), least=1)
        _arguments.boolean("ragged", self.ragged)
        if self.default_signature is not None:
            _arguments.choice("default_signature", self.default_signature, SIGNATURES)
        if not isinstance(self.loss_kwargs, (dict, type(None))):
            raise ValueError(f"`loss_kwargs` must be a dict or None, got {self.loss_kwargs!r}.")
        if isinstance(self.loss, dict):
            for task, arguments in (self.loss_kwargs or {}).items():
                if task not in self.loss or not isinstance(arguments, dict):
                    raise ValueError(
                        f"`loss_kwargs` must hold a dict for each of the tasks {sorted(self.loss)}, "
                        f"got {task!r}: {arguments!r}."
                    )

    @classmethod
    def of(cls, hparams: tfr.keras.pipeline.PipelineHparams) -> PipelineHparams:
        """Returns `hparams` itself, or TF-Ranking's own with the defaults for what they lack."""
        if isinstance(hparams, cls):
            return hparams
        return cls(**{field.name: getattr(hparams, field.name) for field in dataclasses.fields(hparams)})
