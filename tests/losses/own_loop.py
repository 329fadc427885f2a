"""Compares the gradients of a custom training loop on one and two replicas, for each reduction.

test_modes.py runs it in a separate process, because logical CPUs can be configured only before TensorFlow starts.
"""

import numpy as np
import tensorflow as tf

from tests.helpers import modes
from tfr_smooth import losses


def gradient(strategy, reduction):
    """Returns the gradient with respect to a weight of 1 that multiplies the scores."""
    labels, scores = modes.batch()
    with strategy.scope():
        weight = tf.Variable(1.0)
        loss = losses.ApproxNDCGLoss(reduction=reduction)
    replicas = strategy.num_replicas_in_sync
    shares = [tuple(np.split(array, replicas)[i] for array in (labels, scores)) for i in range(replicas)]
    batch = strategy.experimental_distribute_values_from_function(
        lambda context: tuple(map(tf.constant, shares[context.replica_id_in_sync_group]))
    )

    def step(batch):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(loss(batch[0], weight * batch[1]))
        return tape.gradient(value, weight)

    by_replica = tf.function(lambda batch: strategy.run(step, args=(batch,)))(batch)
    return float(strategy.reduce(tf.distribute.ReduceOp.SUM, by_replica, axis=None))


def main():
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    one, two = tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for reduction in ("sum_over_batch_size", "sum", "none"):
        try:
            ratio = gradient(two, reduction) / gradient(one, reduction)
            print(f"{reduction}: {'right' if abs(ratio - 1.0) < 1e-5 else ratio}")
        except ValueError as error:
            print(f"{reduction}: {str(error).replace(chr(10), ' ')}")


if __name__ == "__main__":
    main()
