"""Features from the raw columns of a table: the preparation inside the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.columns.columns import CODED, Column, as_columns
from tfr_smooth.columns.words import words

_SECONDS_PER_DAY = 86400.0
_VECTORS = ("vector", "encoded")


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class TableFeatures(tf.keras.layers.Layer):
    r"""Converts raw table columns to numbers: fills missing values, encodes categories and dates.

    Each column gives, in order:

    - "number" and "boolean": the value, with `fill` for NaN.
    - "category": 1 for its category and 0 for the others; 0 for all if it is unseen or missing ("").
    - "id": the code of the value, 1 for rare and unseen values and 0 if missing; "set" and "text": the codes of their
      values, and of their words (`columns.words.words`) and pairs of words, with 0 at the end. `FeedForwardScorer` maps
      codes to vectors.
    - "vector": its numbers, divided by `scale`; 0 if missing (NaN).
    - "encoded": the numbers of the vector of its text; 0 if missing ("").
    - "date": the days since the mean date in training, computed in float64; 0 if missing (the smallest int64).
    - If values were missing in training: 1 if the value is missing, otherwise 0.

    After the columns, each match of two columns gives two features: of two vectors, their scalar product and its
    cosine; of others, the fraction of the values of the first one that the second one has, and the reverse. The values
    are those of ids, categories and sets, and the words and pairs of words of texts.

    Args:
      columns: `columns.Column` objects, as from `columns.infer_columns`, or their dicts.
      matches: Pairs of names of columns to compare, both vectors of the same length or both text.
      encoders: For each column of the kind "encoded", a layer such as `text.Encoder`, whose method `embed` maps strings
        [texts] to vectors [texts, length]. It is not trained.
      stacked: Whether the input is one tensor of numbers instead of a dict; all columns must be numbers.
      dtype: Dtype policy of the layer; the computation uses float32.
      **kwargs: `name` and other arguments of a Keras layer.

    Call with a dict of the raw values by column name, each of the same shape [...], as from `columns.column_arrays`;
    further entries are ignored. With `stacked`, call with numbers [..., columns]. Returns float32 [..., num_features].
    Infinite numbers are not changed.

    Raises:
      ValueError: If the columns are invalid, or if a column is missing in a call.

    Time and memory O(values * features).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.columns import Column, TableFeatures
      >>> price = Column(name="price", kind="number", fill=2.0, has_missing=True)
      >>> brand = Column(name="brand", kind="category", categories=("a", "b"))
      >>> layer = TableFeatures([price, brand])
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
        matches: Sequence[Sequence[str]] = (),
        encoders: Mapping[str, Any] | None = None,
        stacked: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        # Raw numbers may exceed the range of float16, so a global mixed precision policy does not apply here.
        super().__init__(dtype=dtype, **kwargs)
        self._columns = as_columns(columns)
        self.stacked = _arguments.boolean("stacked", stacked)
        self._matches = [self._pair(pair) for pair in matches]
        self.encoders = dict(encoders or {})
        encoded = {column.name for column in self._columns if column.kind == "encoded"}
        if encoded != set(self.encoders):
            raise ValueError(f"`encoders` must be those of the columns {sorted(encoded)}, got {sorted(self.encoders)}.")
        for encoder in self.encoders.values():
            encoder.trainable = False
        others = [column.name for column in self._columns if column.kind != "number"]
        if stacked and others:
            raise ValueError(f"`stacked` must be False unless all columns are numbers, got True with {others[0]!r}.")
        self.supports_jit = False  # XLA has no strings.
        for place, column in enumerate(self._columns):
            if column.kind in ("category", *CODED) and not column.buckets:
                # Keras 3 does not track tables in lists and dicts.
                setattr(self, f"_table_{place}", _table(column.categories))
        self.built = True

    def _pair(self, names: Sequence[str]) -> list[Column]:
        """Returns two columns that can be compared."""
        found = [column for name in names for column in self._columns if column.name == name]
        kinds = {(column.length,) if column.kind in _VECTORS else column.is_text and "text" for column in found}
        is_number = False in kinds
        if isinstance(names, str) or len(found) != 2 or len(names) != 2 or len(kinds) > 1 or is_number:
            expected = "pairs of names of columns of text, or of vectors of one length"
            raise ValueError(f"`matches` must be {expected}, got {names!r}.")
        return found

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return tuple(self._columns)

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The name of the column of each feature."""
        names = [column.name for column in self._columns for _ in range(column.width)]
        return (*names, *(f"{one.name} ~ {other.name}" for one, other in self._matches for _ in range(2)))

    @property
    def num_features(self) -> int:
        """Number of features."""
        return len(self.feature_columns)

    def _blocks(self, *kinds: str) -> Iterator[tuple[int, Column]]:
        """Yields the columns of some kinds, each with the place of its first feature."""
        first = 0
        for column in self._columns:
            if column.kind in kinds:
                yield first, column
            first += column.width

    @property
    def embeddings(self) -> list[list[int]]:
        """The argument `embeddings` of `FeedForwardScorer`: the features that are codes."""
        return [[first, column.length, column.rows] for first, column in self._blocks(*CODED)]

    @property
    def vectors(self) -> list[list[int]]:
        """The argument `vectors` of `FeedForwardScorer`: the features that are vectors."""
        return [[first, column.length] for first, column in self._blocks(*_VECTORS)]

    @property
    def example_feature_spec(self) -> dict[str, tf.io.FixedLenFeature]:
        """The argument `example_feature_spec` of `serving.export_ranker`: a column that a proto lacks is missing."""
        if self.stacked:
            return {"features": tf.io.FixedLenFeature([len(self._columns)], tf.float32)}
        return {
            column.name: tf.io.FixedLenFeature(shape, column.dtype, np.full(shape, column.missing_value).tolist())
            for column in self._columns
            for shape in [[column.length] if column.kind == "vector" else []]
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
        inputs = {**inputs, **{name: self._embedded(name, inputs[name]) for name in self.encoders}}
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
        for one, other in self._matches:
            parts.append(_match(one, other, *(tf.convert_to_tensor(inputs[each.name]) for each in (one, other))))
            order += [f"{one.name} ~ {other.name}"] * 2
        return _reordered(tf.concat(parts, axis=-1), order, self.feature_columns)

    def _embedded(self, name: str, texts: Any) -> tf.Tensor:
        """Returns the vectors [..., length] of texts [...], each computed once; NaN for ""."""
        texts = tf.convert_to_tensor(texts)
        values, places = tf.unique(tf.reshape(texts, [-1]))
        vectors = tf.where(tf.equal(values, "")[:, tf.newaxis], np.nan, self.encoders[name].embed(values))
        return tf.reshape(tf.gather(vectors, places), tf.concat([tf.shape(texts), vectors.shape[1:]], axis=0))

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
        """Returns the features of a column of text or dates [...] or vectors [..., length]."""
        if column.kind in CODED:
            return tf.cast(self._codes(place, column, values), tf.float32)
        if column.kind in _VECTORS:
            absent = tf.math.is_nan(values)
            features = tf.where(absent, 0.0, values) / column.scale
            flag = tf.cast(tf.reduce_all(absent, axis=-1, keepdims=True), tf.float32)
            return tf.concat([features, flag], axis=-1) if column.has_missing else features
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

    def _codes(self, place: int, column: Column, values: tf.Tensor) -> tf.Tensor:
        """Returns the codes [..., length] of ids, sets or texts [...]."""
        parts = _parts(column, values)
        if column.buckets:
            codes = 2 + tf.strings.to_hash_bucket_fast(parts, column.buckets)
        else:
            codes = tf.cast(2 + getattr(self, f"_table_{place}").lookup(parts), tf.int64)  # 1 for unseen values
        return tf.where(tf.equal(parts, ""), tf.zeros([], tf.int64), codes)

    def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
        """Returns the shape of the features.

        Args:
          input_shape: The shapes of the columns by name, or the shape of the numbers with `stacked`.

        Returns:
          The shape of the rows, with the number of features.
        """
        if self.stacked:
            return tf.TensorShape([*input_shape[:-1], self.num_features])
        first = self._columns[0]
        rows = input_shape[first.name][:-1] if first.kind == "vector" else input_shape[first.name]
        return tf.TensorShape([*rows, self.num_features])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as JSON types."""
        columns = [{**dataclasses.asdict(each), "categories": list(each.categories)} for each in self._columns]
        own = {
            "columns": columns,
            "matches": [[one.name, other.name] for one, other in self._matches],
            "encoders": {name: tf.keras.utils.serialize_keras_object(each) for name, each in self.encoders.items()},
            "stacked": self.stacked,
        }
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> TableFeatures:
        """Creates a layer with the return value of `get_config`."""
        encoders = {name: tf.keras.utils.deserialize_keras_object(each) for name, each in config["encoders"].items()}
        return cls(**{**config, "encoders": encoders})


