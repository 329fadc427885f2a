"""The tensor functions of a SavedModel, one per signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfr_smooth import _keras, _padded
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.serving.ranker_inputs import RankerInputs, Tensors, plain

# The score of a document that the model cannot score: a feature of it or of its list, or the model's score, is NaN or
# infinite. Such documents are ranked after all other documents and before padding. They are not an error, because a
# server that batches requests would then fail the requests of other clients.
INVALID_SCORE = -1e29

_RANK_OUTPUTS = ("scores", "valid", "order", "topn", "topn_scores")


def make_servable(
    model: tf.keras.Model, inputs: RankerInputs, *, topn: int | None, rank_by: str | None, serving_default: str | None
) -> tuple[tf.Module, dict[str, str]]:
    """Wraps the model in tensor functions without Keras.

    Args:
      model: The Keras model.
      inputs: The inputs of the model.
      topn: The length of the outputs `topn` and `topn_scores` of `rank`. None omits them.
      rank_by: The output to sort by, for a model with several outputs.
      serving_default: The function of the default signature: "scores" or "predict". None uses the first that the
        inputs support.

    Returns:
      The module to save, with the functions "scores" and "rank" (of tensors) and "predict" (of protos) as attributes,
      and the function name for each signature.

    Raises:
      ValueError: If the inputs do not support the default signature.
    """
    score = _Scorer(model, inputs)
    serialized = tf.TensorSpec([None], tf.string, name=tf.saved_model.PREDICT_INPUTS)

    def predict(serialized_lists: tf.Tensor) -> Tensors:
        scores, _ = score(*inputs.parse_lists(tf.ensure_shape(serialized_lists, [None])))
        return {name or tf.saved_model.PREDICT_OUTPUTS: values for name, values in scores.items()}

    functions = _tensor_functions(score, inputs, topn, rank_by) if inputs.takes_tensors else {}
    functions["predict"] = tf.function(predict, [serialized])
    defaults = [name for name in functions if name != "rank"]
    if serving_default is not None and serving_default not in defaults:
        expected = "one of " + ", ".join(map(repr, defaults))
        raise ValueError(f"`serving_default` must be {expected} for these features, got {serving_default!r}.")
    servable = tf.Module()
    # Only the variables and tables: Keras would save all functions of the model with it.
    servable.model_variables = _keras.tensorflow_variables(model.variables)
    servable.model_tables = _tables(model)
    for name, function in functions.items():
        setattr(servable, name, function)
    return servable, {
        tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: serving_default or defaults[0],
        **{name: name for name in functions if name != "scores"},
        tf.saved_model.PREDICT_METHOD_NAME: "predict",  # the name that clients of TF-Ranking's exports use
    }


class _Scorer:
    """Scores the valid documents with the model, and returns sentinel scores for other positions."""

    def __init__(self, model: tf.keras.Model, inputs: RankerInputs) -> None:
        self.model, self.inputs = model, inputs

    def __call__(self, features: Tensors, mask: tf.Tensor) -> tuple[dict[str | None, tf.Tensor], tf.Tensor]:
        """Returns the scores [batch, list] by output name (None for a single output), and where they are valid."""
        valid = self.inputs.valid_documents(features, mask)
        asked = self.inputs.without_invalid(features)
        if self.inputs.mask_feature_name is not None:
            asked[self.inputs.mask_feature_name] = valid
        outputs = self.model(asked, training=False)
        if not isinstance(outputs, dict):
            outputs = {None: outputs}
        scores = {}
        for name, values in outputs.items():
            values = _padded.squeezed(values)
            if values.shape.rank != 2:
                raise ValueError(f"`model` must return scores [batch, list] or [batch, list, 1], got {values.shape}.")
            scores[name] = tf.cast(values, tf.float32)
            valid = valid & tf.math.is_finite(scores[name]) & (scores[name] > INVALID_SCORE)
        elsewhere = tf.where(mask, INVALID_SCORE, PADDING_SCORE)
        return {name: tf.where(valid, values, elsewhere) for name, values in scores.items()}, valid


def _tensor_functions(
    score: _Scorer, inputs: RankerInputs, topn: int | None, rank_by: str | None
) -> dict[str, Callable[..., Tensors]]:
    """Returns the functions `scores` and `rank` of tensors."""
    specs = inputs.tensor_specs()
    mask_spec = tf.TensorSpec([None, None], tf.bool, name=inputs.arguments[inputs.mask_name])

    def score_all(features: Tensors) -> Tensors:
        features = _checked_shapes(features, inputs)
        scores, _ = score(features, tf.ones(_list_shape(features, inputs), tf.bool))
        return {name or "scores": values for name, values in scores.items()}

    def rank_masked(features: Tensors, mask: tf.Tensor) -> Tensors:
        features = _checked_shapes(features, inputs)
        mask = _full_mask(mask, _list_shape(features, inputs))
        scores, valid = score(features, mask)
        by = scores[_order_by(scores, rank_by)]
        named = {name or "scores": values for name, values in scores.items()}
        return {**named, "valid": valid, **_order(by, mask, topn)}

    if list(specs) == ["features"] and inputs.mask_name == "mask":
        # Separate arguments allow the call `loaded.rank(features)` in Python.
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
        raise ValueError(f"`model` must have no output with a reserved name, got {taken[0]!r}.")
    return rank_by


@plain
def _order(scores: tf.Tensor, mask: tf.Tensor, topn: int | None) -> Tensors:
    """Returns the indices of the documents from best to worst, ties in input order, followed by -1 for padding."""
    width = tf.shape(scores)[1]
    ordered, order = tf.math.top_k(scores, k=width)
    behind = ~tf.sequence_mask(tf.reduce_sum(tf.cast(mask, tf.int32), axis=1), width)
    order = tf.where(behind, -1, order)
    if topn is None:
        return {"order": order}
    missing = [[0, 0], [0, tf.maximum(topn - width, 0)]]
    best = tf.pad(order[:, :topn], missing, constant_values=-1)
    best_scores = tf.pad(ordered[:, :topn], missing, constant_values=PADDING_SCORE)
    best, best_scores = (tf.ensure_shape(each, [None, topn]) for each in (best, best_scores))
    return {"order": order, "topn": best, "topn_scores": best_scores}


@plain
def _checked_shapes(features: Tensors, inputs: RankerInputs) -> Tensors:
    """Rejects requests whose tensor shapes do not match the signature or each other.

    A server does not check shapes, and too few features could broadcast to a score.
    """
    specs = inputs.tensor_specs()
    features = {name: tf.ensure_shape(values, specs[name].shape) for name, values in features.items()}
    shape, first = _list_shape(features, inputs), next(iter(inputs.examples))
    checks = []
    for name, values in features.items():
        rank = 1 if name in inputs.context else 2
        message = f"`{name}` must have as many lists and documents as `{first}`."
        if name != first:
            checks.append(tf.debugging.assert_equal(tf.shape(values)[:rank], shape[:rank], message=message))
    with tf.control_dependencies(checks):
        return {name: tf.identity(values) for name, values in features.items()}


@plain
def _full_mask(mask: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Returns the mask [batch, list]; the default mask is [1, 1]."""
    mask = tf.ensure_shape(mask, [None, None])
    fits = tf.reduce_all(tf.shape(mask) == shape) | (tf.size(mask) == 1)
    message = "the mask must be [batch, list] like the features; the shapes are"
    with tf.control_dependencies([tf.debugging.Assert(fits, [message, tf.shape(mask), shape])]):
        return tf.logical_and(mask, tf.ones(shape, tf.bool))


def _list_shape(features: Tensors, inputs: RankerInputs) -> tf.Tensor:
    return tf.shape(features[next(iter(inputs.examples))])[:2]


def _tables(model: tf.keras.Model) -> list[Any]:
    """Returns the lookup tables of the model's layers, which must be saved with the functions that use them."""
    kind = tf.saved_model.experimental.TrackableResource
    return [child for child in tf.train.TrackableView(model).descendants() if isinstance(child, kind)]
