"""Serving signatures."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth.models import PADDING_SCORE


class MaskedScores(tf.Module):
    """A model whose scores at padding are `models.PADDING_SCORE`, below every real one.

    TF-Ranking's own are log(1e-10), about -23, at padding, which a real document's score may be under.

    Args:
      model: A model that takes a dict of inputs and returns scores [batch, list], or a dict of these.
      mask_feature_name: The name of the input that is True at real documents; None leaves the scores as they are.
    """

    def __init__(self, model: tf.keras.Model, mask_feature_name: str | None) -> None:
        super().__init__()
        self._model = model
        self._mask_feature_name = mask_feature_name

    def __call__(self, inputs: dict[str, tf.Tensor], training: bool = False) -> Any:
        """Returns the scores."""
        outputs = self._model(inputs, training=training)
        if not self._mask_feature_name:
            return outputs
        mask = inputs[self._mask_feature_name]
        return tf.nest.map_structure(
            lambda scores: tf.where(mask, scores, tf.constant(PADDING_SCORE, scores.dtype)), outputs
        )


def elwc_signatures(
    model: tf.keras.Model, context_spec: dict[str, Any], example_spec: dict[str, Any], mask_feature_name: str | None
) -> dict[str, Any]:
    """Returns TF-Ranking's signatures `predict` and `regress` (and the latter as the default), padding masked."""
    scorer = MaskedScores(model, mask_feature_name)
    return tfr.keras.saved_model.Signatures(scorer, context_spec, example_spec, mask_feature_name)()


def raw_signature(model: tf.keras.Model, mask_feature_name: str | None) -> Any:
    """Returns a signature that takes the model's inputs as tensors, and returns `scores` or each task's scores.

    Raises:
      ValueError: If the model has no named, dense inputs, as those of a `ModelBuilder` do.
    """
    inputs = getattr(model, "input", None) if model.inputs else None
    if not isinstance(inputs, dict) or not all(isinstance(x.type_spec, tf.TensorSpec) for x in inputs.values()):
        raise ValueError(
            "`default_signature` must not be 'raw' for a model that has no named, dense inputs (a functional model, as "
            f"a ModelBuilder makes), got {type(model).__name__}."
        )
    scorer = MaskedScores(model, mask_feature_name)

    @tf.function
    def raw(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = scorer(features)
        return outputs if isinstance(outputs, dict) else {"scores": outputs}

    specs = {name: tf.TensorSpec(x.shape, x.dtype, name=name) for name, x in inputs.items()}
    return raw.get_concrete_function(**specs)
