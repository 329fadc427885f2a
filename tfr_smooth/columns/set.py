"""Columns of ids, and of sets: several values in each row."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth.columns.codes import MOST_CODES, Coded, whole, whole_strings
from tfr_smooth.columns.kinds import TrainingValues, counts_of, has_words
from tfr_smooth.data.column_values import OUTER_BLANKS, TEXTS, value_type, without
from tfr_smooth.data.reading.checks import Where, id_text, refuse, refuse_where

_SEPARATOR = "|"
# Rows: a value in fewer rows learns their noise (a table of clickouts: MRR 0.525 without this, against 0.602).
_RARE = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Id(Coded):
    """A column of text or integers with many values: the feature is the code of the value.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training; their code is 0.
      categories: The values that have a code of their own, from 2 on; others have the code 1.
      length: 1.
      buckets: The number of codes of hashed values; 0 if they are not hashed.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Id
      >>> Id(name="host", categories=("a", "b")).codes
      [1, 4]
    """

    kind = "id"
    contains = "text or integers"
    raw_values = "ids"
    default_for = ("text", "number")
    accepts = ("text", "number")

    @classmethod
    def reason_for(cls, values: TrainingValues) -> str:
        """Returns why values are ids: numbers by their name, texts since they are many of few words."""
        if values.are_ids:
            return "whole numbers, and its name"
        return "" if values.is_category or has_words(values.known) else "many texts of few words"

    @classmethod
    def learn(cls, values: TrainingValues) -> Id:
        """Returns the column of training values."""
        return cls.of_counts(*values.counts, _RARE, name=values.name, has_missing=values.has_missing)

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns integers as text, also those that are floats because some are missing."""
        if pa.types.is_decimal(values.type):
            refuse_where(pc.not_equal(values, pc.round(values)), where, "integers as ids", values)
        if pa.types.is_floating(values.type):
            numbers = without(values, pc.is_nan(values))
            refuse_where(pc.not_equal(numbers, pc.round(numbers)), where, "integers as ids", values)
            most = 2.0 ** (53 if values.type == pa.float64() else 24)
            expected = f"ids, which {values.type} has only up to {most:.0f}: pass integers or text"
            refuse_where(pc.greater(pc.abs(numbers), most), where, expected, values)
        return super().raw(where, values, option)


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
    several = True
    contains = "lists or text"
    default_for = ("set",)
    accepts = ("set", "vector", "text")

    @classmethod
    def learn(cls, values: TrainingValues) -> Set:
        """Returns the column of training values."""
        separator = values.option or _SEPARATOR
        lengths, parts = split_sets(values.known, separator)
        options = {"name": values.name, "has_missing": values.has_missing, "separator": separator}
        return cls.of_counts(*counts_of(parts), _RARE, length=min(pc.max(lengths).as_py(), MOST_CODES), **options)

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns the values of each row as one text."""
        separator = option or _SEPARATOR
        if value_type(values.type) in TEXTS:
            expected = f"values separated by {separator!r}, not a list in text"
            refuse_where(pc.match_substring_regex(values, r"^\s*[\[{(].*[\])}]\s*$"), where, expected, values)
            return values
        parts = [_joined(where, chunk, separator) for chunk in getattr(values, "chunks", [values])]
        return pa.chunked_array(parts, pa.large_string())

    def as_trained(self, where: Where, values: Any) -> Any:
        """Returns the values: a set is the same in text, in lists, and in lists of one length."""
        return values

    @property
    def option(self) -> str:
        """The separator."""
        return self.separator

    def split(self, values: tf.Tensor) -> tf.RaggedTensor:
        """Returns the values [rows, (values)] of strings [rows]."""
        parts = tf.strings.split(values, self.separator)
        parts = parts.with_values(whole_strings(tf.strings.regex_replace(parts.values, OUTER_BLANKS, "")))
        return tf.ragged.boolean_mask(parts, tf.not_equal(parts, ""))

    @property
    def description(self) -> str:
        """The raw values, for a model card."""
        return f"values, separated by {self.separator!r}; '' is missing"


def split_sets(texts: pa.ChunkedArray, separator: str) -> tuple[Any, Any]:
    """Returns the number of values in each text, and all values, as `Set.split` returns them."""
    sets = pc.split_pattern(texts.cast(pa.large_string()), separator)
    return pc.list_value_length(sets), whole(pc.replace_substring_regex(pc.list_flatten(sets), OUTER_BLANKS, ""))


def _joined(where: Where, values: Any, separator: str) -> Any:
    """Returns lists, of known text or whole numbers without the separator, as texts."""
    values = values.cast(pa.large_list(values.type.value_type))
    parts = pc.list_flatten(values)
    if pa.types.is_floating(parts.type) and pc.any(pc.not_equal(parts, pc.round(parts))).as_py():
        lengths = pc.list_value_length(values)
        other = pc.not_equal(lengths, lengths[pc.index(pc.is_valid(lengths), True).as_py()])
        row = max(pc.index(other, True).as_py(), 0)
        refuse(where, "vectors of one length, or lists of text or integers", values[row], row)
    texts = id_text(where, parts)
    wrong = pc.fill_null(pc.match_substring(texts, separator), True)
    if (place := pc.index(wrong, True).as_py()) >= 0:
        row = pc.list_parent_indices(values)[place].as_py()
        refuse(where, f"lists of known values without {separator!r}", texts[place], row)
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(values), 0))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends.cast(pa.int64())])
    lists = pa.LargeListArray.from_arrays(offsets, texts)
    joined = pc.binary_join(lists, pa.scalar(separator, pa.large_string()))
    return without(joined, pc.is_null(values))
