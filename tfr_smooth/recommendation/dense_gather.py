"""Rows of a trained table with a dense gradient."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


@tf.custom_gradient
def gather(table: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """Returns rows of a table, with a dense gradient.

    TensorFlow's would be `IndexedSlices`. Adam of Keras 3 squares them without summing equal rows, which replicas that
    share items have, and updates all rows anyway.
    """

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return tf.math.unsorted_segment_sum(upstream, rows, table.shape[0]), None

    return tf.gather(table, rows), gradient
