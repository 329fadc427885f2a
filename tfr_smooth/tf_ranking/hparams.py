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
    """TF-Ranking's `PipelineHparams` with arguments for losses, metrics and the default signature.

    These attributes are new or differ from TF-Ranking's:

    Attributes:
      model_dir: The folder of checkpoints, logs and exports. Training resumes from checkpoints in this folder.
      num_epochs: Total number of epochs, >= 1, including those of an interrupted training.
      learning_rate: Learning rate of the optimizer.
      loss: Name of a loss of either library, see `tf_ranking.get`; for `MultiTaskPipeline`, a dict of task to name.
      steps_per_epoch: Batches per epoch, >= 1; None for one pass over the training data.
      validation_steps: Maximum number of validation batches, >= 1; None for the whole validation set, each list once.
      best_exporter_metric: The validation metric that selects the best epoch: "loss", a metric such as "ndcg_5", or a
        weighted metric such as "weighted_ndcg_5"; with several tasks also "TASK/loss" and "TASK/ndcg_5".
      best_exporter_metric_higher_better: Whether a higher value of this metric is better; None for False with "loss"
        and TF-Ranking's "arp", and True otherwise.
      loss_kwargs: Further arguments of the loss, such as {"alpha": 10.0, "topn": 5}; for `MultiTaskPipeline`, a dict of
        task to such a dict. None for no arguments.
      metrics: The metrics (of each task): names as `tf_ranking.get_metric` takes them ("ndcg@10", "tfr/mrr"), or dicts
        with "metric" and other arguments ({"metric": "ndcg", "gain": "linear"}). None for this library's NDCG at 1, 5,
        10 and without a cutoff, which is deterministic for tied scores.
      ragged: Whether labels and scores are `tf.RaggedTensor`.
      default_signature: The default serving signature of exported models: "predict" (serialized
        ExampleListWithContext), "regress" (serialized Example) or "raw" (the model's input tensors by name). None uses
        the default of the dataset builder, which is "regress" in TF-Ranking and in this library.

    Raises:
      ValueError: If an argument is out of its range, or the type of `loss_kwargs` is wrong.

    Example:
      >>> from tfr_smooth import tf_ranking
      >>> hparams = tf_ranking.PipelineHparams(
      ...     model_dir="/tmp/model", num_epochs=2, learning_rate=0.01, loss="smoothi_ndcg", loss_kwargs={"alpha": 10.0}
      ... )
      >>> hparams.steps_per_epoch is None, hparams.optimizer
      (True, 'adam')
    """

    # Redeclared as keyword-only, which allows defaults that TF-Ranking's fields do not have.
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
        """Checks the arguments that do not depend on a model."""
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
                        f"`loss_kwargs` must be a dict of the tasks {sorted(self.loss)} to dicts, "
                        f"got {task!r}: {arguments!r}."
                    )

    @classmethod
    def of(cls, hparams: tfr.keras.pipeline.PipelineHparams) -> PipelineHparams:
        """Converts TF-Ranking's hyperparameters.

        Args:
          hparams: TF-Ranking's `PipelineHparams`, or this class.

        Returns:
          `hparams` itself, or a copy with default values for the new attributes.

        Raises:
          ValueError: If an argument is out of its range.
        """
        if isinstance(hparams, cls):
            return hparams
        return cls(**{field.name: getattr(hparams, field.name) for field in dataclasses.fields(hparams)})
