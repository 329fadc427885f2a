"""The inputs of a ranker: named features, and how the graph parses them from serialized protos."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth.data import elwc

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
        self.columns = columns

    @classmethod
    def dense(cls, num_features: int, columns: Sequence[str] | None = None) -> RankerInputs:
        """Returns the inputs of a model of `features` [batch, list, num_features] and `mask`."""
        spec = {"features": tf.io.FixedLenFeature([num_features], tf.float32)}
        return cls(example_feature_spec=spec, columns=columns)

    @property
    def takes_tensors(self) -> bool:
        """Whether tensors can represent the features: none are ragged, and all names are valid node names."""
        specs = {**self.examples, **self.context}
        return not any(isinstance(spec, tf.io.RaggedFeature) for spec in specs.values()) and all(
            re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", name) for name in [*specs, self.mask_name]
        )

    @property
    def mask_name(self) -> str:
        """The name of the mask in a signature."""
        return self.mask_feature_name or "mask"

    def tensor_specs(self) -> dict[str, tf.TensorSpec]:
        """Returns the tensor specs of the features, without the mask."""
        specs = {}
        for features, outer in ((self.context, [None]), (self.examples, [None, None])):
            for name, spec in features.items():
                specs[name] = tf.TensorSpec([*outer, *spec.shape], spec.dtype, name=name)
        return specs

    def proto_specs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the specs of the context and of an example for `tf.io.parse_example`."""
        if self.columns is None:
            return self.context, self.examples
        return self.context, {name: tf.io.FixedLenFeature([], tf.float32) for name in self.columns}

    @plain
    def parse_lists(self, serialized: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        """Parses serialized ExampleListWithContext protos [batch].

        Padding is not parsed, so features need no default values.

        Returns:
          The features, padded to the longest list, and the mask [batch, list].
        """
        context_spec, example_spec = self.proto_specs()
        sizes, contexts, examples = elwc.decode_lists(serialized)
        mask = tf.sequence_mask(sizes, tf.shape(examples)[1])
        documents = self._gather_columns(tf.io.parse_example(tf.boolean_mask(examples, mask), example_spec))
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
    def parse_examples(self, serialized: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        """Parses serialized Example protos [batch], each a list of one document with its context."""
        context_spec, example_spec = self.proto_specs()
        parsed = tf.io.parse_example(serialized, {**context_spec, **example_spec})
        features = {name: parsed[name] for name in context_spec}
        documents = self._gather_columns({name: parsed[name] for name in example_spec})
        features.update({name: tf.expand_dims(values, 1) for name, values in documents.items()})
        return features, tf.ones([tf.shape(serialized)[0], 1], tf.bool)

    def _gather_columns(self, documents: Tensors) -> Tensors:
        if self.columns is None:
            return documents
        (name,) = self.examples
        return {name: tf.stack([documents[column] for column in self.columns], axis=-1)}

    @plain
    def finite(self, features: Tensors, mask: tf.Tensor) -> tf.Tensor:
        """Returns where [batch, list] all features of a document and of its list are finite."""
        for name, values in features.items():
            if values.dtype.is_floating:
                finite = _finite_rows(values, 1 if name in self.context else 2)
                mask = tf.logical_and(mask, finite[:, tf.newaxis] if name in self.context else finite)
        return mask

    def describe(self) -> list[dict[str, Any]]:
        """Returns the features in order, for the model card."""
        if self.columns is not None:
            return [{"name": name, "of": "document", "type": "float32", "shape": []} for name in self.columns]
        return [
            {"name": name, "of": owner, "type": spec.dtype.name, "shape": _shape(spec)}
            for owner, specs in (("list", self.context), ("document", self.examples))
            for name, spec in specs.items()
        ]


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


def _blank(spec: Any) -> Any:
    """Returns one row of padding."""
    if isinstance(spec, tf.io.RaggedFeature):
        return tf.RaggedTensor.from_row_lengths(tf.zeros([0], spec.dtype), tf.constant([0], spec.row_splits_dtype))
    value = spec.default_value
    if value is None:
        value = "" if spec.dtype == tf.string else 0
    return tf.broadcast_to(tf.constant(value, spec.dtype), [1, *_shape(spec)])


def _finite_rows(values: Any, rank: int) -> tf.Tensor:
    """Returns whether all numbers are finite, for each index of the first `rank` axes."""
    if isinstance(values, tf.RaggedTensor):
        finite = values.with_flat_values(tf.math.is_finite(values.flat_values))
        finite = tf.reduce_all(finite, axis=-1)
        return finite.to_tensor(False) if isinstance(finite, tf.RaggedTensor) else finite
    finite = tf.math.is_finite(values)
    return tf.reduce_all(finite, axis=list(range(rank, values.shape.rank)))
