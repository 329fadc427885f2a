"""Columns of text with several words."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth.columns.codes import MOST_CODES, Coded
from tfr_smooth.columns.kinds import TrainingValues
from tfr_smooth.columns.words import words
from tfr_smooth.data.reading.checks import Where

_MOST_TEXTS = 2**18  # rows whose words are counted
_TEXTS_AT_ONCE = 2**12  # splitting takes much more memory than the texts
_RARE = 5  # rows; the vector of a text is the mean of several


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text(Coded):
    """A column of text with several words: the features are the codes of its words, as of `words`, and pairs of words.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training; they have no codes.
      categories: The words and pairs of words that have a code of their own.
      length: The most codes of a row, >= 1.
      buckets: The number of codes of hashed words; 0 if they are not hashed.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.columns import Text
      >>> column = Text(name="title", categories=("lamp", "red lamp"), length=5)
      >>> column.features(column.prepare(tf.constant(["Red lamp"])), column.resource()).numpy().tolist()
      [[1.0, 2.0, 3.0, 0.0, 0.0]]
    """

    kind = "text"
    contains = "text"
    default_for = ("text",)
    accepts = ("text",)

    @classmethod
    def reason(cls, values: TrainingValues) -> str:
        """Returns whether texts are many, of several words."""
        return "many texts of several words" if values.has_words and not values.is_category else ""

    @classmethod
    def learn(cls, values: TrainingValues) -> Text:
        """Returns the column of training values."""
        texts = values.known
        sample = texts.take(np.arange(0, len(texts), len(texts) // _MOST_TEXTS + 1))
        parts, numbers, most = _word_counts(sample)
        options = {"name": values.name, "has_missing": values.has_missing, "length": min(most, MOST_CODES)}
        return cls.of_counts(parts, numbers, _RARE, **options)

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns the texts."""
        return values

    def split(self, values: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words of texts."""
        return words(values)

    def coded(self, parts: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns words and pairs of words."""
        return tf.strings.ngrams(parts, (1, 2))


def _word_counts(texts: pa.ChunkedArray) -> tuple[pa.Array, pa.Array, int]:
    """Returns all words and pairs of words, as `parts` splits texts, their numbers, and the most in one text."""
    batches, most = [], 1
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        parts = tf.strings.ngrams(words(tf.constant(texts[first : first + _TEXTS_AT_ONCE].to_pylist())), (1, 2))
        most = max(most, int(parts.bounding_shape(axis=1)))
        values, _, numbers = tf.unique_with_counts(parts.flat_values)
        batches.append(pa.table({"value": pa.array(values.numpy(), pa.large_binary()), "number": numbers.numpy()}))
    counts = pa.concat_tables(batches).group_by("value").aggregate([("number", "sum")]).combine_chunks()
    values, numbers = (counts[name].combine_chunks() for name in ("value", "number_sum"))
    return values.cast(pa.large_string()), numbers, most
