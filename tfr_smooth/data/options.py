"""The `tf.data` options of the library's datasets."""

from __future__ import annotations

import tensorflow as tf

# Batches to prepare ahead. Fixed, as autotuning is off.
_PREFETCH = 2


def share_by_data(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Shards each batch over workers; sharding by file, the default, needs one file per worker and pads differently."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Prefetches batches of a dataset without `tf.data.AUTOTUNE`, and shards each batch over workers."""
    options = tf.data.Options()
    # With nothing to tune, the tuning thread only adds cost: closing an iterator may wait for it for many seconds.
    options.autotune.enabled = False
    return share_by_data(dataset.prefetch(_PREFETCH)).with_options(options)
