"""What runs of neighbors in a list share: sums, means and maxima over each run."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf


class Neighbors:
    """Runs of neighbors: each starts where `starts` [batch, list] is True, and must at the first of a list."""

    def __init__(self, starts: tf.Tensor):
        self._shape = tf.shape(starts)
        rows = tf.range(self._shape[0])[:, tf.newaxis] * self._shape[1]
        self._ids = tf.reshape(rows + tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1, [-1])
        # Some ids are of no run.
        self._counts = tf.maximum(self._reduced(tf.math.unsorted_segment_sum, tf.ones(self._shape, tf.int32)), 1)

    def total(self, values: tf.Tensor) -> tf.Tensor:
        """The sum over each document's run, [batch, list]."""
        return self._shared(self._reduced(tf.math.unsorted_segment_sum, values))

    def mean(self, values: tf.Tensor) -> tf.Tensor:
        """The mean over each document's run, [batch, list]."""
        return self._shared(self._reduced(tf.math.unsorted_segment_sum, values) / tf.cast(self._counts, values.dtype))

    def maximum(self, values: tf.Tensor) -> tf.Tensor:
        """The maximum over each document's run, [batch, list], as a constant."""
        return self._shared(self._reduced(tf.math.unsorted_segment_max, tf.stop_gradient(values)))

    def _reduced(self, reduction: Callable[..., tf.Tensor], values: tf.Tensor) -> tf.Tensor:
        return reduction(tf.reshape(values, [-1]), self._ids, num_segments=self._shape[0] * self._shape[1])

    def _shared(self, of_runs: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tf.gather_nd(of_runs, self._ids[:, tf.newaxis]), self._shape)
