"""Sums, means and maxima over runs of neighbors in a list."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf


class Neighbors:
    """Runs of neighbors.

    Args:
      starts: [batch, list] bool, True where a run starts; must be True at the start of each list.
    """

    def __init__(self, starts: tf.Tensor):
        self._shape = tf.shape(starts)
        rows = tf.range(self._shape[0])[:, tf.newaxis] * self._shape[1]
        self._ids = tf.reshape(rows + tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1, [-1])
        # Some ids have no run.
        self._counts = tf.maximum(self._reduced(tf.math.unsorted_segment_sum, tf.ones(self._shape, tf.int32)), 1)

    def total(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the sum over each document's run, [batch, list]."""
        return self._shared(self._reduced(tf.math.unsorted_segment_sum, values))

    def mean(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the mean over each document's run, [batch, list]."""
        return self._shared(self._reduced(tf.math.unsorted_segment_sum, values) / tf.cast(self._counts, values.dtype))

    def maximum(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the maximum over each document's run, [batch, list], without a gradient."""
        return self._shared(self._reduced(tf.math.unsorted_segment_max, tf.stop_gradient(values)))

    def _reduced(self, reduction: Callable[..., tf.Tensor], values: tf.Tensor) -> tf.Tensor:
        return reduction(tf.reshape(values, [-1]), self._ids, num_segments=self._shape[0] * self._shape[1])

    def _shared(self, of_runs: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tf.gather_nd(of_runs, self._ids[:, tf.newaxis]), self._shape)
