"""Serving signatures."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth.models import PADDING_SCORE


class MaskedScores(tf.Module):
    """A model with `models.PADDING_SCORE` as the score of padding, below every real score.

    TF-Ranking's score of padding is log(1e-10), about -23, and scores of real documents can be lower.

    Args:
      model: A model that takes a dict of inputs and returns scores [batch, list], or a dict of these.
      mask_feature_name: Name of the input that is True for documents and False for padding; None does not change the
        scores.
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
    """Returns TF-Ranking's signatures `predict` and `regress` (also as the default), with masked padding."""
    scorer = MaskedScores(model, mask_feature_name)
    return tfr.keras.saved_model.Signatures(scorer, context_spec, example_spec, mask_feature_name)()


def raw_signature(model: tf.keras.Model, mask_feature_name: str | None) -> Any:
    """Returns a signature that takes the model's input tensors and returns `scores`, or the scores by task.

    Raises:
      ValueError: If the model does not have named, dense inputs, as models of a `ModelBuilder` do.
    """
    inputs = getattr(model, "input", None) if model.inputs else None
    if not isinstance(inputs, dict) or not all(isinstance(x.type_spec, tf.TensorSpec) for x in inputs.values()):
        raise ValueError(
            "`default_signature` must not be 'raw' for a model without named, dense inputs (functional models, such as "
            f"those of a ModelBuilder, have them), got {type(model).__name__}."
        )
    scorer = MaskedScores(model, mask_feature_name)

    @tf.function
    def raw(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = scorer(features)
        return outputs if isinstance(outputs, dict) else {"scores": outputs}

    specs = {name: tf.TensorSpec(x.shape, x.dtype, name=name) for name, x in inputs.items()}
    return raw.get_concrete_function(**specs)
