"""Columns of text with several words.

The words come from TensorFlow operations: they are the same in training, in saved models and in every environment.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.columns.codes import MOST_CODES, Coded, DistinctValues
from tfr_smooth.columns.kinds import TrainingValues, has_words
from tfr_smooth.data.reading.checks import Where

_MOST_TEXTS = 2**18  # rows whose words are counted
_TEXTS_AT_ONCE = 2**12  # splitting takes much more memory than the texts
_COMBINING_CLASS = 21  # the first bit of the canonical combining class; code points are below it
_IDEOGRAPHS = "([\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff])"
# What is counted in texts.
NUMBERS = {
    **{"length": r"(?s).+", "digits": r"\pN+", "capitals": r"\p{Lu}+"},
    **{"punctuation": r"\pP+", "questions": "[?？؟]+"},
}
_RARE = 5  # rows; fewer than for ids, as the vector of a text is the mean of several; not tuned


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text(Coded):
    """A column of text with several words: the features are the codes of its words, as of `words`, and pairs of words.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training; they have no codes.
      categories: The words and pairs of words that have a code of their own.
      length: The most codes of a row, >= 1.
      buckets: The number of codes of hashed words; 0 if they are not hashed.
      numbers: Which numbers follow the codes, each as ln(1 + n): "length", of all characters, "digits", "capitals",
        "punctuation" and "questions", of question marks.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.columns import Text
      >>> column = Text(name="title", categories=("lamp", "red lamp"), length=5)
      >>> column.features(column.prepare(tf.constant(["Red lamp"])), column.resource()).numpy().tolist()
      [[1.0, 2.0, 3.0, 0.0, 0.0]]
    """

    numbers: tuple[str, ...] = ()

    kind = "text"
    contains = "text"
    default_for = ("text",)
    accepts = ("text",)
    shared = False
    has_numbers = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        numbers = tuple(_arguments.choice("numbers", name, tuple(NUMBERS)) for name in self.numbers)
        object.__setattr__(self, "numbers", numbers)

    @classmethod
    def reason_for(cls, values: TrainingValues) -> str:
        """Returns whether texts are many, of several words."""
        return "many texts of several words" if has_words(values.known) and not values.is_category else ""

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

    @property
    def width(self) -> int:
        """Number of features."""
        return super().width + len(self.numbers)

    def features(self, values: DistinctValues, resource: Any) -> tf.Tensor:
        """Returns the codes and the numbers."""
        codes = super().features(values, resource)
        if not self.numbers:
            return codes
        return tf.concat([codes, tf.gather(numbers_of(values.texts, self.numbers), values.places)], axis=-1)


def numbers_of(texts: tf.Tensor, names: Sequence[str]) -> tf.Tensor:
    """Returns numbers of texts [texts] that are features of a `Text`, by their names: float32 [texts, names]."""
    length = functools.partial(tf.strings.length, unit="UTF8_CHAR")
    counts = [length(texts) - length(tf.strings.regex_replace(texts, NUMBERS[name], "")) for name in names]
    return tf.math.log1p(tf.cast(tf.stack(counts, axis=1), tf.float32))


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


def words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Returns the words of texts.

    Words are runs of letters, marks and numbers of the texts' `normalized` form. An apostrophe or a hyphen separates,
    as other punctuation does. In scripts without spaces, each Chinese character is a word, and a run of Japanese kana,
    or of Thai, Lao, Khmer or Burmese letters, is one.

    Args:
      texts: Texts in UTF-8, string [texts].

    Returns:
      string [texts, (words)].

    Time and memory O(bytes).

    Example:
      >>> from tfr_smooth.columns.text import words
      >>> print(words(["Straße 5,5 km²", "हिन्दी"]).to_list()[0])
      [b'strasse', b'5', b'5', b'km2']
    """
    return tf.strings.split(normalized(texts))


# One function of its own: a saved model has the table once, however many columns of text it has.
@tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
def normalized(texts: tf.Tensor) -> tf.Tensor:
    """Returns the words of texts in one form, separated by spaces.

    The form is the compatibility decomposition of the case-folded text, NFKD, of Unicode 14: composed and decomposed,
    wide and narrow, upper and lower case letters become the same. Accents and vowel signs stay. Beyond that,

    - the letters I, i, İ and ı are one, as their cases depend on the language;
    - characters that are not visible, such as soft hyphens, joiners and variation selectors, and enclosing marks are
      deleted; a zero width space separates;
    - accents without a letter and the signs ™ and ℠ separate;
    - bytes that are not UTF-8 separate.

    Args:
      texts: Texts in UTF-8, string [texts].

    Returns:
      string [texts].

    Time and memory O(bytes).

    Example:
      >>> from tfr_smooth.columns.text import normalized
      >>> print(normalized(["Ｆｕｌｌ-WIDTH"]).numpy())
      [b'full width']
    """
    table = _table()
    with tf.device("CPU:0"):  # strings are there
        decoded = tf.strings.unicode_decode(texts, "UTF-8")
        codes = decoded.flat_values
        values = tf.gather(table["values"].reshape(-1), 128 * tf.gather(table["blocks"], codes // 128) + codes % 128)
        values = tf.where(values == -1, codes, values)
        # A value becomes a range of the expansions, or itself.
        is_range, ranges = values < 0, -2 - values
        first = len(table["expansions"])
        starts = tf.where(is_range, ranges // 32, first + tf.range(tf.size(values)))
        places = tf.ragged.range(starts, starts + tf.where(is_range, ranges % 32, 1))
        values = tf.gather(tf.concat([table["expansions"], values], axis=0), places.flat_values)
        splits = tf.gather(places.row_splits, decoded.row_splits)
        codes = _in_canonical_order(values, splits) % 2**_COMBINING_CLASS
        joined = tf.strings.unicode_encode(tf.RaggedTensor.from_row_splits(codes, splits, validate=False), "UTF-8")
        return tf.strings.regex_replace(tf.strings.regex_replace(joined, "i\u0307", "i"), _IDEOGRAPHS, r" \1 ")


def _in_canonical_order(values: tf.Tensor, splits: tf.Tensor) -> tf.Tensor:
    """Returns values with each run of marks in the order of their combining classes, within each text."""
    places = tf.where(values >= 2**_COMBINING_CLASS)[:, 0]
    marks = tf.gather(values, places)
    # The number of other values and texts before a mark is the same for all marks of a run, and only for these.
    texts = tf.searchsorted(splits, places, side="right", out_type=tf.int64)
    runs = places - tf.range(tf.size(places, tf.int64)) + texts
    order = tf.argsort(256 * runs + tf.cast(marks // 2**_COMBINING_CLASS, tf.int64), stable=True)
    return tf.tensor_scatter_nd_update(values, places[:, tf.newaxis], tf.gather(marks, order))


@functools.cache
def _table() -> dict[str, np.ndarray]:
    """Returns what each code point becomes, as tools/make_words.py writes it."""
    with np.load(pathlib.Path(__file__).with_name("words.npz")) as arrays:
        return dict(arrays)
