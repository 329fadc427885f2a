"""Features from the raw columns of a table: the preparation inside the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.table_columns import Column, as_columns

_SECONDS_PER_DAY = 86400.0


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class TableFeatures(tf.keras.layers.Layer):
    r"""Converts raw table columns to numbers: fills missing values, encodes categories and dates.

    Each column gives, in order:

    - "number" and "boolean": the value, with `fill` for NaN.
    - "category": 1 for its category and 0 for the others; 0 for all if it is unseen or missing ("").
    - "date": the days since the mean date in training, computed in float64; 0 if missing (the smallest int64).
    - If values were missing in training: 1 if the value is missing, otherwise 0.

    Args:
      columns: `data.Column` objects, as from `data.infer_columns`, or their dicts.
      stacked: Whether the input is one tensor of numbers instead of a dict; all columns must be numbers.
      dtype: Dtype policy of the layer; the computation uses float32.
      **kwargs: `name` and other arguments of a Keras layer.

    Call with a dict of the raw values by column name, each of the same shape [...], as from `data.column_arrays`;
    further entries are ignored. With `stacked`, call with numbers [..., columns]. Returns float32 [..., num_features].
    Infinite numbers are not changed.

    Raises:
      ValueError: If the columns are invalid, or if a column is missing in a call.

    Time and memory O(values * features).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import data, models
      >>> price = data.Column(name="price", kind="number", fill=2.0, has_missing=True)
      >>> brand = data.Column(name="brand", kind="category", categories=("a", "b"))
      >>> layer = models.TableFeatures([price, brand])
      >>> inputs = {"price": tf.constant([5.0, float("nan")]), "brand": tf.constant(["b", "unseen"])}
      >>> layer(inputs).numpy().tolist()
      [[5.0, 0.0, 0.0, 1.0], [2.0, 1.0, 0.0, 0.0]]
      >>> layer.feature_columns
      ('price', 'price', 'brand', 'brand')
    """

    def __init__(
        self,
        columns: Sequence[Column | Mapping[str, Any]],
        *,
        stacked: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        # Raw numbers may exceed the range of float16, so a global mixed precision policy does not apply here.
        super().__init__(dtype=dtype, **kwargs)
        self._columns = as_columns(columns)
        self.stacked = _arguments.boolean("stacked", stacked)
        others = [column.name for column in self._columns if column.kind != "number"]
        if stacked and others:
            raise ValueError(f"`stacked` must be False unless all columns are numbers, got True with {others[0]!r}.")
        self.supports_jit = False  # XLA has no strings.
        for place, column in enumerate(self._columns):
            if column.kind == "category":
                # Keras 3 does not track tables in lists and dicts.
                setattr(self, f"_table_{place}", _table(column.categories))
        self.built = True

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return tuple(self._columns)

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The name of the column of each feature."""
        return tuple(column.name for column in self._columns for _ in range(column.width))

    @property
    def num_features(self) -> int:
        """Number of features."""
        return sum(column.width for column in self._columns)

    @property
    def example_feature_spec(self) -> dict[str, tf.io.FixedLenFeature]:
        """The argument `example_feature_spec` of `serving.export_ranker`: a column that a proto lacks is missing."""
        if self.stacked:
            return {"features": tf.io.FixedLenFeature([len(self._columns)], tf.float32)}
        return {
            column.name: tf.io.FixedLenFeature([], column.dtype, default_value=column.missing_value)
            for column in self._columns
        }

    def call(self, inputs: Any) -> tf.Tensor:
        """Converts raw values to features.

        Args:
          inputs: Raw values by column name, each of shape [...]; numbers [..., columns] with `stacked`.

        Returns:
          float32 [..., num_features].
        """
        if self.stacked:
            values = tf.cast(inputs, tf.float32)
            if values.shape[-1] not in (None, len(self._columns)):
                raise ValueError(f"`inputs` must have {len(self._columns)} numbers per row, got shape {values.shape}.")
            return self._from_numbers(values, self._columns)
        absent = [column.name for column in self._columns if column.name not in inputs]
        if absent:
            raise ValueError(f"`inputs` must contain the column {absent[0]!r}, got {sorted(inputs)}.")
        parts, order = [], []
        together = [column for column in self._columns if column.kind in ("number", "boolean")]
        if together:
            # One operation for all is faster than one for each.
            values = tf.stack([tf.cast(inputs[column.name], tf.float32) for column in together], axis=-1)
            parts.append(self._from_numbers(values, together))
            order += [column.name for column in together for _ in range(column.width)]
        for place, column in enumerate(self._columns):
            if column not in together:
                parts.append(self._from_other(place, column, tf.convert_to_tensor(inputs[column.name])))
                order += [column.name] * column.width
        return _reordered(tf.concat(parts, axis=-1), order, self.feature_columns)

    def _from_numbers(self, values: tf.Tensor, columns: Sequence[Column]) -> tf.Tensor:
        """Returns the features of columns of numbers [..., columns]."""
        missing = tf.math.is_nan(values)
        fills = tf.constant([column.fill for column in columns], tf.float32)
        filled = tf.where(missing, fills, values)
        places = [place for place, column in enumerate(columns) if column.has_missing]
        if not places:
            return filled
        flags = tf.cast(tf.gather(missing, places, axis=-1), tf.float32)
        order = [column.name for column in columns] + [columns[place].name for place in places]
        wanted = [column.name for column in columns for _ in range(column.width)]
        return _reordered(tf.concat([filled, flags], axis=-1), order, wanted)

    def _from_other(self, place: int, column: Column, values: tf.Tensor) -> tf.Tensor:
        """Returns the features of a column of categories or dates [...]."""
        missing = tf.equal(values, tf.constant(column.missing_value, values.dtype))
        if column.kind == "category":
            known = getattr(self, f"_table_{place}").lookup(values)
            features = tf.one_hot(known, len(column.categories))  # all 0 for -1
        else:
            days = tf.cast(values, tf.float64) / _SECONDS_PER_DAY - tf.constant(column.fill, tf.float64)
            features = tf.cast(tf.where(missing, tf.zeros([], tf.float64), days), tf.float32)[..., tf.newaxis]
        if not column.has_missing:
            return features
        return tf.concat([features, tf.cast(missing, tf.float32)[..., tf.newaxis]], axis=-1)

    def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
        """Returns the shape of the features.

        Args:
          input_shape: The shapes of the columns by name, or the shape of the numbers with `stacked`.

        Returns:
          The shape of the rows, with the number of features.
        """
        if self.stacked:
            return tf.TensorShape([*input_shape[:-1], self.num_features])
        return tf.TensorShape([*input_shape[self._columns[0].name], self.num_features])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as JSON types."""
        columns = [{**dataclasses.asdict(each), "categories": list(each.categories)} for each in self._columns]
        return {**super().get_config(), "columns": columns, "stacked": self.stacked}


def _table(categories: Sequence[str]) -> tf.lookup.StaticHashTable:
    """Returns a table from the text of a category to its index, -1 for other text."""
    with tf.init_scope():
        texts, places = tf.constant(list(categories), tf.string), tf.range(len(categories), dtype=tf.int32)
        # A table without a name shares nothing with others.
        return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(texts, places), -1)


def _reordered(features: tf.Tensor, names: Sequence[str], wanted: Sequence[str]) -> tf.Tensor:
    """Returns the features of the given column names in another order of the names."""
    # Stable: the features of a column keep their order.
    places = np.argsort(names, kind="stable")[np.argsort(np.argsort(wanted, kind="stable"), kind="stable")]
    in_order = np.array_equal(places, np.arange(len(places)))
    return features if in_order else tf.gather(features, places, axis=-1)
