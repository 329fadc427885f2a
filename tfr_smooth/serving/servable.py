"""The inputs of a ranker, and the tensor functions of its SavedModel, one per signature."""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _keras, _padded
from tfr_smooth.columns import Column
from tfr_smooth.data.reading import records
from tfr_smooth.models import PADDING_SCORE, TableScorer

# The score of a document that the model cannot score: a feature of it or of its list, or the model's score, is NaN or
# infinite. Such documents are ranked after all other documents and before padding. They are not an error, because a
# server that batches requests would then fail the requests of other clients.
INVALID_SCORE = -1e29

Tensors = dict[str, Any]
# AutoGraph has nothing to convert in these functions, and takes a second to find that out. It still converts the model.
plain = tf.autograph.experimental.do_not_convert


class RankerInputs:
    """The named features of a ranker, of the list (context) and of each document (example), and its mask.

    Args:
      example_feature_spec: `tf.io.FixedLenFeature` or `tf.io.RaggedFeature` for each document feature.
      context_feature_spec: The same for the features of the list. None for none.
      mask_feature_name: The model's name for its mask. None if it has no mask.
      columns: Names of float features in the protos that are stacked, in this order, into the single document feature.
        None reads the features by their own names.
      missing_values: Whether NaN is a missing value that the model handles. Protos may then lack named float features.

    Raises:
      ValueError: If a spec has another type, or a name is used twice.
    """

    def __init__(
        self,
        *,
        example_feature_spec: Mapping[str, Any],
        context_feature_spec: Mapping[str, Any] | None = None,
        mask_feature_name: str | None = "mask",
        columns: Sequence[str] | None = None,
        missing_values: bool = False,
    ) -> None:
        self.examples = _checked_spec("example_feature_spec", example_feature_spec)
        self.context = _checked_spec("context_feature_spec", context_feature_spec or {})
        if not self.examples:
            raise ValueError("`example_feature_spec` must contain at least one feature, got {}.")
        names = [*self.examples, *self.context, *([] if mask_feature_name is None else [mask_feature_name])]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"`example_feature_spec` must not share names with the context or the mask, got {twice}.")
        self.mask_feature_name = mask_feature_name
        self.mask_name = mask_feature_name or "mask"  # in a signature
        self.columns = columns
        self.missing_values = missing_values

    @classmethod
    def dense(
        cls, num_features: int, columns: Sequence[str] | None = None, missing_values: bool = False
    ) -> RankerInputs:
        """Returns the inputs of a model of `features` [batch, list, num_features] and `mask`."""
        spec = {"features": tf.io.FixedLenFeature([num_features], tf.float32)}
        return cls(example_feature_spec=spec, columns=columns, missing_values=missing_values)

    @property
    def takes_tensors(self) -> bool:
        """Whether tensors can represent the features: none are ragged.

        Raises:
          ValueError: If TensorFlow could not call the functions of tensors by the names.
        """
        if any(isinstance(spec, tf.io.RaggedFeature) for spec in {**self.examples, **self.context}.values()):
            return False
        called: dict[str, str] = {"self": "self"}
        for name in self.arguments:
            # What TensorFlow makes of a name in a call.
            other = called.setdefault("".join(each if each.isalnum() else "_" for each in name), name)
            if other != name or name == "self":
                expected = "names that are not 'self' and differ by more than signs, for TensorFlow"
                raise ValueError(f"`model` must have columns of {expected}, got {other!r} and {name!r}; rename one.")
        return True

    @property
    def arguments(self) -> dict[str, str]:
        """The name of the argument of tensor functions for each feature and the mask.

        These are the names themselves if TensorFlow keeps all of them. It does not keep other characters and cases.
        """
        names = [*self.examples, *self.context, self.mask_name]
        keeps = all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) and not keyword.iskeyword(name) for name in names)
        keeps = keeps and len({name.lower() for name in names}) == len(names)
        return {name: name if keeps else f"input_{place}" for place, name in enumerate(names)}

    def tensor_specs(self) -> dict[str, tf.TensorSpec]:
        """Returns the tensor specs of the features, without the mask."""
        specs, arguments = {}, self.arguments
        for features, outer in ((self.context, [None]), (self.examples, [None, None])):
            for name, spec in features.items():
                specs[name] = tf.TensorSpec([*outer, *spec.shape], spec.dtype, name=arguments[name])
        return specs

    def zeros(self, size: int) -> dict[str, np.ndarray]:
        """Returns the features of one list of documents, without the mask: 0 or ""."""
        found = {}
        for name, spec in self.tensor_specs().items():
            outer = [1] if name in self.context else [1, size]
            found[name] = np.full([*outer, *spec.shape[len(outer) :]], zero(spec.dtype), spec.dtype.as_numpy_dtype)
        return found

    def proto_specs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the specs of the context and of an example for `tf.io.parse_example`."""
        if self.columns is None:
            return self.context, self.examples
        default = np.nan if self.missing_values else None
        return self.context, {name: tf.io.FixedLenFeature([], tf.float32, default) for name in self.columns}

    @plain
    def parse_lists(self, serialized: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        """Parses serialized ExampleListWithContext protos [batch].

        Padding is not parsed, so features need no default values.

        Returns:
          The features, padded to the longest list, and the mask [batch, list].
        """
        context_spec, example_spec = self.proto_specs()
        sizes, contexts, examples = records.decode_lists(serialized)
        mask = tf.sequence_mask(sizes, tf.shape(examples)[1])
        documents = tf.io.parse_example(tf.boolean_mask(examples, mask), example_spec)
        if self.columns is not None:
            (name,) = self.examples
            documents = {name: tf.stack([documents[column] for column in self.columns], axis=-1)}
        # The index of each document among the real ones; padding points to a blank row after the last.
        numbers = tf.cumsum(tf.cast(tf.reshape(mask, [-1]), tf.int32)) - 1
        numbers = tf.where(mask, tf.reshape(numbers, tf.shape(mask)), tf.reduce_sum(sizes))
        features = {
            name: tf.gather(tf.concat([values, _blank(self.examples[name])], axis=0), numbers)
            for name, values in documents.items()
        }
        if context_spec:
            features.update(tf.io.parse_example(contexts, context_spec))
        return features, mask

    @plain
    def valid(self, values: tf.Tensor) -> tf.Tensor:
        """Returns which numbers the model can take: the finite ones, and NaN with `missing_values`."""
        return ~tf.math.is_inf(values) if self.missing_values else tf.math.is_finite(values)

    @plain
    def cleaned(self, features: Tensors, mask: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        """Returns the features with 0 for invalid numbers, and where [batch, list] those of a document are all valid.

        Documents with invalid numbers are masked, but 0 * NaN would be NaN.
        """

        def clean(values: tf.Tensor) -> tf.Tensor:
            return tf.where(self.valid(values), values, tf.zeros([], values.dtype))

        for name in [name for name, values in features.items() if values.dtype.is_floating]:
            valid = _all_true(tf.ragged.map_flat_values(self.valid, features[name]), 1 if name in self.context else 2)
            mask = tf.logical_and(mask, valid[:, tf.newaxis] if name in self.context else valid)
            features = {**features, name: tf.ragged.map_flat_values(clean, features[name])}
        return features, mask

    def describe(self, columns: Mapping[str, Column] | None = None) -> list[dict[str, Any]]:
        """Returns the features in order, for the model card.

        Args:
          columns: The table columns that the features are, by the name of the feature.
        """
        described: dict[str, dict[str, Any]] = {
            name: {"name": name, "of": owner, "type": spec.dtype.name, "shape": _shape(spec)}
            for owner, specs in zip(("list", "document"), self.proto_specs(), strict=True)
            for name, spec in specs.items()
        }
        known = columns or {}
        for name, column in known.items() if known.keys() == described.keys() else ():
            values = {"kind": column.kind, "option": column.option, "trained": column.type}
            described[name] = {**described.pop(name), **values, "values": column.description}  # in their order
        return [*described.values()]


def _checked_spec(name: str, specs: Mapping[str, Any]) -> dict[str, Any]:
    for key, spec in specs.items():
        plain = isinstance(spec, tf.io.FixedLenFeature) or (
            isinstance(spec, tf.io.RaggedFeature) and not spec.partitions and spec.value_key in (None, key)
        )
        if not plain:
            expected = "tf.io.FixedLenFeature or tf.io.RaggedFeature without partitions"
            raise ValueError(f"`{name}` must contain {expected}, got {key!r}: {spec!r}.")
    return dict(specs)


def _shape(spec: Any) -> list[int | None]:
    return [None] if isinstance(spec, tf.io.RaggedFeature) else tf.TensorShape(spec.shape).as_list()


def zero(dtype: tf.DType) -> Any:
    """Returns 0 or ""."""
    return b"" if dtype == tf.string else 0


def _blank(spec: Any) -> Any:
    """Returns one row of padding."""
    if isinstance(spec, tf.io.RaggedFeature):
        return tf.RaggedTensor.from_row_lengths(tf.zeros([0], spec.dtype), tf.constant([0], spec.row_splits_dtype))
    value = zero(spec.dtype) if spec.default_value is None else spec.default_value
    return tf.broadcast_to(tf.constant(value, spec.dtype), [1, *_shape(spec)])


def _all_true(values: Any, rank: int) -> tf.Tensor:
    """Returns whether all values are True, for each index of the first `rank` axes."""
    if isinstance(values, tf.RaggedTensor):
        values = tf.reduce_all(values, axis=-1)
        return values.to_tensor(False) if isinstance(values, tf.RaggedTensor) else values
    return tf.reduce_all(values, axis=list(range(rank, values.shape.rank)))


def make_servable(
    model: tf.keras.Model, inputs: RankerInputs, *, serving_default: str | None = None
) -> tuple[tf.Module, dict[str, str]]:
    """Wraps the model in tensor functions without Keras.

    Args:
      model: The Keras model.
      inputs: The inputs of the model.
      serving_default: The function of the default signature: "scores" or "predict". None uses the first that the
        inputs support.

    Returns:
      The module to save, with the functions "scores" and "rank" (of tensors) and "predict" (of protos) as attributes,
      and the function name for each signature.

    Raises:
      ValueError: If the inputs do not support the default signature, or two names are one for TensorFlow.
    """
    score = functools.partial(_scores, model, inputs)
    serialized = tf.TensorSpec([None], tf.string, name=tf.saved_model.PREDICT_INPUTS)

    def predict(serialized_lists: tf.Tensor) -> Tensors:
        scores, _ = score(*inputs.parse_lists(tf.ensure_shape(serialized_lists, [None])))
        return {name or tf.saved_model.PREDICT_OUTPUTS: values for name, values in scores.items()}

    functions = _tensor_functions(score, inputs) if inputs.takes_tensors else {}
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


def _scores(
    model: tf.keras.Model, inputs: RankerInputs, features: Tensors, mask: tf.Tensor
) -> tuple[dict[str | None, tf.Tensor], tf.Tensor]:
    """Scores the valid documents with the model, and returns sentinel scores for other positions.

    Returns:
      The scores [batch, list] by output name (None for a single output), and where they are valid.
    """
    if isinstance(model, TableScorer):
        features = model.with_stacked_numbers(features)
    features, valid = inputs.cleaned(features, mask)
    if inputs.mask_feature_name is not None:
        features = {**features, inputs.mask_feature_name: valid}
    outputs = model(features, training=False)
    scores = {}
    for name, values in outputs.items() if isinstance(outputs, dict) else [(None, outputs)]:
        values = _padded.squeezed(values)
        if values.shape.rank != 2:
            raise ValueError(f"`model` must return scores [batch, list] or [batch, list, 1], got {values.shape}.")
        scores[name] = tf.cast(values, tf.float32)
        valid = valid & tf.math.is_finite(scores[name]) & (scores[name] > INVALID_SCORE)
    elsewhere = tf.where(mask, INVALID_SCORE, PADDING_SCORE)
    return {name: tf.where(valid, values, elsewhere) for name, values in scores.items()}, valid


def _tensor_functions(score: Callable[..., Any], inputs: RankerInputs) -> dict[str, Callable[..., Tensors]]:
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
        if "valid" in scores:
            raise ValueError("`model` must have no output with a reserved name, got 'valid'.")
        order = {"order": _order(scores[None], mask)} if None in scores else {}
        return {**{name or "scores": values for name, values in scores.items()}, "valid": valid, **order}

    functions = {"scores": tf.function(score_all, [specs])}
    if list(specs) == ["features"] and inputs.mask_name == "mask":
        # Separate arguments allow the call `loaded.rank(features)` in Python.
        def rank(features: tf.Tensor, mask: tf.Tensor = tf.constant([[True]])) -> Tensors:  # noqa: B008
            return rank_masked({"features": features}, mask)

        return {**functions, "rank": tf.function(rank, [specs["features"], mask_spec])}

    def rank_named(named: Tensors) -> Tensors:
        return rank_masked({name: named[name] for name in specs}, named[inputs.mask_name])

    return {**functions, "rank": tf.function(rank_named, [{**specs, inputs.mask_name: mask_spec}])}


@plain
def _order(scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the indices of the documents from best to worst, ties in input order, followed by -1 for padding."""
    width = tf.shape(scores)[1]
    behind = ~tf.sequence_mask(tf.reduce_sum(tf.cast(mask, tf.int32), axis=1), width)
    return tf.where(behind, -1, tf.math.top_k(scores, k=width).indices)


@plain
def _checked_shapes(features: Tensors, inputs: RankerInputs) -> Tensors:
    """Rejects requests whose tensor shapes do not match the signature or each other.

    A server does not check shapes, and too few features could broadcast to a score.
    """
    specs = inputs.tensor_specs()
    features = {name: tf.ensure_shape(values, specs[name].shape) for name, values in features.items()}
    shape, first = _list_shape(features, inputs), next(iter(inputs.examples))
    # Few operations for all columns of a kind: with thousands of columns, their graphs would take minutes.
    kinds: dict[Any, list[str]] = {}
    for name, values in features.items():
        kinds.setdefault((1 if name in inputs.context else 2, values.shape.rank, values.dtype), []).append(name)
    wrong = []
    for (axes, *_), names in kinds.items():
        shapes = tf.stack(tf.shape_n([features[name] for name in names]))[:, :axes]
        wrong.append(tf.boolean_mask(tf.constant(names), tf.reduce_any(shapes != shape[:axes], axis=1)))
    names = tf.concat(wrong, axis=0)
    check = tf.debugging.Assert(tf.equal(tf.size(names), 0), [names, "must have as many lists and documents as", first])
    with tf.control_dependencies([check]):
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
