"""Trains factors that are divided among parameter servers; test_sharded.py runs it in new processes.

Usage: sharded.py FOLDER. Users and items are on a circle, and users like the next three items.
"""

import json
import os
import pathlib
import sys

import tensorflow as tf

from tfr_smooth import losses, training

NUM_USERS = NUM_ITEMS = 40
BATCH_SIZE, NEGATIVES, DIM = 8, 10, 8


def batches():
    users = tf.data.Dataset.range(NUM_USERS).shuffle(NUM_USERS).repeat().batch(BATCH_SIZE)

    def with_candidates(users):
        liked = (users[:, tf.newaxis] + tf.range(3, dtype=tf.int64)) % NUM_ITEMS
        others = tf.random.uniform([BATCH_SIZE, NEGATIVES], 3, NUM_ITEMS, tf.int64)
        items = tf.concat([liked, (users[:, tf.newaxis] + others) % NUM_ITEMS], axis=1)
        labels = tf.concat([tf.ones([BATCH_SIZE, 3]), tf.zeros([BATCH_SIZE, NEGATIVES])], axis=1)
        return users, items, labels

    return users.map(with_candidates)


def main(folder):
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        training.get_strategy("parameter_server")  # serves the chief, and never returns
    partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        users = tf.Variable(lambda: tf.random.normal([NUM_USERS, DIM], stddev=0.1), name="users")
        items = tf.Variable(lambda: tf.random.normal([NUM_ITEMS, DIM], stddev=0.1), name="items")
        optimizer = tf.keras.optimizers.Adam(0.05)
    loss = losses.SmoothINDCGLoss(alpha=10.0)
    shards = [*users.variables, *items.variables]

    def train(chosen, candidates, labels):
        with tf.GradientTape() as tape:
            vectors = tf.nn.embedding_lookup(items, candidates)
            scores = tf.einsum("bd,bnd->bn", tf.nn.embedding_lookup(users, chosen), vectors)
            value = loss(labels, scores)
        optimizer.apply_gradients(zip(tape.gradient(value, shards), shards, strict=True))
        return value

    @tf.function
    def step(iterator):
        return strategy.run(train, args=next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    values = [coordinator.schedule(step, args=(iterator,)) for _ in range(120)]
    coordinator.join()
    values = [float(value.fetch()) for value in values]
    found = {
        "first": sum(values[:10]) / 10,
        "last": sum(values[-10:]) / 10,
        "shapes": [list(shard.shape) for shard in shards],
        "devices": [shard.device for shard in shards],
    }
    (pathlib.Path(folder) / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main(sys.argv[1])
