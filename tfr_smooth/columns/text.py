"""Columns of text with several words."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth.columns.codes import MOST_CODES, Coded
from tfr_smooth.columns.kinds import TrainingValues, counts_of

_MOST_TEXTS = 2**18  # rows whose words are counted
_SAMPLED = 2**12  # rows whose longest text is measured
_RARE = 5  # rows; the vector of a text is the mean of several


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text(Coded):
    """A column of text with several words: the features are the codes of its words and pairs of words.

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
      >>> column.features(tf.constant(["Red lamp"]), column.resource()).numpy().tolist()
      [[1.0, 2.0, 3.0, 0.0, 0.0]]
    """

    kind = "text"
    contains = "text"
    default_for = "text"
    accepts = ("text",)

    @classmethod
    def suits(cls, values: TrainingValues) -> bool:
        """Returns whether there are many values of several words."""
        return not values.is_category and values.has_words

    @classmethod
    def learn(cls, values: TrainingValues) -> Text:
        """Returns the column of training values."""
        texts = values.known
        words = pc.add(pc.count_substring_regex(texts[:_SAMPLED], r"\S\s+\S"), 1)
        length = min(2 * pc.max(words).as_py() - 1, MOST_CODES)
        counts = counts_of(_words(texts.take(np.arange(0, len(texts), len(texts) // _MOST_TEXTS + 1))))
        return cls.of_counts(*counts, _RARE, name=values.name, has_missing=values.has_missing, length=length)

    def parts(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the words and pairs of words [..., length] of texts [...], "" after the last one."""
        clean = tf.strings.regex_replace(tf.strings.lower(tf.reshape(values, [-1]), "utf-8"), r"[^\pL\pN]+", " ")
        parts = tf.strings.ngrams(tf.strings.split(clean), (1, 2)).to_tensor(shape=[None, self.length])
        return tf.reshape(parts, tf.concat([tf.shape(values), [self.length]], axis=0))


def _words(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns all words and pairs of words, as `parts` splits texts."""
    clean = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(texts), r"[^\pL\pN]+", " "))
    of_texts = pc.split_pattern(clean, " ").combine_chunks()
    words, rows = pc.list_flatten(of_texts), pc.list_parent_indices(of_texts)
    pairs = pc.binary_join_element_wise(words[:-1], words[1:], pa.scalar(" ", words.type))
    return pa.chunked_array([words, pairs.filter(pc.equal(rows[:-1], rows[1:]))])
