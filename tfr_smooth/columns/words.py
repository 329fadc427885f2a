"""The words of texts, in TensorFlow operations: the same in training, in saved models and in every environment."""

from __future__ import annotations

import functools
import pathlib

import numpy as np
import tensorflow as tf

_COMBINING_CLASS = 21  # the first bit of the canonical combining class; code points are below it
_IDEOGRAPHS = "([\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff])"


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
      >>> from tfr_smooth.columns.words import words
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
      >>> from tfr_smooth.columns.words import normalized
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
    runs = (
        places - tf.range(tf.size(places, tf.int64)) + tf.searchsorted(splits, places, side="right", out_type=tf.int64)
    )
    order = tf.argsort(256 * runs + tf.cast(marks // 2**_COMBINING_CLASS, tf.int64), stable=True)
    return tf.tensor_scatter_nd_update(values, places[:, tf.newaxis], tf.gather(marks, order))


@functools.cache
def _table() -> dict[str, np.ndarray]:
    """Returns what each code point becomes, as tools/make_words.py writes it."""
    with np.load(pathlib.Path(__file__).with_name("words.npz")) as arrays:
        return dict(arrays)
