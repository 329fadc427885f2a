"""Gains equal exact integer arithmetic."""

import fractions
import itertools

import numpy as np
import tensorflow as tf

from tfr_smooth.rankings.dcg import NDCGGain, exponential_gain


def ratio(numerator, denominator):
    return float(fractions.Fraction(numerator, denominator))


def test_ratios_of_gains_equal_integer_arithmetic():
    """For labels up to 1000, although 2^1000 exceeds the range of float32."""
    for highest, dtype in itertools.product((1, 4, 31, 64, 65, 128, 300, 1000), (np.float32, np.float64)):
        labels = np.unique(np.append(np.linspace(0, highest, 40).astype(int), [max(highest - 1, 0), 0, 1, highest]))
        relevance = tf.constant(labels[np.newaxis].astype(dtype))
        gains = NDCGGain.of("exponential", relevance)(relevance).numpy()[0]
        assert gains.dtype == dtype and np.isfinite(gains).all()
        expected = [ratio(2 ** int(label) - 1, 2**highest - 1) for label in labels]
        # Rounding of the exponent causes a relative error; gains below the smallest float are 0.
        tight = 1e-5 if dtype == np.float32 else 1e-13
        np.testing.assert_allclose(gains / gains[-1], expected, rtol=tight, atol=tight * 2.0**-63)


def test_gains_of_small_relevance_are_precise():
    labels = np.float32([1e-6, 0.01, 0.5])
    np.testing.assert_allclose(exponential_gain(tf.constant(labels)), np.expm1(np.log(2.0) * labels), rtol=3e-7)


def test_each_list_has_its_own_shift():
    relevance = tf.constant([[200.0, 199.0, 0.0], [3.0, 1.0, 0.0]])
    gain = NDCGGain.of("exponential", relevance)
    np.testing.assert_array_equal(gain.shift, [[136.0], [0.0]])
    np.testing.assert_allclose(gain(relevance)[1], [7.0, 1.0, 0.0], rtol=1e-6)


def test_the_derivative_equals_automatic_differentiation():
    for kind, highest in (("exponential", 3.0), ("exponential", 200.0), ("linear", 3.0)):
        relevance = tf.constant([[0.0, highest - 1.5, highest]], tf.float64)
        gain = NDCGGain.of(kind, relevance)
        with tf.GradientTape() as tape:
            tape.watch(relevance)
            gains = gain(relevance)
        np.testing.assert_allclose(gain.derivative(relevance), tape.gradient(gains, relevance), rtol=1e-12)
