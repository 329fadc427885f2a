"""What a document of some relevance is worth: the gain of NDCG."""

from __future__ import annotations

import math

import tensorflow as tf

GAINS = ("exponential", "linear")


def exponential_gain(relevance: tf.Tensor) -> tf.Tensor:
    """Returns 2^y - 1, exact for small y."""
    return tf.math.expm1(math.log(2.0) * relevance)


def gained(relevance: tf.Tensor, gain: str) -> tf.Tensor:
    """Returns 2^y - 1 for the gain "exponential", y for "linear"."""
    return exponential_gain(relevance) if gain == "exponential" else relevance


def slope(gains: tf.Tensor, gain: str) -> tf.Tensor:
    """Returns the derivative of `gained` to the relevance, from what `gained` returned."""
    return math.log(2.0) * (gains + 1.0) if gain == "exponential" else tf.ones_like(gains)
