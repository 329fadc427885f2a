"""Comparisons of two columns, such as a query and a title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth.columns.kinds import Column

WIDTH = 2  # features of a match


def checked_pair(names: Sequence[str], columns: Sequence[Column]) -> tuple[Column, Column]:
    """Returns the two columns of a match.

    Args:
      names: The names of the columns.
      columns: All columns.

    Raises:
      ValueError: If they are no pair of columns with several values or words, or of vectors of one length.
    """
    pair = [column for name in names for column in columns if column.name == name]
    kinds = {tuple(column.vector) or ("parts" if hasattr(column, "parts") else "") for column in pair}
    if isinstance(names, str) or len(pair) != 2 or len(names) != 2 or len(kinds) > 1 or "" in kinds:
        expected = "pairs of names of feature columns of text, or of vectors of one length"
        own = [column.name for column in columns]
        absent = [name for name in names if name not in own]
        hint = f" {absent[0]!r} is no feature: `features` must list it, too." if absent else ""
        raise ValueError(f"`matches` must be {expected}, got {names!r}.{hint}")
    return pair[0], pair[1]


def match(pair: tuple[Any, Any], first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Returns the features of a match: the scalar product and the cosine of vectors, or the fractions of common values.

    Args:
      pair: The two columns.
      first: Raw values of the first one [...], or vectors [..., length].
      second: The same for the second one.

    Returns:
      float32 [..., 2].
    """
    if pair[0].vector:
        first, second = (tf.where(tf.math.is_nan(values), 0.0, values) for values in (first, second))
        product = tf.reduce_sum(first * second, axis=-1)
        norms = tf.norm(first, axis=-1) * tf.norm(second, axis=-1)
        scaled = product / (pair[0].scale * pair[1].scale)
        return tf.stack([scaled, tf.math.divide_no_nan(product, norms)], axis=-1)
    parts = [column.parts(values) for column, values in zip(pair, (first, second), strict=True)]
    known = [tf.not_equal(texts, "") for texts in parts]
    equal = tf.equal(parts[0][..., tf.newaxis], parts[1][..., tf.newaxis, :]) & known[0][..., tf.newaxis]
    common = [tf.math.count_nonzero(tf.reduce_any(equal, axis=axis), axis=-1) for axis in (-1, -2)]
    totals = [tf.math.count_nonzero(is_known, axis=-1) for is_known in known]
    common, totals = (tf.cast(tf.stack(counts, axis=-1), tf.float32) for counts in (common, totals))
    return tf.math.divide_no_nan(common, totals)
