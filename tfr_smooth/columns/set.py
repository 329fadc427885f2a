"""Columns of sets: several values in each row."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth.columns.codes import MOST_CODES, Coded, whole, whole_strings
from tfr_smooth.columns.id import _RARE
from tfr_smooth.columns.kinds import TrainingValues, counts_of
from tfr_smooth.data import column_values
from tfr_smooth.data.reading.checks import Where, refuse, refuse_where

_SEPARATOR = "|"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Set(Coded):
    """A column of several values in each row, as lists or in one text: the features are their codes.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training; they have no codes.
      categories: The values that have a code of their own.
      length: The most codes of a row, >= 1.
      buckets: The number of codes of hashed values; 0 if they are not hashed.
      separator: What separates the values in one text.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.columns import Set
      >>> column = Set(name="tags", categories=("new", "red"), length=3)
      >>> column.features(column.prepare(tf.constant(["red|new"])), column.resource()).numpy().tolist()
      [[3.0, 2.0, 0.0]]
    """

    separator: str = _SEPARATOR

    kind = "set"
    contains = "lists or text"
    default_for = ("set",)
    accepts = ("set", "vector", "text")

    @classmethod
    def learn(cls, values: TrainingValues) -> Set:
        """Returns the column of training values."""
        separator = values.option or _SEPARATOR
        lengths, parts = split_sets(values.known, separator)
        length, counts = min(pc.max(lengths).as_py(), MOST_CODES), counts_of(parts)
        options = {"name": values.name, "has_missing": values.has_missing, "length": length, "separator": separator}
        return cls.of_counts(*counts, _RARE, **options)

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns the values of each row as one text."""
        separator = option or _SEPARATOR
        if column_values.is_text(values.type):
            return values
        if pa.types.is_floating(values.type.value_type):
            lengths = pc.list_value_length(values)
            other = pc.not_equal(lengths, lengths[pc.index(pc.is_valid(lengths), True).as_py()])
            refuse_where(other, where, "vectors of one length, or lists of text or integers", values)
        texts = pc.cast(pc.list_flatten(values), pa.large_string())
        place = pc.index(pc.fill_null(pc.match_substring(texts, separator), True), True).as_py()
        if place >= 0:
            row = pc.list_parent_indices(values)[place].as_py()
            refuse(where, f"lists of known values without {separator!r}", texts[place], row)
        of_text = values.cast(pa.large_list(pa.large_string()))
        return pc.binary_join(of_text, pa.scalar(separator, pa.large_string()))

    @property
    def option(self) -> str:
        """The separator."""
        return self.separator

    def split(self, values: tf.Tensor) -> tf.RaggedTensor:
        """Returns the values [rows, (values)] of strings [rows]."""
        parts = tf.strings.split(values, self.separator)
        return tf.ragged.map_flat_values(lambda texts: whole_strings(tf.strings.strip(texts)), parts)

    @property
    def description(self) -> str:
        """The raw values, for a model card."""
        return f"values, separated by {self.separator!r}; '' is missing"


def split_sets(texts: pa.ChunkedArray, separator: str) -> tuple[Any, Any]:
    """Returns the number of values in each text, and all values, as `Set.split` returns them."""
    sets = pc.split_pattern(texts.cast(pa.large_string()), separator)
    return pc.list_value_length(sets), whole(pc.utf8_trim_whitespace(pc.list_flatten(sets)))
