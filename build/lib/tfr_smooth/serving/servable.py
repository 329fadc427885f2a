"""The functions of tensors that a SavedModel holds, one for each signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfr_smooth import _keras
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.serving.inputs import RankerInputs, Tensors, plain

# The score of a document that the model cannot score: it, or its list, has a feature that is NaN or infinite, or the
# model's own score is. Such a document comes after all others and before padding. It is not an error, because a server
# that batches would fail the requests of other clients with it.
INVALID_SCORE = -1e29

# Clients of TF-Ranking's exports ask for these names.
ALIASES = {
    "predict": tf.saved_model.PREDICT_METHOD_NAME,
    "regress": tf.saved_model.REGRESS_METHOD_NAME,
}
_RANK_OUTPUTS = ("scores", "valid", "order", "top_k", "top_k_scores")


def make_servable(
    model: tf.keras.Model,
    inputs: RankerInputs,
    *,
    top_k: int | None,
    rank_by: str | None,
    serving_default: str | None,
) -> tuple[tf.Module, dict[str, str]]:
    """Puts the model behind functions of tensors, without Keras.

    Args:
      model: The Keras model.
      inputs: What it is asked with.
      top_k: The length of `rank`'s outputs `top_k` and `top_k_scores`, or None for neither.
      rank_by: Which of the model's outputs to order by, if it has several.
      serving_default: What the default signature does: "scores", "predict" or "regress"; None for the first that these
        inputs can have.

    Returns:
      What to save, whose attributes are the functions "scores" and "rank" (of tensors), "predict" and "regress" (of
      protos); and which of them each signature calls.

    Raises:
      ValueError: If the inputs cannot have that default signature.
    """
    score = _Scorer(model, inputs)
    serialized = tf.TensorSpec([None], tf.string, name=tf.saved_model.PREDICT_INPUTS)

    def predict(serialized_lists: tf.Tensor) -> Tensors:
        scores, _ = score(*inputs.parse_lists(serialized_lists))
        return {name or tf.saved_model.PREDICT_OUTPUTS: values for name, values in scores.items()}

    def regress(serialized_examples: tf.Tensor) -> Tensors:
        scores, _ = score(*inputs.parse_examples(serialized_examples))
        return {name or tf.saved_model.REGRESS_OUTPUTS: values[:, 0] for name, values in scores.items()}

    functions = {
        **(_tensor_functions(score, inputs, top_k, rank_by) if inputs.takes_tensors else {}),
        "predict": tf.function(predict, [serialized]),
        "regress": tf.function(regress, [serialized]),
    }
    defaults = [name for name in functions if name != "rank"]
    if serving_default is not None and serving_default not in defaults:
        expected = "one of " + ", ".join(map(repr, defaults))
        raise ValueError(f"`serving_default` must be {expected} for these features, got {serving_default!r}.")
    servable = tf.Module()
    # The variables and tables alone: Keras would save all of the model's own functions with it.
    servable.model_variables = _keras.tensorflow_variables(model.variables)
    servable.model_tables = _tables(model)
    for name, function in functions.items():
        setattr(servable, name, function)
    return servable, {
        tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: serving_default or defaults[0],
        **{name: name for name in functions if name != "scores"},
        **{alias: name for name, alias in ALIASES.items()},
    }


class _Scorer:
    """Calls the model with what it can score, and puts the documented values everywhere else."""

    def __init__(self, model: tf.keras.Model, inputs: RankerInputs) -> None:
        self.model, self.inputs = model, inputs

    def __call__(self, features: Tensors, mask: tf.Tensor) -> tuple[dict[str | None, tf.Tensor], tf.Tensor]:
        """Returns the scores [batch, list] by output (None for a model's only one), and where they are valid."""
        valid = self.inputs.finite(features, mask)
        asked = {name: _without_nan(values) for name, values in features.items()}
        if self.inputs.mask_feature_name is not None:
            asked[self.inputs.mask_feature_name] = valid
        outputs = self.model(asked, training=False)
        if not isinstance(outputs, dict):
            outputs = {None: outputs}
        scores = {}
        for name, values in outputs.items():
            if values.shape.rank != 2:
                raise ValueError(f"`model` must return scores [batch, list], got the shape {values.shape}.")
            scores[name] = tf.cast(values, tf.float32)
            valid = valid & tf.math.is_finite(scores[name]) & (scores[name] > INVALID_SCORE)
        elsewhere = tf.where(mask, INVALID_SCORE, PADDING_SCORE)
        return {name: tf.where(valid, values, elsewhere) for name, values in scores.items()}, valid


def _tensor_functions(
    score: _Scorer, inputs: RankerInputs, top_k: int | None, rank_by: str | None
) -> dict[str, Callable[..., Tensors]]:
    """The functions `scores` and `rank` of raw tensors."""
    specs = inputs.tensor_specs()
    mask_spec = tf.TensorSpec([None, None], tf.bool, name=inputs.mask_name)

    def score_all(features: Tensors) -> Tensors:
        features = _checked_shapes(features, inputs)
        scores, _ = score(features, tf.ones(_list_shape(features, inputs), tf.bool))
        return {name or "scores": values for name, values in scores.items()}

    def rank_masked(features: Tensors, mask: tf.Tensor) -> Tensors:
        features = _checked_shapes(features, inputs)
        mask = _full_mask(mask, _list_shape(features, inputs))
        scores, valid = score(features, mask)
        by = scores[_order_by(scores, rank_by)]
        return {
            **{name or "scores": values for name, values in scores.items()},
            "valid": valid,
            **_order(by, mask, top_k),
        }

    if list(specs) == ["features"] and inputs.mask_name == "mask":
        # Arguments of their own, so that Python may call `loaded.rank(features)`.
        def scores(features: tf.Tensor) -> Tensors:
            return score_all({"features": features})

        def rank(features: tf.Tensor, mask: tf.Tensor = tf.constant([[True]])) -> Tensors:  # noqa: B008
            return rank_masked({"features": features}, mask)

        return {
            "scores": tf.function(scores, [specs["features"]]),
            "rank": tf.function(rank, [specs["features"], mask_spec]),
        }

    def rank_named(named: Tensors) -> Tensors:
        return rank_masked({name: named[name] for name in specs}, named[inputs.mask_name])

    return {
        "scores": tf.function(score_all, [specs]),
        "rank": tf.function(rank_named, [{**specs, inputs.mask_name: mask_spec}]),
    }


@plain
def _order_by(scores: dict[str | None, tf.Tensor], rank_by: str | None) -> str | None:
    names = [name for name in scores if name is not None]
    if not names:
        if rank_by is not None:
            raise ValueError(f"`rank_by` must be None for a model with one output, got {rank_by!r}.")
        return None
    if rank_by not in names:
        raise ValueError(f"`rank_by` must be one of {', '.join(map(repr, names))}, got {rank_by!r}.")
    taken = sorted(set(names) & set(_RANK_OUTPUTS))
    if taken:
        raise ValueError(f"`model` must have no output named as one of the signature's, got {taken[0]!r}.")
    return rank_by


@plain
def _order(scores: tf.Tensor, mask: tf.Tensor, top_k: int | None) -> Tensors:
    """The documents' places from the best to the worst, equal scores in the order they came; -1 behind the last."""
    width = tf.shape(scores)[1]
    ordered, order = tf.math.top_k(scores, k=width)
    behind = ~tf.sequence_mask(tf.reduce_sum(tf.cast(mask, tf.int32), axis=1), width)
    order = tf.where(behind, -1, order)
    if top_k is None:
        return {"order": order}
    missing = [[0, 0], [0, tf.maximum(top_k - width, 0)]]
    best = tf.pad(order[:, :top_k], missing, constant_values=-1)
    best_scores = tf.pad(ordered[:, :top_k], missing, constant_values=PADDING_SCORE)
    return {
        "order": order,
        "top_k": tf.ensure_shape(best, [None, top_k]),
        "top_k_scores": tf.ensure_shape(best_scores, [None, top_k]),
    }


@plain
def _checked_shapes(features: Tensors, inputs: RankerInputs) -> Tensors:
    """Stops a request whose tensors have other shapes than the signature's, or do not go together.

    A server feeds them unchecked, and features that are too few could broadcast into a score.
    """
    specs = inputs.tensor_specs()
    features = {name: tf.ensure_shape(values, specs[name].shape) for name, values in features.items()}
    shape, first = _list_shape(features, inputs), next(iter(inputs.examples))
    checks = []
    for name, values in features.items():
        rank = 1 if name in inputs.context else 2
        message = f"`{name}` must be of as many lists and documents as `{first}`."
        if name != first:
            checks.append(tf.debugging.assert_equal(tf.shape(values)[:rank], shape[:rank], message=message))
    with tf.control_dependencies(checks):
        return {name: tf.identity(values) for name, values in features.items()}


@plain
def _full_mask(mask: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """The mask [batch, list], whose default is [1, 1]."""
    fits = tf.reduce_all(tf.shape(mask) == shape) | (tf.size(mask) == 1)
    message = "the mask must be [batch, list] like the features; its shape and theirs are"
    with tf.control_dependencies([tf.debugging.Assert(fits, [message, tf.shape(mask), shape])]):
        return tf.logical_and(mask, tf.ones(shape, tf.bool))


def _list_shape(features: Tensors, inputs: RankerInputs) -> tf.Tensor:
    return tf.shape(features[next(iter(inputs.examples))])[:2]


@plain
def _without_nan(values: Any) -> Any:
    """0 for what is not finite: a document with such a feature is masked, and 0 * NaN would be NaN."""
    if not values.dtype.is_floating:
        return values
    if isinstance(values, tf.RaggedTensor):
        return values.with_flat_values(_without_nan(values.flat_values))
    return tf.where(tf.math.is_finite(values), values, tf.zeros([], values.dtype))


def _tables(model: tf.keras.Model) -> list[Any]:
    """The lookup tables of the model's layers, which must be saved with the functions that use them."""
    kind = tf.saved_model.experimental.TrackableResource
    return [child for child in tf.train.TrackableView(model).descendants() if isinstance(child, kind)]
