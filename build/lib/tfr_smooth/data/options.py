"""The `tf.data` options of the datasets that the library makes, in one place."""

from __future__ import annotations

import tensorflow as tf

# Batches that wait while one is used: a fixed number, as nothing is tuned.
_PREFETCH = 2


def share_by_data(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Has several workers share each batch: by file, the default, they need a file each, and pad to other lengths."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Prepares the next batches of a dataset that names no `tf.data.AUTOTUNE`, and has workers share each batch."""
    options = tf.data.Options()
    # With nothing to tune, the tuning thread only costs: closing an iterator waits for it, up to many seconds.
    options.autotune.enabled = False
    return share_by_data(dataset.prefetch(_PREFETCH)).with_options(options)
