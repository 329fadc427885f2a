"""What a ranker is asked with: named features, and how they are read from serialized protos inside the graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth.data import elwc

Tensors = dict[str, Any]
# AutoGraph has nothing to convert in these functions, and takes a second to find out. The model's own it converts.
plain = tf.autograph.experimental.do_not_convert


class RankerInputs:
    """The features of a ranker by name, of the list (context) and of each document (example), and its mask.

    Args:
      example_feature_spec: `tf.io.FixedLenFeature` or `tf.io.RaggedFeature` of each document's features.
      context_feature_spec: The same for the features of the list.
      mask_feature_name: What the model calls its mask; None if it takes none.
      columns: Names of single float features in the protos, which make up the document's one feature in this order.

    Raises:
      ValueError: If a spec is of another kind, or a name is used twice.
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
            raise ValueError("`example_feature_spec` must hold a feature, got {}.")
        names = [*self.examples, *self.context, *([] if mask_feature_name is None else [mask_feature_name])]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"`example_feature_spec` must share no name with the context and the mask, got {twice}.")
        self.mask_feature_name = mask_feature_name
        self.columns = columns

    @classmethod
    def dense(cls, num_features: int, columns: Sequence[str] | None = None) -> RankerInputs:
        """The inputs of a model that takes `features` [batch, list, num_features] and `mask`."""
        spec = {"features": tf.io.FixedLenFeature([num_features], tf.float32)}
        return cls(example_feature_spec=spec, columns=columns)

    @property
    def takes_tensors(self) -> bool:
        """Whether a signature of tensors can carry the features: not ragged ones, nor names that no node may have."""
        specs = {**self.examples, **self.context}
        return not any(isinstance(spec, tf.io.RaggedFeature) for spec in specs.values()) and all(
            re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", name) for name in [*specs, self.mask_name]
        )

    @property
    def mask_name(self) -> str:
        """What the mask is called in a signature."""
        return self.mask_feature_name or "mask"

    def tensor_specs(self) -> dict[str, tf.TensorSpec]:
        """Name, type and shape of each feature as a tensor, without the mask."""
        specs = {}
        for features, outer in ((self.context, [None]), (self.examples, [None, None])):
            for name, spec in features.items():
                specs[name] = tf.TensorSpec([*outer, *spec.shape], spec.dtype, name=name)
        return specs

    def proto_specs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `tf.io.parse_example` is to read from the context and from an example."""
        if self.columns is None:
            return self.context, self.examples
        return self.context, {name: tf.io.FixedLenFeature([], tf.float32) for name in self.columns}

    @plain
    def parse_lists(self, serialized: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        """Reads serialized ExampleListWithContext protos [batch].

        Padding is never parsed, so that it needs no defaults. Returns the features, padded to the longest list, and
        the mask [batch, list].
        """
        context_spec, example_spec = self.proto_specs()
        sizes, contexts, examples = elwc.decode_lists(serialized)
        mask = tf.sequence_mask(sizes, tf.shape(examples)[1])
        documents = self._gather_columns(tf.io.parse_example(tf.boolean_mask(examples, mask), example_spec))
        # The number of a place's document among the real ones; padding takes the row put behind the last.
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
        """Reads serialized Example protos [batch], each a document with its context: lists of one."""
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
        """Where [batch, list] a document's own features and its list's are finite numbers."""
        for name, values in features.items():
            if values.dtype.is_floating:
                finite = _finite_rows(values, 1 if name in self.context else 2)
                mask = tf.logical_and(mask, finite[:, tf.newaxis] if name in self.context else finite)
        return mask

    def describe(self) -> list[dict[str, Any]]:
        """The features in their order, for the model card."""
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
            raise ValueError(f"`{name}` must hold {expected}, got {key!r}: {spec!r}.")
    return dict(specs)


def _shape(spec: Any) -> list[int | None]:
    return [None] if isinstance(spec, tf.io.RaggedFeature) else tf.TensorShape(spec.shape).as_list()


def _blank(spec: Any) -> Any:
    """One row of what stands at padded places."""
    if isinstance(spec, tf.io.RaggedFeature):
        return tf.RaggedTensor.from_row_lengths(tf.zeros([0], spec.dtype), tf.constant([0], spec.row_splits_dtype))
    value = spec.default_value
    if value is None:
        value = "" if spec.dtype == tf.string else 0
    return tf.broadcast_to(tf.constant(value, spec.dtype), [1, *_shape(spec)])


def _finite_rows(values: Any, rank: int) -> tf.Tensor:
    """Whether all numbers behind each index of the first `rank` axes are finite."""
    if isinstance(values, tf.RaggedTensor):
        finite = values.with_flat_values(tf.math.is_finite(values.flat_values))
        finite = tf.reduce_all(finite, axis=-1)
        return finite.to_tensor(False) if isinstance(finite, tf.RaggedTensor) else finite
    finite = tf.math.is_finite(values)
    return tf.reduce_all(finite, axis=list(range(rank, values.shape.rank)))