def _match(one: Column, other: Column, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Returns the two features [..., 2] of a match of two columns."""
    if one.kind in _VECTORS:
        first, second = (tf.where(tf.math.is_nan(values), 0.0, values) for values in (first, second))
        product = tf.reduce_sum(first * second, axis=-1)
        norms = tf.norm(first, axis=-1) * tf.norm(second, axis=-1)
        return tf.stack([product / (one.scale * other.scale), tf.math.divide_no_nan(product, norms)], axis=-1)
    first, second = _parts(one, first), _parts(other, second)
    known = [tf.not_equal(parts, "") for parts in (first, second)]
    equal = tf.equal(first[..., tf.newaxis], second[..., tf.newaxis, :]) & known[0][..., tf.newaxis]
    common = [tf.math.count_nonzero(tf.reduce_any(equal, axis=axis), axis=-1) for axis in (-1, -2)]
    counts = [tf.math.count_nonzero(each, axis=-1) for each in known]
    common, counts = (tf.cast(tf.stack(each, axis=-1), tf.float32) for each in (common, counts))
    return tf.math.divide_no_nan(common, counts)


def _parts(column: Column, values: tf.Tensor) -> tf.Tensor:
    """Returns the values [..., length] of a column of text [...], "" after the last one."""
    parts = tf.reshape(values, [-1])
    if column.kind == "text":
        parts = tf.strings.ngrams(words(parts), (1, 2)).to_tensor(shape=[None, column.length])
    elif column.kind == "set":
        split = tf.strings.split(parts, column.separator)
        parts = tf.strings.strip(split.to_tensor(shape=[None, column.length]))
    return tf.reshape(parts, tf.concat([tf.shape(values), [column.length]], axis=0))


def _table(categories: Sequence[str]) -> tf.lookup.StaticHashTable:
    """Returns a table from the text of a category to its index, -1 for other text."""
    categories = categories or [""]  # TensorFlow has no empty tables
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
