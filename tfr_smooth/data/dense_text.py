"""Fast parser of feature text for rows that have the features 1..n in order."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_IN_NUMBERS = b"0123456789+-.eE"


def read_dense(rows: list[bytes], num_features: int, first_index: int = 1) -> np.ndarray | None:
    """Reads `1:a 2:b ... n:z` rows with TensorFlow's CSV parser, which releases Python's lock for other threads.

    Args:
      rows: Text without line ends inside; surrounding spaces are ignored.
      num_features: The number of features n, >= 1.
      first_index: The index of the first feature, 0 or 1.

    Returns:
      float32 [rows, n], the same numbers that Python's `float` reads; or None for rows that are not clearly of this
      form, which the exact parser must read.

    Example:
      >>> print(read_dense([b"1:0.5 2:7", b"1:1e-1 2:-2"], 2), read_dense([b"2:1"], 2))
      [[ 0.5  7. ]
       [ 0.1 -2. ]] None
    """
    rows = [row.strip(b" \r\n") for row in rows]
    marks = b"\n".join(rows).translate(None, _IN_NUMBERS)
    if marks != b"\n".join([b" ".join([b":"] * num_features)] * len(rows)):
        return None
    fields = [row.replace(b":", b" ") for row in rows]
    try:
        values, in_order = _csv_reader(num_features, first_index)(tf.constant(fields))
    except tf.errors.InvalidArgumentError:
        return None
    values = values.numpy()
    # `not (<=)` also catches NaN. The exact parser accepts values up to the largest float32.
    if not in_order or not np.abs(values).max() <= _FLOAT32_MAX:
        return None
    return values.astype(np.float32)


@functools.lru_cache(maxsize=16)
def _csv_reader(num_features: int, first_index: int) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Returns a parser of `1 a 2 b ... n z` rows: values float64 [rows, n], and whether all indices are in order."""
    kinds = [tf.zeros([0], tf.int32), tf.zeros([0], tf.float64)] * num_features  # no default: every field is required

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def read(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        fields = tf.io.decode_csv(rows, kinds, field_delim=" ", use_quote_delim=False)
        indices, values = tf.stack(fields[0::2], axis=1), tf.stack(fields[1::2], axis=1)
        return values, tf.reduce_all(indices == tf.range(first_index, first_index + num_features))

    return read
