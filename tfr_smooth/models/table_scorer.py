"""A scorer of the raw columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.columns import Column
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.data.roles import ALL_NUMBERS
from tfr_smooth.models.scorer import FeatureScorer


@_serialization.register
class TableScorer(FeatureScorer):
    """Scores documents given by the raw columns of a table: a scorer of the features of `TableFeatures`.

    Args:
      table_features: The layer that converts the columns to features.
      scorer: A model with the inputs and outputs of `FeedForwardScorer`.
      query_columns: Names of columns that may have one value per list.
      name: Name of the model. None uses Keras's default.

    Call with a dict of raw columns [batch, list] by name and an optional `mask` [batch, list] bool, False for padding;
    columns in `query_columns` may be [batch]. If the layer is stacked, call with a dict of `features` [batch, list,
    columns] and the mask, or with only the features. Returns the scores of the scorer, [batch, list]. Padding may
    contain any values.

    Raises:
      ValueError: If an argument is invalid, or a column is named "mask".

    Time and memory are those of the layer and the scorer.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> from tfr_smooth.columns import Boolean, Number, TableFeatures
      >>> columns = [Number(name="price"), Boolean(name="new")]
      >>> scorer = models.TableScorer(TableFeatures(columns), models.FeedForwardScorer(hidden=[8]))
      >>> scorer({"price": tf.constant([[2.5, 3.0]]), "new": tf.constant([[1.0, float("nan")]])}).shape
      TensorShape([1, 2])
    """

    def __init__(
        self,
        table_features: TableFeatures,
        scorer: tf.keras.Model,
        *,
        query_columns: Sequence[str] = (),
        name: str | None = "table_scorer",
    ) -> None:
        super().__init__(name=name, autocast=False)
        self.table_features = _arguments.instance("table_features", table_features, TableFeatures)
        self.scorer = scorer
        self.query_columns = tuple(query_columns)
        self.supports_jit = False
        names = {column.name for column in table_features.columns}
        if not table_features.stacked and "mask" in names:
            raise ValueError("`table_features` must have no column with the reserved name 'mask', got one.")
        fits = not isinstance(query_columns, str) and set(query_columns) < names
        if not fits or (table_features.stacked and query_columns):
            expected = "() for a stacked layer" if table_features.stacked else "names of some of the columns, not all"
            raise ValueError(f"`query_columns` must be {expected}, got {query_columns!r}.")

    @property
    def export_arguments(self) -> dict[str, Any]:
        """The arguments of `serving.export_ranker` that describe the inputs of the model."""
        if self.table_features.stacked:
            names = [column.name for column in self.table_features.columns]
            return {"feature_names": names, "missing_values": True}
        layer = self.table_features
        specs: dict[str, Any] = {}
        context: dict[str, Any] = {}
        of_columns = layer.example_feature_spec
        for name, column in self.exported_columns.items():
            spec = of_columns[column.name]
            if encoder := layer.encoders.get(column.name):
                length = encoder.embedded_length
                spec = tf.io.FixedLenFeature([length], tf.int64, [encoder.pad_id] * length)
            (context if column.name in self.query_columns else specs)[name] = spec
        options = {"mask_feature_name": "mask", "missing_values": True}
        return {"example_feature_spec": specs, "context_feature_spec": context or None, **options}

    @property
    def exported_columns(self) -> dict[str, Column]:
        """The columns by their names in exports, which have token ids in place of texts with an encoder."""
        columns = {column.name: column for column in self.table_features.columns}
        for ids, text in self._texts_of_ids.items():
            if ids in columns:
                expected = f"no column {ids!r} beside the texts {text!r}, whose token ids it is in an export"
                raise ValueError(f"`table_features` must have {expected}, got one: rename it.")
        names = {text: ids for ids, text in self._texts_of_ids.items()}
        return {names.get(name, name): column for name, column in columns.items()}

    @property
    def _texts_of_ids(self) -> dict[str, str]:
        """The columns of texts with an encoder, by the name of their token ids."""
        return {f"{name}_ids": name for name in self.table_features.encoders}

    @property
    def num_features(self) -> int:
        """The number of columns."""
        return len(self.table_features.columns)

    @property
    def input_specs(self) -> dict[str, tf.TensorSpec]:
        """The inputs, by name."""
        specs = super().input_specs
        if self.table_features.stacked:
            return specs
        for name, spec in self.table_features.example_feature_spec.items():
            outer = [None] if name in self.query_columns else [None, None]
            specs[name] = tf.TensorSpec([*outer, *spec.shape], spec.dtype, name)
        return {name: spec for name, spec in specs.items() if name != "features"}

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the scorer."""
        if not self.scorer.built:
            self.scorer.build({"features": (None, None, self.table_features.num_features)})
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]."""
        mask = inputs.get("mask") if isinstance(inputs, dict) else None
        if self.table_features.stacked:
            raw = inputs["features"] if isinstance(inputs, dict) else inputs
        else:
            raw = self._of_documents(inputs)
        features = self.table_features(raw, list_mask=mask)
        mask = tf.ones(tf.shape(features)[:2], tf.bool) if mask is None else tf.cast(mask, tf.bool)
        # A slice of booleans is none of LiteRT's operations.
        features = tf.where(tf.expand_dims(mask, -1), features, 0.0)
        return self.scorer({"features": features, "mask": mask}, training=training)

    def with_stacked_numbers(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the columns with the numbers of documents as one tensor, which takes few operations for many columns.

        Args:
          inputs: The columns by name, as for `call`.
        """
        names = self.stackable_numbers
        if not names or ALL_NUMBERS in inputs:
            return dict(inputs)
        others = {name: values for name, values in inputs.items() if name not in names}
        return {ALL_NUMBERS: tf.stack([inputs[name] for name in names], axis=-1), **others}

    @property
    def stackable_numbers(self) -> list[str]:
        """The columns that `with_stacked_numbers` stacks: all numbers, unless some are of the list."""
        names = self.table_features.number_names
        return [] if self.table_features.stacked or set(names) & set(self.query_columns) else names

    def _of_documents(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Returns the columns [batch, list], with those of the list repeated."""
        columns = {column.name: column for column in self.table_features.columns}
        texts = self._texts_of_ids
        raw = {name: values for name, values in inputs.items() if name in columns or name == ALL_NUMBERS}
        raw |= {texts[name]: values for name, values in inputs.items() if name in texts.keys() - columns}
        first = next((raw[name] for name in raw if name not in self.query_columns), None)
        for name in set(raw) & set(self.query_columns):
            values = tf.convert_to_tensor(raw[name])
            of_value = 1 if name in texts.values() and values.dtype.is_integer else len(columns[name].shape)
            if values.shape.rank == 1 + of_value and first is not None:
                raw[name] = tf.repeat(values[:, tf.newaxis], tf.shape(first)[1], axis=1)
        return raw

    def export(self, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        """Exports the model like Keras's `export`. `serving.export_onnx` writes ONNX.

        Args:
          filepath: The path.
          *args: Further positional arguments of `tf.keras.Model.export`.
          **kwargs: Further arguments of `tf.keras.Model.export`.

        Raises:
          ValueError: If Keras cannot export the columns in this `format`.
        """
        given = args[0] if args else kwargs.get("format")
        if given == "onnx":
            raise ValueError("`format` must be 'tf_saved_model', got 'onnx': use `serving.export_onnx` for columns.")
        others = [column.name for column in self.table_features.columns if not column.stacked]
        others += [f"ranks of {name}" for name in self.table_features.list_ranks]
        if given == "litert" and others:
            expected = "'tf_saved_model' unless all features are numbers and booleans"
            raise ValueError(f"`format` must be {expected}, got 'litert' with {others[0]!r}.")
        return super().export(filepath, *args, **kwargs)
