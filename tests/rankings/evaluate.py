"""Evaluates functions of scores and mask and their gradients."""

import numpy as np
import tensorflow as tf


def padded(rows):
    """Pads lists with zeros to one array, and returns it with its mask."""
    mask = np.arange(max(map(len, rows))) < np.array([[len(row)] for row in rows])
    values = np.zeros(mask.shape, np.asarray(rows[0]).dtype)
    values[mask] = np.concatenate(rows)
    return values, mask


def value(function, scores):
    """Returns the value for one list without padding."""
    scores = tf.convert_to_tensor(scores)[tf.newaxis]
    return function(scores, tf.ones_like(scores, tf.bool)).numpy()[0]


def gradient(function, scores, weights):
    """Returns the gradient of the weighted sum of the values for one list without padding."""
    return of_one_list(function, scores, weights)[1]


def value_and_gradient(function, scores, weights=1.0, mask=None):
    """Returns the value for a batch, and the gradient of its weighted sum."""
    scores = tf.convert_to_tensor(scores)
    mask = tf.ones_like(scores, tf.bool) if mask is None else tf.convert_to_tensor(mask)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        found = function(scores, mask)
        total = tf.reduce_sum(tf.cast(weights, found.dtype) * found)
    return found.numpy(), tape.gradient(total, scores).numpy()


def of_one_list(function, scores, weights=1.0):
    """Returns the value and gradient for one list without padding."""
    return tuple(result[0] for result in value_and_gradient(function, scores[np.newaxis], weights))


def assert_near(found, expected, relative):
    """Asserts that arrays are close, relative to the largest expected element."""
    assert np.abs(found - expected).max() <= relative * np.abs(expected).max() + 1e-37
