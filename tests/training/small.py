"""A small batch and a small model, with which the tests of this folder train."""

import numpy as np
import tensorflow as tf

from tfr_smooth import models


def make_dataset(lists=7, batch=3):
    """Returns a dataset, and the features, mask and labels of all its lists."""
    random = np.random.RandomState(0)
    features = random.randn(lists, 6, 4).astype(np.float32)
    labels = random.randint(0, 3, (lists, 6)).astype(np.float32)
    labels[:, 0], labels[::2, 5] = 2.0, -1.0
    inputs = {"features": features, "mask": labels >= 0}
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(batch), inputs, labels


def make_model(loss, optimizer=None, hidden=8):
    tf.keras.utils.set_random_seed(0)
    model = models.FeedForwardScorer(hidden=[hidden])
    model.compile(optimizer or tf.keras.optimizers.SGD(0.5), loss)
    model.build((None, None, 4))
    return model
